/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RIW_HELPERS_SCTP_H
#define RIW_HELPERS_SCTP_H

#include <linux/bvec.h>
#include <linux/socket.h>
#include <net/sock.h>

enum riw_sctp_phase {
	RIW_SCTP_CONNECTING,
	RIW_SCTP_ESTABLISHED,
	/* Either side shuts the association down: no message can be sent any more. */
	RIW_SCTP_SHUTDOWN,
	RIW_SCTP_GONE,
};

/* An association, at one moment. All but the first two are 0 if it is gone. */
struct riw_sctp_look {
	enum riw_sctp_phase phase;
	int err;		/* of the socket, not negative */
	u32 adaptation;		/* the peer's indication; 0 if it has sent none */
	u32 chunk;		/* user data of the largest message that is not fragmented */
	u32 unacked;		/* bytes of user data */
	u32 unsent;
	bool received;		/* something is to be read, other than the event that it is up */
	bool flooded;		/* more is to be read than user data can be */
	u32 addrs;		/* of the peer */
	u32 silence;		/* ms since the last packet of the peer; U32_MAX: none */
	u64 moved;		/* changes when either side has received something */
	u64 tags;		/* of both sides; a restart changes them */
};

/* A received message, or a part of it. */
struct riw_sctp_part {
	u32 ppid;
	bool last;		/* the end of the message is in this part */
	bool event;		/* not user data, but a union sctp_notification */
};

/*
 * Messages without an answer until an association ends (Association.Max.Retrans of RFC 9260): for
 * about 200 s with data in flight, as with the kernel's own values, 10 and an RTO of up to 60 s.
 * They count over all paths, so 10 would end an association with two paths within 15 s.
 */
#define RIW_SCTP_RETRANS 24

struct riw_sctp_watch;

int riw_helper_sctp_load(void);
bool riw_helper_sctp_is_loaded(void);
void riw_helper_sctp_unload(void);
int riw_helper_sctp_setup(struct socket *sock, u32 adaptation, u32 send, u32 receive);
void riw_helper_sctp_widen(struct sock *sk, u32 receive);
int riw_helper_sctp_bind_more(struct socket *sock, struct sockaddr_storage *addr, int len);
int riw_helper_sctp_tune(struct socket *sock);
int riw_helper_sctp_set_heartbeat(struct socket *sock, u32 ms);
void riw_helper_sctp_share_cookie_key(struct sock *child, struct sock *listener);
void riw_helper_sctp_look(struct sock *sk, struct riw_sctp_look *look);
bool riw_helper_sctp_addrs(struct sock *sk, struct sockaddr_storage *local,
			   struct sockaddr_storage *remote);
size_t riw_helper_sctp_room(struct sock *sk, u32 *chunk);
int riw_helper_sctp_send_pages(struct socket *sock, const struct bio_vec *vecs, size_t count,
			       size_t len, u32 ppid);
int riw_helper_sctp_send(struct socket *sock, const u8 *first, size_t first_len, const u8 *second,
			 size_t second_len, u32 ppid);
int riw_helper_sctp_recv(struct socket *sock, u8 *to, size_t len, struct riw_sctp_part *part);
bool riw_helper_sctp_restarted(const u8 *event, size_t len);
struct riw_sctp_watch *riw_helper_sctp_watch(struct sock *sk, void (*room)(void *ctx), void *ctx);
void riw_helper_sctp_unwatch(struct riw_sctp_watch *watch);

#endif
