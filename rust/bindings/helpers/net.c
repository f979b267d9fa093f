// SPDX-License-Identifier: GPL-2.0
/* C wrappers of macros and inline functions that rust/net needs. */
#include <linux/if_vlan.h>
#include <linux/inetdevice.h>
#include <linux/mm.h>
#include <linux/nsproxy.h>
#include <linux/sched/task.h>
#include <linux/wait_bit.h>
#include <net/addrconf.h>
#include <net/inet_ecn.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/netns/generic.h>
#include <net/tcp.h>

#include "net.h"

#define RIW_STAGING_ORDER 3

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
 * never accessed under them. The lock order that lockdep learns from other sockets does not apply.
 */
void riw_helper_sk_reclassify(struct sock *sk, bool sctp)
{
	bool v6 = sk->sk_family == AF_INET6;

	if (!sock_allow_reclassification(sk))
		return;
	sock_lock_init_class_and_name(sk, riw_slock_name[sctp][v6], &riw_slock_key[sctp][v6],
				      riw_lock_name[sctp][v6], &riw_lock_key[sctp][v6]);
}
#else
void riw_helper_sk_reclassify(struct sock *sk, bool sctp)
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

void riw_helper_lock_sock(struct sock *sk)
{
	lock_sock(sk);
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
 * after setting the flag, to avoid a lost wakeup.
 */
size_t riw_helper_tcp_room(struct sock *sk)
{
	if (!sk_stream_is_writeable(sk)) {
		set_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
		smp_mb__after_atomic();
		if (!sk_stream_is_writeable(sk))
			return 0;
	}
	return max(sk_stream_wspace(sk), 1);
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

static size_t riw_rx_size(const struct riw_rx_place *place)
{
	if (!place->frag)
		return skb_headlen(place->skb);
	return skb_frag_size(&skb_shinfo(place->skb)->frags[place->frag - 1]);
}

/* Moves to the next piece. Returns false if there is none, or if the CPU cannot read it. */
static bool riw_rx_next(struct sock *sk, struct riw_rx_place *place)
{
	const struct sk_buff *next;

	if (place->frag < skb_shinfo(place->skb)->nr_frags) {
		/* Not readable: device memory. */
		if (!skb_frags_readable(place->skb))
			return false;
		place->frag++;
		return true;
	}

	next = place->skb == place->head ? skb_shinfo(place->skb)->frag_list : place->skb->next;
	if (!next) {
		if (skb_queue_is_last(&sk->sk_receive_queue, place->head))
			return false;
		next = skb_queue_next(&sk->sk_receive_queue, place->head);
		/* The skbs may overlap: skip the part of the next one that this one has. */
		place->offset += TCP_SKB_CB(place->head)->seq + place->head->len -
				 TCP_SKB_CB(next)->seq;
		place->head = next;
	}
	place->skb = next;
	place->frag = 0;
	return true;
}

/* Moves to the piece that holds the next byte. Returns false if there is none. */
static bool riw_rx_settle(struct sock *sk, struct riw_rx_place *place)
{
	size_t size;

	while (place->offset >= (size = riw_rx_size(place))) {
		place->offset -= size;
		if (!riw_rx_next(sk, place)) {
			place->offset += size;
			return false;
		}
	}
	return true;
}

/*
 * Moves to the first byte that is not taken. Returns the number of bytes from there on, up to
 * urgent data. The socket must be locked.
 */
size_t riw_helper_rx_begin(struct sock *sk, struct riw_rx_place *place)
{
	u32 offset;
	int count;

	place->head = tcp_recv_skb(sk, tcp_sk(sk)->copied_seq, &offset);
	if (!place->head)
		return 0;
	place->skb = place->head;
	place->frag = 0;
	place->offset = offset;
	count = tcp_inq(sk);
	return count > 0 ? count : 0;
}

/* The caller guarantees that `count` bytes follow. */
void riw_helper_rx_advance(struct sock *sk, struct riw_rx_place *place, size_t count)
{
	if (!count)
		return;
	place->offset += count;
	riw_rx_settle(sk, place);
}

/*
 * Calls the actor for `len` bytes, from `skip` bytes behind `from` on, piece by piece. The caller
 * guarantees that the bytes exist. Returns the number of bytes passed: fewer than `len` if the CPU
 * cannot read the rest. The actor must not sleep.
 */
size_t riw_helper_rx_each(struct sock *sk, const struct riw_rx_place *from, size_t skip, size_t len,
			  riw_rx_actor_t actor, void *ctx)
{
	struct riw_rx_place place = *from;
	size_t done, n, offset;
	const skb_frag_t *frag;
	struct page *page;
	void *address;

	place.offset += skip;
	for (done = 0; done < len && riw_rx_settle(sk, &place); done += n) {
		n = min(riw_rx_size(&place) - place.offset, len - done);
		if (!place.frag) {
			actor(ctx, place.skb->data + place.offset, n);
		} else {
			frag = &skb_shinfo(place.skb)->frags[place.frag - 1];
			page = skb_frag_page(frag);
			offset = skb_frag_off(frag) + place.offset;
			if (skb_frag_must_loop(page)) {
				page += offset >> PAGE_SHIFT;
				offset = offset_in_page(offset);
				n = min(n, PAGE_SIZE - offset);
			}
			address = kmap_local_page(page);
			actor(ctx, address + offset, n);
			kunmap_local(address);
		}
		place.offset += n;
	}
	return done;
}

void riw_helper_copy_received(u8 *to, const u8 *from, size_t len)
{
	memcpy(to, from, len);
}

static int riw_tcp_count(read_descriptor_t *desc, struct sk_buff *skb, unsigned int offset,
			 size_t len)
{
	len = min(len, desc->count);
	desc->count -= len;
	return len;
}

/* Takes `count` bytes from the queue, or all up to urgent data. The socket must be locked. */
void riw_helper_tcp_take(struct sock *sk, size_t count)
{
	read_descriptor_t desc = { .count = count };

	tcp_read_sock(sk, &desc, riw_tcp_count);
}

bool riw_helper_tcp_has_urgent(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return tp->urg_data && !before(tp->urg_seq, tp->copied_seq);
}

/*
 * Makes TCP call data_ready() only when `count` bytes are unread. Returns false if there is no need
 * to wait: the bytes are there, the window is closing, or there is no memory for more.
 *
 * Not tcp_set_rcvlowat(): it calls data_ready() from here. It also enlarges the receive buffer,
 * which riw_helper_tcp_reserve() has done.
 */
bool riw_helper_tcp_wait_for(struct sock *sk, u32 count)
{
	if (sk->sk_rcvlowat != count)
		WRITE_ONCE(sk->sk_rcvlowat, count);
	return !tcp_epollin_ready(sk, count);
}

void riw_helper_tcp_reserve(struct socket *sock, u32 count)
{
	struct sock *sk = sock->sk;

	lock_sock(sk);
	/* tcp_set_rcvlowat(), which is not exported. */
	READ_ONCE(sock->ops)->set_rcvlowat(sk, count);
	WRITE_ONCE(sk->sk_rcvlowat, 1);
	release_sock(sk);
}

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

void riw_helper_sk_avoid_io(struct sock *sk)
{
	lock_sock(sk);
	sk->sk_allocation = GFP_NOIO;
	release_sock(sk);
}

/* Must be called before the socket is bound. */
void riw_helper_sk_set_v6only(struct sock *sk, bool on)
{
	lock_sock(sk);
	sk->sk_ipv6only = on;
	release_sock(sk);
}

/*
 * Allocates a (compound) page for `size` bytes (not 0): up to order 3 if that needs no effort,
 * otherwise order 0. Charges the active memory cgroup. May sleep.
 *
 * At the limit of the memory cgroup, a process meets the OOM killer. A worker gets NULL: its
 * process may be gone.
 */
struct page *riw_helper_staging_alloc(size_t size)
{
	gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_NOWARN;
	unsigned int order = min(get_order(size), RIW_STAGING_ORDER);
	struct page *page = NULL;

	if (order)
		page = alloc_pages(gfp | __GFP_COMP | __GFP_NORETRY | __GFP_NOMEMALLOC, order);
	if (page)
		return page;
	if (current->flags & PF_KTHREAD)
		gfp |= __GFP_RETRY_MAYFAIL;
	return alloc_page(gfp);
}

void *riw_helper_staging_address(struct page *page)
{
	return page_address(page);
}

size_t riw_helper_staging_size(struct page *page)
{
	return page_size(page);
}

bool riw_helper_staging_shared(struct page *page)
{
	return page_count(page) != 1;
}

void riw_helper_put_page(struct page *page)
{
	put_page(page);
}

struct net *riw_helper_dev_net(struct net_device *dev)
{
	struct net *net;

	rcu_read_lock();
	net = maybe_get_net(dev_net_rcu(dev));
	rcu_read_unlock();
	return net;
}

static unsigned int riw_net_id;

/* The number of riw's sockets in a namespace. */
static atomic_t *riw_net_sockets(struct net *net)
{
	return net_generic(net, riw_net_id);
}

static void riw_net_exit(struct net *net)
{
	atomic_t *sockets = riw_net_sockets(net);

	wait_var_event(sockets, !atomic_read_acquire(sockets));
}

static struct pernet_operations riw_net_ops = {
	.exit = riw_net_exit,
	.id = &riw_net_id,
	.size = sizeof(atomic_t),
};

int riw_helper_register_pernet(void)
{
	return register_pernet_subsys(&riw_net_ops);
}

void riw_helper_unregister_pernet(void)
{
	unregister_pernet_subsys(&riw_net_ops);
}

void riw_helper_count_socket(struct net *net)
{
	atomic_inc(riw_net_sockets(net));
}

/* The namespace may be freed on return. */
void riw_helper_uncount_socket(struct net *net)
{
	atomic_dec_and_wake_up(riw_net_sockets(net));
}

u64 riw_helper_net_cookie(const struct net *net)
{
	return net->net_cookie;
}

void riw_helper_get_net(struct net *net)
{
	get_net(net);
}

void riw_helper_put_net(struct net *net)
{
	put_net(net);
}

static size_t riw_dev_ip4_addrs(struct net_device *dev, struct sockaddr_storage *addrs, size_t max)
{
	const struct in_device *in_dev = __in_dev_get_rcu(dev);
	const struct in_ifaddr *ifa;
	size_t count = 0;

	if (!in_dev)
		return 0;
	in_dev_for_each_ifa_rcu(ifa, in_dev) {
		struct sockaddr_in *addr = (struct sockaddr_in *)&addrs[count];

		if (count == max)
			break;
		if (ifa->ifa_scope >= RT_SCOPE_LINK)
			continue;
		memset(&addrs[count++], 0, sizeof(addrs[0]));
		addr->sin_family = AF_INET;
		addr->sin_addr.s_addr = ifa->ifa_local;
	}
	return count;
}

static size_t riw_dev_ip6_addrs(struct net_device *dev, struct sockaddr_storage *addrs, size_t max)
{
	size_t count = 0;
#if IS_ENABLED(CONFIG_IPV6)
	struct inet6_dev *in6_dev = __in6_dev_get(dev);
	const struct inet6_ifaddr *ifa;

	if (!in6_dev)
		return 0;
	read_lock_bh(&in6_dev->lock);
	list_for_each_entry(ifa, &in6_dev->addr_list, if_list) {
		struct sockaddr_in6 *addr = (struct sockaddr_in6 *)&addrs[count];

		if (count == max)
			break;
		/* Those that cannot be used, or not for long. */
		if (ifa->flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED | IFA_F_DEPRECATED |
				  IFA_F_TEMPORARY) ||
		    ipv6_addr_type(&ifa->addr) & (IPV6_ADDR_LINKLOCAL | IPV6_ADDR_LOOPBACK))
			continue;
		memset(&addrs[count++], 0, sizeof(addrs[0]));
		addr->sin6_family = AF_INET6;
		addr->sin6_addr = ifa->addr;
	}
	read_unlock_bh(&in6_dev->lock);
#endif
	return count;
}

/*
 * Copies the first `max` addresses of a netdev, with port 0, without those that are valid on the host
 * or the link only. Returns their number.
 */
size_t riw_helper_dev_ip_addrs(struct net_device *dev, int family, struct sockaddr_storage *addrs,
			       size_t max)
{
	size_t count;

	rcu_read_lock();
	if (family == AF_INET)
		count = riw_dev_ip4_addrs(dev, addrs, max);
	else
		count = riw_dev_ip6_addrs(dev, addrs, max);
	rcu_read_unlock();
	return count;
}

/* Returns the index of the netdev that has a local address; 0 if there is none. */
int riw_helper_ip_owner(struct net *net, int family, const void *addr)
{
	struct net_device *dev = NULL;
	int ifindex = 0;

	rcu_read_lock();
	if (family == AF_INET)
		dev = __ip_dev_find(net, *(const __be32 *)addr, false);
#if IS_ENABLED(CONFIG_IPV6)
	else if (family == AF_INET6 && ipv6_mod_enabled())
		dev = ipv6_dev_find(net, addr, NULL);
#endif
	if (dev)
		ifindex = dev->ifindex;
	rcu_read_unlock();
	return ifindex;
}

/* Returns the index of the real netdev below a VLAN device; 0 if `ifindex` is not a VLAN. */
int riw_helper_vlan_real(struct net *net, int ifindex)
{
	struct net_device *dev;
	int real = 0;

	rcu_read_lock();
	dev = dev_get_by_index_rcu(net, ifindex);
	if (dev && is_vlan_dev(dev))
		real = vlan_dev_real_dev(dev)->ifindex;
	rcu_read_unlock();
	return real;
}

bool riw_helper_port_is_ephemeral(struct net *net, u16 port)
{
	int low, high;

	inet_get_local_port_range(net, &low, &high);
	return port >= low && port <= high;
}

void riw_helper_dev_hold(struct net_device *dev)
{
	dev_hold(dev);
}

void riw_helper_dev_put(struct net_device *dev)
{
	dev_put(dev);
}

int riw_helper_dev_ifindex(const struct net_device *dev)
{
	return READ_ONCE(dev->ifindex);
}

unsigned int riw_helper_dev_type(const struct net_device *dev)
{
	return dev->type;
}

unsigned int riw_helper_dev_mtu(const struct net_device *dev)
{
	return READ_ONCE(dev->mtu);
}

unsigned int riw_helper_dev_flags(const struct net_device *dev)
{
	return netif_get_flags(dev);
}

unsigned int riw_helper_dev_operstate(const struct net_device *dev)
{
	return READ_ONCE(dev->operstate);
}

bool riw_helper_dev_carrier(const struct net_device *dev)
{
	return netif_carrier_ok(dev);
}

bool riw_helper_dev_is_vlan(const struct net_device *dev)
{
	return is_vlan_dev(dev);
}

void riw_helper_dev_name_copy(struct net_device *dev, char *name)
{
	strscpy(name, dev->name, IFNAMSIZ);
}

unsigned int riw_helper_dev_address(const struct net_device *dev, u8 *addr)
{
	memcpy(addr, dev->dev_addr, dev->addr_len);
	return dev->addr_len;
}

int riw_helper_dev_master(struct net_device *dev)
{
	struct net_device *master;
	int ifindex = 0;

	rcu_read_lock();
	master = netdev_master_upper_dev_get_rcu(dev);
	if (master)
		ifindex = master->ifindex;
	rcu_read_unlock();
	return ifindex;
}

struct net_device *riw_helper_netdev_notifier_dev(void *info)
{
	return netdev_notifier_info_to_dev(info);
}
