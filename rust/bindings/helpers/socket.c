// SPDX-License-Identifier: GPL-2.0
/*
 * C wrappers for rust/net: TCP sockets, and functions for the sockets of all protocols.
 *
 * They are macros and inline functions of the kernel, which bindgen does not see, or use members of
 * struct sock and of the structs that begin with it. riw binds none of these: they have bit fields
 * and unions, and their layouts depend on the configuration. Where a helper looks at several
 * members, Rust would make a call for each, on the path of each message or under the socket's lock.
 */
#include <linux/file.h>
#include <net/inet_ecn.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/tcp.h>

#include "net.h"

#ifdef CONFIG_DEBUG_LOCK_ALLOC
static struct lock_class_key riw_slock_key[2][2];
static struct lock_class_key riw_lock_key[2][2];
static const char *const riw_slock_name[2][2] = {
	{ "slock-AF_INET-RDMA", "slock-AF_INET6-RDMA" },
	{ "slock-AF_INET-RDMA-SCTP", "slock-AF_INET6-RDMA-SCTP" },
};

static const char *const riw_lock_name[2][2] = {
	{ "sk_lock-AF_INET-RDMA", "sk_lock-AF_INET6-RDMA" },
	{ "sk_lock-AF_INET-RDMA-SCTP", "sk_lock-AF_INET6-RDMA-SCTP" },
};

/*
 * Own lock classes: these socket locks nest inside the locks of verbs objects, and user memory is
 * never accessed under them, but that of tlshd while it makes a handshake. The lock order that
 * lockdep learns from other sockets does not apply. In C: a macro names the classes.
 */
void riw_helper_sk_reclassify(struct sock *sk)
{
	bool sctp = sk->sk_protocol == IPPROTO_SCTP;
	bool v6 = sk->sk_family == AF_INET6;

	if (!sock_allow_reclassification(sk))
		return;
	sock_lock_init_class_and_name(sk, riw_slock_name[sctp][v6], &riw_slock_key[sctp][v6],
				      riw_lock_name[sctp][v6], &riw_lock_key[sctp][v6]);
}
#else
void riw_helper_sk_reclassify(struct sock *sk)
{
}
#endif

/*
 * Do not use the task's page fragment: the task may be inside another sendmsg() that uses it and
 * faulted.
 */
void riw_helper_sk_setup(struct sock *sk)
{
	sk->sk_use_task_frag = false;
}

void riw_helper_sk_callbacks(struct sock *sk, struct riw_sk_callbacks *callbacks)
{
	callbacks->data_ready = READ_ONCE(sk->sk_data_ready);
	callbacks->write_space = READ_ONCE(sk->sk_write_space);
	callbacks->state_change = READ_ONCE(sk->sk_state_change);
	callbacks->error_report = READ_ONCE(sk->sk_error_report);
}

static void riw_sk_set_callbacks(struct sock *sk, const struct riw_sk_callbacks *callbacks)
{
	WRITE_ONCE(sk->sk_data_ready, callbacks->data_ready);
	WRITE_ONCE(sk->sk_write_space, callbacks->write_space);
	WRITE_ONCE(sk->sk_state_change, callbacks->state_change);
	WRITE_ONCE(sk->sk_error_report, callbacks->error_report);
}

/* riw's pointer has exactly this flag. BPF sets more flags. */
static void *riw_sk_user_data(const struct sock *sk)
{
	uintptr_t user_data = (uintptr_t)READ_ONCE(sk->sk_user_data);

	if ((user_data & ~SK_USER_DATA_PTRMASK) != SK_USER_DATA_NOCOPY)
		return NULL;
	return (void *)(user_data & SK_USER_DATA_PTRMASK);
}

/*
 * Installs callbacks, and the pointer that riw_helper_sk_callback_enter() returns to them. Returns
 * 0, or -EBUSY if the socket has a pointer.
 *
 * In C, as the next two: pointer and callbacks change together under sk_callback_lock, and macros
 * set the pointer, which RCU protects.
 */
int riw_helper_sk_hook(struct sock *sk, void *user_data, const struct riw_sk_callbacks *callbacks)
{
	int ret = -EBUSY;

	write_lock_bh(&sk->sk_callback_lock);
	if (!sk->sk_user_data) {
		/* NOCOPY: a listener's children must not inherit the pointer. */
		__rcu_assign_sk_user_data_with_flags(sk, user_data, SK_USER_DATA_NOCOPY);
		riw_sk_set_callbacks(sk, callbacks);
		ret = 0;
	}
	write_unlock_bh(&sk->sk_callback_lock);
	return ret;
}

/*
 * Removes what riw_helper_sk_hook() has installed, and waits for callbacks that use it. Returns the
 * pointer, or NULL if there was none.
 */
void *riw_helper_sk_unhook(struct sock *sk, const struct riw_sk_callbacks *original)
{
	void *user_data;

	write_lock_bh(&sk->sk_callback_lock);
	user_data = riw_sk_user_data(sk);
	if (user_data) {
		rcu_assign_sk_user_data(sk, NULL);
		riw_sk_set_callbacks(sk, original);
	}
	write_unlock_bh(&sk->sk_callback_lock);
	return user_data;
}

/* A listener's child inherits the callbacks, but not the user data. */
int riw_helper_sk_disinherit(struct sock *sk, const struct riw_sk_callbacks *original)
{
	int ret = -EBUSY;

	write_lock_bh(&sk->sk_callback_lock);
	if (!sk->sk_user_data) {
		riw_sk_set_callbacks(sk, original);
		ret = 0;
	}
	write_unlock_bh(&sk->sk_callback_lock);
	return ret;
}

void *riw_helper_sk_callback_enter(struct sock *sk)
{
	read_lock_bh(&sk->sk_callback_lock);
	return riw_sk_user_data(sk);
}

void riw_helper_sk_callback_exit(struct sock *sk)
{
	read_unlock_bh(&sk->sk_callback_lock);
}

/* As in sk_stream_write_space(): TCP calls sk_write_space() only while the flag is set. */
bool riw_helper_sk_stream_writeable(struct sock *sk)
{
	if (!sk->sk_socket || !sk_stream_is_writeable(sk))
		return false;
	clear_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
	return true;
}

int riw_helper_sk_state(struct sock *sk)
{
	return inet_sk_state_load(sk);
}

int riw_helper_sk_err(struct sock *sk)
{
	return READ_ONCE(sk->sk_err);
}

u32 riw_helper_tcp_mss(struct sock *sk)
{
	return READ_ONCE(tcp_sk(sk)->mss_cache);
}

/*
 * Returns the free space in the send buffer in bytes, if at least a third is free. Otherwise
 * returns 0, and TCP calls sk_write_space() when a third is free. As in tcp_poll(), test again
 * after setting the flag, to avoid a lost wakeup. In C: the barrier is a macro.
 */
size_t riw_helper_tcp_room(struct sock *sk)
{
	if (!sk_stream_is_writeable(sk)) {
		set_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
		/* The callback frees room, then looks at the flag. */
		smp_mb__after_atomic();
		if (!sk_stream_is_writeable(sk))
			return 0;
	}
	return max(sk_stream_wspace(sk), 1);
}

/*
 * Lets TCP call sk_write_space() at the next acknowledgment, as if there had been no room. TCP
 * enlarges the send buffer then, if the congestion window has grown (tcp_new_space()). With SCTP,
 * the watch calls back then, unless the send buffer is full even so.
 */
void riw_helper_sk_notify_room(struct sock *sk)
{
	set_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
}

/* Returns bytes acknowledged by the peer plus bytes received. The socket must be locked. */
u64 riw_helper_tcp_moved(struct sock *sk)
{
	return tcp_sk(sk)->bytes_acked + tcp_sk(sk)->bytes_received;
}

u32 riw_helper_tcp_unacked(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);

	return READ_ONCE(tp->write_seq) - READ_ONCE(tp->snd_una);
}

/* Returns tcpi_notsent_bytes of struct tcp_info. The socket must be locked. */
u32 riw_helper_tcp_unsent(struct sock *sk)
{
	return max_t(s32, 0, tcp_sk(sk)->write_seq - tcp_sk(sk)->snd_nxt);
}

/* Whether urgent data is unread. The socket must be locked. */
bool riw_helper_tcp_has_urgent(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return tp->urg_data && !before(tp->urg_seq, tp->copied_seq);
}

/*
 * Whether the receive buffer has room behind what is unread, as in tcp_epollin_ready(), with two
 * differences:
 *
 * - Memory pressure, of the host or of a memory cgroup, is no reason. TCP then makes the window
 *   smaller, and still queues what the peer sends. If it has to drop a segment, it calls
 *   data_ready().
 * - If the peer has used up the window, TCP may be about to open it again. The test for that is the
 *   one of __tcp_select_window().
 */
static bool riw_tcp_has_space(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	int mss = inet_csk(sk)->icsk_ack.rcv_mss, space = tcp_space(sk);

	if (atomic_read(&sk->sk_rmem_alloc) > sk->sk_rcvbuf - (sk->sk_rcvbuf >> 3))
		return false;
	if (tcp_receive_window(tp) > mss)
		return true;
	return space > 0 &&
	       round_down(space, 1 << tp->rx_opt.rcv_wscale) >= max(tcp_full_space(sk) >> 4, mss);
}

/*
 * Makes TCP call data_ready() only when `count` bytes are unread. Returns false if there is no need
 * to wait: the bytes are there, or the receive buffer has no room for more.
 *
 * Not tcp_set_rcvlowat(): it calls data_ready() from here. It also enlarges the receive buffer,
 * which riw_helper_tcp_reserve() has done.
 */
static bool riw_tcp_wait_for(struct sock *sk, u32 count)
{
	s32 unread = tcp_sk(sk)->rcv_nxt - tcp_sk(sk)->copied_seq;

	if (sk->sk_rcvlowat != count)
		WRITE_ONCE(sk->sk_rcvlowat, count);
	return unread <= 0 || (unread < (s32)count && riw_tcp_has_space(sk));
}

/*
 * Ends a look at the queue: takes `taken` bytes, which are there and not urgent, and then sets the
 * low-water mark as riw_tcp_wait_for() does, unless `lowat` is 0. The socket must be locked.
 */
u32 riw_helper_rx_finish(struct sock *sk, size_t taken, u32 lowat)
{
	u32 flags = 0;

	if (taken)
		tcp_read_done(sk, taken);
	if (lowat && riw_tcp_wait_for(sk, lowat))
		flags |= RIW_RX_WAITS;
	if (riw_helper_tcp_has_urgent(sk))
		flags |= RIW_RX_URGENT;
	return flags;
}

static int riw_tcp_all(read_descriptor_t *desc, struct sk_buff *skb, unsigned int offset,
		       size_t len)
{
	return len;
}

/*
 * Takes all bytes up to urgent data, and lets TCP call sk_data_ready() at every byte. The socket
 * must be locked. The actor is in C, as it has nothing to do.
 */
void riw_helper_tcp_discard(struct sock *sk)
{
	read_descriptor_t desc = { .count = 1 };

	riw_tcp_wait_for(sk, 1);
	tcp_read_sock(sk, &desc, riw_tcp_all);
}

/* Makes room for `count` bytes in the receive buffer. */
void riw_helper_tcp_reserve(struct socket *sock, u32 count)
{
	struct sock *sk = sock->sk;

	lock_sock(sk);
	/* tcp_set_rcvlowat(), which is not exported. */
	READ_ONCE(sock->ops)->set_rcvlowat(sk, count);
	WRITE_ONCE(sk->sk_rcvlowat, 1);
	release_sock(sk);
}

/* Resets the connection. The socket stays bound to its port, and can connect again. */
int riw_helper_tcp_disconnect(struct socket *sock)
{
	struct sockaddr_storage none = { .ss_family = AF_UNSPEC };
	int ret = kernel_connect(sock, (void *)&none, sizeof(none), 0);

	/* The error that tcp_disconnect() leaves would end the next connection. */
	sock_error(sock->sk);
	return ret;
}

/*
 * Gives up the local port of a TCP socket that is not connected, if it is an ephemeral one. The
 * address stays, and the next connect chooses a port. Returns whether it has done so.
 */
bool riw_helper_tcp_release_ephemeral_port(struct sock *sk)
{
	struct inet_sock *inet = inet_sk(sk);
	bool release;

	lock_sock(sk);
	release = sk->sk_state == TCP_CLOSE && inet_csk(sk)->icsk_bind_hash &&
		  riw_helper_port_is_ephemeral(sock_net(sk), inet->inet_num);
	if (release) {
		sk->sk_userlocks &= ~SOCK_BINDPORT_LOCK;
		sk->sk_prot->put_port(sk);
		inet->inet_sport = 0;
	}
	release_sock(sk);
	return release;
}

/*
 * Sets the TOS of IPv4 and the traffic class of IPv6, but not their bits for ECN. The kernel
 * exports no function for the traffic class.
 */
void riw_helper_sk_set_tos(struct sock *sk, int tos)
{
#if IS_ENABLED(CONFIG_IPV6)
	if (sk->sk_family == AF_INET6) {
		lock_sock(sk);
		inet6_sk(sk)->tclass = (inet6_sk(sk)->tclass & INET_ECN_MASK) |
				       (tos & ~INET_ECN_MASK);
		release_sock(sk);
	}
#endif
	/* An IPv6 socket may carry IPv4. */
	ip_sock_set_tos(sk, tos);
}

/* Lets the socket allocate memory without I/O. The flags for it are macros. */
void riw_helper_sk_avoid_io(struct sock *sk)
{
	lock_sock(sk);
	sk->sk_allocation = GFP_NOIO | (sk->sk_allocation & __GFP_MEMALLOC);
	release_sock(sk);
}

/* A socket with SOCK_MEMALLOC counts in memalloc_socks_key until riw_helper_socket_release(). */
void riw_helper_sk_use_reserves(struct sock *sk)
{
	lock_sock(sk);
	if (!sock_flag(sk, SOCK_MEMALLOC))
		sk_set_memalloc(sk);
	release_sock(sk);
}

/*
 * Must be called once for a listener's child, which inherits SOCK_MEMALLOC but is not counted. The
 * flag cannot be cleared instead: see riw_helper_socket_release().
 */
void riw_helper_sk_count_reserves(struct sock *sk)
{
	if (sock_flag(sk, SOCK_MEMALLOC))
		static_branch_inc(&memalloc_socks_key);
}

/* Gives a child the user of its listener. The accept gives it that of the task, a worker's. */
void riw_helper_sk_inherit_user(struct socket *child, const struct sock *listener)
{
	kuid_t uid = sk_uid(listener);

	SOCK_INODE(child)->i_uid = uid;
	WRITE_ONCE(child->sk->sk_uid, uid);
}

/*
 * Releases a socket, which riw_helper_socket_share() may have given a file.
 *
 * Not sk_clear_memalloc(): a packet from the reserves that passed the socket's filter earlier may
 * be in the backlog, and __sk_backlog_rcv() has a BUG_ON() for a socket without SOCK_MEMALLOC. So
 * the flag stays until the end of the socket, and only its part in the count of such sockets is
 * returned here. In C: that count is a static key.
 */
void riw_helper_socket_release(struct socket *sock)
{
	bool memalloc = sock_flag(sock->sk, SOCK_MEMALLOC);

	if (sock->file) {
		/*
		 * A process may have the file, too, so the connection is ended here. Without the
		 * connection, and with a reference to its namespace, the socket may last longer.
		 *
		 * Not __fput_sync(): it locks the inode, under which other sockets take the RTNL,
		 * which the caller may hold.
		 */
		tcp_abort(sock->sk, ECONNABORTED);
		fput(sock->file);
	} else {
		sock_release(sock);
	}
	if (memalloc)
		static_branch_dec(&memalloc_socks_key);
}

/* SO_REUSEPORT: whether the socket shares its port with others of its user that have this flag. */
void riw_helper_sk_share_port(struct sock *sk, bool on)
{
	lock_sock(sk);
	sk->sk_reuseport = on;
	release_sock(sk);
}

/* Must be called before the socket is bound. */
void riw_helper_sk_set_v6only(struct sock *sk, bool on)
{
	lock_sock(sk);
	sk->sk_ipv6only = on;
	release_sock(sk);
}
