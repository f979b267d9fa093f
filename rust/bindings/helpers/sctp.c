// SPDX-License-Identifier: GPL-2.0
/*
 * SCTP sockets, for rust/net.
 *
 * sctp.ko exports nothing that this file uses: the module needs it only when a socket is made. The
 * kernel cannot call SCTP's getsockopt(), so these functions read its structures, under the
 * socket's lock.
 *
 * That is why they are in C: riw does not bind these structures, which have bit fields, unions and
 * lists, and depend on the configuration. The structs of its setsockopt() and its control messages
 * are filled here, too: KERNEL_SOCKPTR() and the macros of control messages are not for Rust. The
 * values that riw sets are constants beside the structs that they go into.
 */
#include <linux/jiffies.h>
#include <linux/net.h>
#include <linux/sctp.h>
#include <linux/uio.h>
#include <net/sctp/structs.h>
#include <net/sctp/tsnmap.h>

#include "net.h"
#include "sctp.h"

/* ms. A peer like this one acknowledges within RIW_SCTP_SACK_DELAY. */
#define RIW_SCTP_RTO_INITIAL 1000
#define RIW_SCTP_RTO_MIN 250
/* Also the time, at most, after which a path that had failed is tried again. */
#define RIW_SCTP_RTO_MAX 10000
#define RIW_SCTP_SACK_DELAY 20

/*
 * Of an association with several paths. Data moves to another path after the first timeout (RFC
 * 7829), or where net.sctp.pf_enable forbids that, after four: 250 ms to 4 s with the RTO of a LAN.
 * A path that is given up too early costs little: one heartbeat brings it back. Heartbeats find out
 * within seconds that a path that is not used has failed, or works again.
 */
#define RIW_SCTP_PATH_RETRANS 3
#define RIW_SCTP_PATH_HEARTBEAT 5000

static int riw_sctp_set(struct socket *sock, int option, void *value, unsigned int len)
{
	return READ_ONCE(sock->ops)->setsockopt(sock, SOL_SCTP, option, KERNEL_SOCKPTR(value), len);
}

/* To be called before the socket connects or listens. Half of `receive` is the window. */
int riw_helper_sctp_setup(struct socket *sock, u32 adaptation, u32 send, u32 receive)
{
	struct sctp_setadaptation indication = { .ssb_adaptation_ind = adaptation };
	struct sctp_initmsg streams = { .sinit_num_ostreams = 1, .sinit_max_instreams = 1 };
	struct sctp_event change = { .se_type = SCTP_ASSOC_CHANGE, .se_on = 1 };
	/* Without it, a message could follow the first part of one that SCTP has given up. */
	struct sctp_event partial = { .se_type = SCTP_PARTIAL_DELIVERY_EVENT, .se_on = 1 };
	struct sctp_assoc_value off = { .assoc_value = 0 };
	struct sctp_rtoinfo rto = {
		.srto_initial = RIW_SCTP_RTO_INITIAL,
		.srto_min = RIW_SCTP_RTO_MIN,
		.srto_max = RIW_SCTP_RTO_MAX,
	};
	struct sctp_assocparams limits = { .sasoc_asocmaxrxt = RIW_SCTP_RETRANS };
	struct sctp_sack_info sack = { .sack_delay = RIW_SCTP_SACK_DELAY, .sack_freq = 2 };
	struct sock *sk = sock->sk;
	int on = 1, ret;

	lock_sock(sk);
	/* There is no autotuning. */
	WRITE_ONCE(sk->sk_sndbuf, send);
	WRITE_ONCE(sk->sk_rcvbuf, receive);
	sk->sk_userlocks |= SOCK_SNDBUF_LOCK | SOCK_RCVBUF_LOCK;
	release_sock(sk);

	ret = riw_sctp_set(sock, SCTP_ADAPTATION_LAYER, &indication, sizeof(indication));
	ret = ret ?: riw_sctp_set(sock, SCTP_INITMSG, &streams, sizeof(streams));
	ret = ret ?: riw_sctp_set(sock, SCTP_EVENT, &change, sizeof(change));
	ret = ret ?: riw_sctp_set(sock, SCTP_EVENT, &partial, sizeof(partial));
	ret = ret ?: riw_sctp_set(sock, SCTP_PR_SUPPORTED, &off, sizeof(off));
	/* The peer adds no address to those of its INIT. */
	ret = ret ?: riw_sctp_set(sock, SCTP_ASCONF_SUPPORTED, &off, sizeof(off));
	ret = ret ?: riw_sctp_set(sock, SCTP_RTOINFO, &rto, sizeof(rto));
	ret = ret ?: riw_sctp_set(sock, SCTP_ASSOCINFO, &limits, sizeof(limits));
	ret = ret ?: riw_sctp_set(sock, SCTP_DELAYED_SACK, &sack, sizeof(sack));
	ret = ret ?: riw_sctp_set(sock, SCTP_NODELAY, &on, sizeof(on));
	return ret ?: riw_sctp_set(sock, SCTP_RECVRCVINFO, &on, sizeof(on));
}

/* The only association of the socket. The socket must be locked. */
static struct sctp_association *riw_sctp_asoc(struct sock *sk)
{
	return list_first_entry_or_null(&sctp_sk(sk)->ep->asocs, struct sctp_association, asocs);
}

/*
 * Makes the receive buffer of an association larger. The next acknowledgment announces the larger
 * window. SO_RCVBUF does not change the window of an association that exists.
 */
void riw_helper_sctp_widen(struct sock *sk, u32 receive)
{
	struct sctp_association *asoc;
	u32 more, over;

	lock_sock(sk);
	asoc = riw_sctp_asoc(sk);
	if (asoc && receive > sk->sk_rcvbuf) {
		more = (receive - sk->sk_rcvbuf) / 2;
		/* Bytes that the peer has sent beyond the window. */
		over = min(asoc->rwnd_over, more);
		asoc->rwnd_over -= over;
		asoc->rwnd += more - over;
		WRITE_ONCE(sk->sk_rcvbuf, receive);
	}
	release_sock(sk);
}

/* Binds a bound socket to one more address. Its port is 0, or the socket's. */
int riw_helper_sctp_bind_more(struct socket *sock, struct sockaddr_storage *addr, int len)
{
	return riw_sctp_set(sock, SCTP_SOCKOPT_BINDX_ADD, addr, len);
}

/* 0: no heartbeats. */
int riw_helper_sctp_set_heartbeat(struct socket *sock, u32 ms)
{
	struct sctp_paddrparams params = {
		.spp_hbinterval = ms,
		.spp_flags = ms ? SPP_HB_ENABLE : SPP_HB_DISABLE,
	};

	return riw_sctp_set(sock, SCTP_PEER_ADDR_PARAMS, &params, sizeof(params));
}

/*
 * Lets an association use its paths, beside the primary one. A path needs a heartbeat before it can
 * be used, also if the peer is not to be probed otherwise.
 */
static int riw_sctp_tune_paths(struct socket *sock, unsigned int heartbeat)
{
	struct sctp_paddrthlds limits = {
		.spt_address.ss_family = AF_INET,
		.spt_pathmaxrxt = RIW_SCTP_PATH_RETRANS,
	};
	int ret = riw_sctp_set(sock, SCTP_PEER_ADDR_THLDS, &limits, sizeof(limits));

	return ret ?: riw_helper_sctp_set_heartbeat(sock, heartbeat);
}

/*
 * With packets as large as the window of the beginning, a delayed SACK would delay each of them. So
 * acknowledge each packet then. What is decided here depends on members of the association.
 */
int riw_helper_sctp_tune(struct socket *sock)
{
	struct sctp_sack_info sack = { .sack_delay = RIW_SCTP_SACK_DELAY, .sack_freq = 1 };
	unsigned int heartbeat = RIW_SCTP_PATH_HEARTBEAT;
	bool large = false, multihomed = false;
	struct sctp_association *asoc;
	struct sock *sk = sock->sk;
	int ret = 0;

	lock_sock(sk);
	asoc = riw_sctp_asoc(sk);
	if (asoc) {
		large = asoc->pathmtu > SZ_16K;
		multihomed = asoc->peer.transport_count > 1;
		if (asoc->param_flags & SPP_HB_ENABLE)
			heartbeat = min(heartbeat, jiffies_to_msecs(asoc->hbinterval));
	}
	release_sock(sk);
	/* A socket of this style has one association, which is meant by any id. */
	if (large)
		ret = riw_sctp_set(sock, SCTP_DELAYED_SACK, &sack, sizeof(sack));
	if (multihomed)
		ret = ret ?: riw_sctp_tune_paths(sock, heartbeat);
	return ret;
}

/*
 * Lets a child check the cookies that its listener has made. SCTP gives it a key of its own. So if
 * the COOKIE ACK is lost, the peer repeats its COOKIE ECHO, the child discards it, and the peer
 * never connects.
 */
void riw_helper_sctp_share_cookie_key(struct sock *child, struct sock *listener)
{
	lock_sock(child);
	/* The listener's own does not change. */
	sctp_sk(child)->ep->cookie_auth_key = sctp_sk(listener)->ep->cookie_auth_key;
	release_sock(child);
}

/* Returns the ms since the peer's last packet, by any path; U32_MAX if there has been none. */
static u32 riw_sctp_silence(const struct sctp_association *asoc)
{
	const struct sctp_transport *path;
	ktime_t heard = 0;
	s64 ms;

	list_for_each_entry(path, &asoc->peer.transport_addr_list, transports)
		heard = max(heard, path->last_time_heard);
	if (!heard)
		return U32_MAX;
	ms = ktime_ms_delta(ktime_get(), heard);
	return clamp_t(s64, ms, 0, U32_MAX);
}

static enum riw_sctp_phase riw_sctp_phase(const struct sctp_association *asoc)
{
	if (!asoc)
		return RIW_SCTP_GONE;
	switch (asoc->state) {
	case SCTP_STATE_CLOSED:
		return RIW_SCTP_GONE;
	case SCTP_STATE_COOKIE_WAIT:
	case SCTP_STATE_COOKIE_ECHOED:
		return RIW_SCTP_CONNECTING;
	case SCTP_STATE_ESTABLISHED:
		return RIW_SCTP_ESTABLISHED;
	default:
		return RIW_SCTP_SHUTDOWN;
	}
}

/* Whether more is to be read than the event that the association is up. Socket: locked. */
static bool riw_sctp_has_received(struct sock *sk)
{
	struct sk_buff *skb;

	skb_queue_walk(&sk->sk_receive_queue, skb) {
		const union sctp_notification *event = (const void *)skb->data;

		if (!(sctp_skb2event(skb)->msg_flags & MSG_NOTIFICATION) ||
		    event->sn_header.sn_type != SCTP_ASSOC_CHANGE ||
		    event->sn_assoc_change.sac_state != SCTP_COMM_UP)
			return true;
	}
	return false;
}

/*
 * Whether more is queued than user data can be: SCTP discards data as soon as the socket's buffer
 * is full, but queues an event for each restart. Socket: locked.
 */
static bool riw_sctp_is_flooded(const struct sctp_association *asoc)
{
	return atomic_read(&asoc->rmem_alloc) > 2 * (s64)asoc->base.sk->sk_rcvbuf + SZ_64K;
}

/*
 * Fills `look`. In one function, for the values are of one moment: all are read under one lock. May
 * sleep.
 */
void riw_helper_sctp_look(struct sock *sk, struct riw_sctp_look *look)
{
	struct sctp_association *asoc;

	memset(look, 0, sizeof(*look));
	lock_sock(sk);
	asoc = riw_sctp_asoc(sk);
	look->phase = riw_sctp_phase(asoc);
	look->err = READ_ONCE(sk->sk_err);
	if (asoc) {
		look->adaptation = asoc->peer.adaptation_ind;
		look->chunk = asoc->frag_point;
		look->unsent = asoc->outqueue.out_qlen;
		look->unacked = look->unsent + asoc->outqueue.outstanding_bytes;
		look->received = riw_sctp_has_received(sk);
		look->flooded = riw_sctp_is_flooded(asoc);
		look->addrs = asoc->peer.transport_count;
		look->silence = riw_sctp_silence(asoc);
		look->moved = (u64)asoc->ctsn_ack_point +
			      sctp_tsnmap_get_ctsn(&asoc->peer.tsn_map);
		look->tags = (u64)asoc->c.my_vtag << 32 | asoc->c.peer_vtag;
	}
	release_sock(sk);
}

/* SCTP gives global addresses a scope, too, and a local address none: the path gives it. */
static void riw_sctp_addr(struct sockaddr_storage *to, const union sctp_addr *from, u16 port,
			  u32 scope)
{
	if (from->sa.sa_family == AF_INET6) {
		struct sockaddr_in6 *to6 = (struct sockaddr_in6 *)to;

		memcpy(to6, &from->v6, sizeof(from->v6));
		to6->sin6_port = htons(port);
		if (!(ipv6_addr_type(&to6->sin6_addr) & IPV6_ADDR_LINKLOCAL))
			scope = 0;
		to6->sin6_scope_id = scope;
	} else {
		memcpy(to, &from->v4, sizeof(from->v4));
		((struct sockaddr_in *)to)->sin_port = htons(port);
	}
}

/*
 * The addresses of the primary path. A child of a wildcard listener does not know its own address
 * otherwise. Returns false if there is no association.
 */
bool riw_helper_sctp_addrs(struct sock *sk, struct sockaddr_storage *local,
			   struct sockaddr_storage *remote)
{
	struct sctp_association *asoc;

	lock_sock(sk);
	asoc = riw_sctp_asoc(sk);
	if (asoc) {
		const union sctp_addr *peer = &asoc->peer.primary_addr;
		const union sctp_addr *own = &asoc->peer.primary_path->saddr;
		u32 scope = peer->sa.sa_family == AF_INET6 ? peer->v6.sin6_scope_id : 0;

		riw_sctp_addr(local, own, asoc->base.bind_addr.port, scope);
		riw_sctp_addr(remote, peer, asoc->peer.port, scope);
	}
	release_sock(sk);
	return asoc;
}

/* Free bytes of the send buffer. If there are any, SCTP wakes waiters: __sctp_write_space(). */
static size_t riw_sctp_wspace(const struct sctp_association *asoc)
{
	struct sock *sk = asoc->base.sk;
	int used = asoc->ep->sndbuf_policy ? asoc->sndbuf_used : sk_wmem_alloc_get(sk);

	return max(sk->sk_sndbuf - max(used, sk->sk_wmem_queued), 0);
}

/*
 * Returns the free space in the send buffer in bytes, headers and bookkeeping included; 1 if there
 * is no association: sending then returns the reason. After 0, the watch calls back. Every
 * acknowledged chunk makes SCTP look for room, under the lock.
 */
size_t riw_helper_sctp_room(struct sock *sk, u32 *chunk)
{
	struct sctp_association *asoc;
	size_t room;

	lock_sock(sk);
	asoc = riw_sctp_asoc(sk);
	room = asoc ? riw_sctp_wspace(asoc) : 1;
	*chunk = asoc ? asoc->frag_point : 0;
	if (!room)
		set_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
	release_sock(sk);
	return room;
}

/*
 * Tells how a send fails that has found no room or no memory: EAGAIN if data is in flight, whose
 * acknowledgment calls back; ENOBUFS if none is.
 */
static int riw_sctp_no_room(struct sock *sk)
{
	int ret;

	lock_sock(sk);
	set_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
	if (!riw_sctp_asoc(sk))
		ret = -EPIPE;
	else
		ret = sk->sk_wmem_queued ? -EAGAIN : -ENOBUFS;
	release_sock(sk);
	return ret;
}

/* A send takes the error of the association, which the next receive must find. Not -ESHUTDOWN. */
static void riw_sctp_keep_error(struct sock *sk, int ret)
{
	lock_sock(sk);
	if (ret != -EPIPE && ret != -ESHUTDOWN && !riw_sctp_asoc(sk) && !sk->sk_err)
		WRITE_ONCE(sk->sk_err, -ret);
	release_sock(sk);
}

static int riw_sctp_send(struct socket *sock, struct msghdr *msg, u32 ppid)
{
	struct iov_iter iter = msg->msg_iter;
	union {
		struct cmsghdr header;
		u8 space[CMSG_SPACE(sizeof(struct sctp_sndinfo))];
	} control = {};
	struct sctp_sndinfo *info = CMSG_DATA(&control.header);
	int last, ret = 0;

	control.header.cmsg_level = SOL_SCTP;
	control.header.cmsg_type = SCTP_SNDINFO;
	control.header.cmsg_len = CMSG_LEN(sizeof(*info));
	info->snd_flags = SCTP_UNORDERED;
	/* SCTP does not convert it. */
	info->snd_ppid = (__force u32)htonl(ppid);

	/*
	 * All may have been acknowledged between the attempt and the look. So only an attempt that
	 * began with nothing in flight shows a lack of memory: nobody else sends.
	 *
	 * In C: the message is built here, and an attempt uses it up.
	 */
	do {
		last = ret;
		msg->msg_iter = iter;
		msg->msg_control = &control;
		msg->msg_controllen = sizeof(control);
		msg->msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL;
		ret = sock_sendmsg(sock, msg);
		if (ret != -EAGAIN && ret != -ENOMEM && ret != -ENOBUFS) {
			if (ret < 0)
				riw_sctp_keep_error(sock->sk, ret);
			return ret;
		}
		ret = riw_sctp_no_room(sock->sk);
	} while (ret == -ENOBUFS && last != -ENOBUFS);
	return ret;
}

/* Sends the first `len` bytes of `vecs` as one message, all or nothing. The bytes are copied. */
int riw_helper_sctp_send_pages(struct socket *sock, const struct bio_vec *vecs, size_t count,
			       size_t len, u32 ppid)
{
	struct msghdr msg = {};

	iov_iter_bvec(&msg.msg_iter, ITER_SOURCE, vecs, count, len);
	return riw_sctp_send(sock, &msg, ppid);
}

/* Sends both pieces as one message, all or nothing. */
int riw_helper_sctp_send(struct socket *sock, const u8 *first, size_t first_len, const u8 *second,
			 size_t second_len, u32 ppid)
{
	struct kvec vecs[] = {
		{ .iov_base = (void *)first, .iov_len = first_len },
		{ .iov_base = (void *)second, .iov_len = second_len },
	};
	struct msghdr msg = {};

	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, vecs, ARRAY_SIZE(vecs), first_len + second_len);
	return riw_sctp_send(sock, &msg, ppid);
}

/*
 * Receives a message, or the next part of one that is longer than `len`. Returns its length; 0 if
 * there is nothing and the peer has shut the association down.
 */
int riw_helper_sctp_recv(struct socket *sock, u8 *to, size_t len, struct riw_sctp_part *part)
{
	union {
		struct cmsghdr header;
		u8 space[CMSG_SPACE(sizeof(struct sctp_rcvinfo))];
	} control = {};
	const struct sctp_rcvinfo *info = CMSG_DATA(&control.header);
	struct msghdr msg = { .msg_control = &control, .msg_controllen = sizeof(control) };
	struct kvec vec = { .iov_base = to, .iov_len = len };
	int ret;

	memset(part, 0, sizeof(*part));
	ret = kernel_recvmsg(sock, &msg, &vec, 1, len, MSG_DONTWAIT);
	if (ret <= 0)
		return ret;
	part->last = msg.msg_flags & MSG_EOR;
	part->event = msg.msg_flags & MSG_NOTIFICATION;
	if (control.header.cmsg_level == SOL_SCTP && control.header.cmsg_type == SCTP_RCVINFO &&
	    control.header.cmsg_len == CMSG_LEN(sizeof(*info))) {
		part->ppid = ntohl((__force __be32)info->rcv_ppid);
	}
	return ret;
}

/* Whether an event reports a restart of the peer: data that it has not acknowledged is lost. */
bool riw_helper_sctp_restarted(const u8 *event, size_t len)
{
	struct sctp_assoc_change change;

	if (len < sizeof(change))
		return false;
	memcpy(&change, event, sizeof(change));
	return change.sac_type == SCTP_ASSOC_CHANGE && change.sac_state == SCTP_RESTART;
}
