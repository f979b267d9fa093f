/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RIW_HELPERS_NET_H
#define RIW_HELPERS_NET_H

#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <net/net_namespace.h>
#include <net/sock.h>

/* The socket callbacks that rust/net replaces. */
struct riw_sk_callbacks {
	void (*data_ready)(struct sock *sk);
	void (*write_space)(struct sock *sk);
	void (*state_change)(struct sock *sk);
	void (*error_report)(struct sock *sk);
};

/* A place in a socket's receive queue: `offset` bytes into a piece, which may be behind its end. */
struct riw_rx_place {
	const struct sk_buff *head;	/* in the queue */
	const struct sk_buff *skb;	/* head, or in its frag_list */
	unsigned int frag;		/* 0: the linear part; n: fragment n - 1 */
	unsigned int offset;
	const u8 *data;			/* the byte at the place, with `run` contiguous bytes */
	size_t run;			/* 0: they have to be mapped, or cannot be read */
};

/* riw_helper_rx_finish() */
#define RIW_RX_WAITS	1
#define RIW_RX_URGENT	2

/* Called with received data, which may change during the call. Must not sleep. */
typedef void (*riw_rx_actor_t)(void *ctx, const u8 *data, size_t len);

void riw_helper_sk_reclassify(struct sock *sk);
void riw_helper_sk_setup(struct sock *sk);
void riw_helper_sk_callbacks(struct sock *sk, struct riw_sk_callbacks *callbacks);
int riw_helper_sk_hook(struct sock *sk, void *user_data, const struct riw_sk_callbacks *callbacks);
void *riw_helper_sk_unhook(struct sock *sk, const struct riw_sk_callbacks *original);
int riw_helper_sk_disinherit(struct sock *sk, const struct riw_sk_callbacks *original);
void *riw_helper_sk_callback_enter(struct sock *sk);
void riw_helper_sk_callback_exit(struct sock *sk);
bool riw_helper_sk_stream_writeable(struct sock *sk);
int riw_helper_sk_state(struct sock *sk);
int riw_helper_sk_err(struct sock *sk);
u32 riw_helper_tcp_mss(struct sock *sk);
size_t riw_helper_tcp_room(struct sock *sk);
void riw_helper_sk_notify_room(struct sock *sk);
u32 riw_helper_tcp_unacked(struct sock *sk);
u32 riw_helper_tcp_unsent(struct sock *sk);
u64 riw_helper_tcp_moved(struct sock *sk);
size_t riw_helper_rx_begin(struct sock *sk, struct riw_rx_place *place);
void riw_helper_rx_advance(struct sock *sk, struct riw_rx_place *place, size_t count);
size_t riw_helper_rx_each(struct sock *sk, const struct riw_rx_place *from, size_t skip, size_t len,
			  riw_rx_actor_t actor, void *ctx);
u32 riw_helper_rx_finish(struct sock *sk, size_t taken, u32 lowat);
void *riw_helper_recv_buf_alloc(size_t size);
void riw_helper_tcp_discard(struct sock *sk);
bool riw_helper_tcp_has_urgent(struct sock *sk);
void riw_helper_tcp_reserve(struct socket *sock, u32 count);
int riw_helper_tcp_disconnect(struct socket *sock);
bool riw_helper_tcp_release_ephemeral_port(struct sock *sk);
void riw_helper_sk_set_tos(struct sock *sk, int tos);
void riw_helper_sk_avoid_io(struct sock *sk);
void riw_helper_sk_use_reserves(struct sock *sk);
void riw_helper_sk_count_reserves(struct sock *sk);
void riw_helper_sk_inherit_user(struct socket *child, const struct sock *listener);
void riw_helper_socket_release(struct socket *sock);
void riw_helper_sk_share_port(struct sock *sk, bool on);
void riw_helper_sk_set_v6only(struct sock *sk, bool on);

struct page *riw_helper_staging_alloc(size_t size);
void *riw_helper_staging_address(struct page *page);
size_t riw_helper_staging_size(struct page *page);
bool riw_helper_staging_shared(struct page *page);
void riw_helper_put_page(struct page *page);

struct net *riw_helper_dev_net(struct net_device *dev);
int riw_helper_register_pernet(void);
void riw_helper_unregister_pernet(void);
void riw_helper_count_socket(struct net *net);
void riw_helper_uncount_socket(struct net *net);
u64 riw_helper_net_cookie(const struct net *net);
void riw_helper_get_net(struct net *net);
void riw_helper_put_net(struct net *net);
int riw_helper_ip_owner(struct net *net, int family, const void *addr);
int riw_helper_vlan_real(struct net *net, int ifindex);

bool riw_helper_tcp_l3mdev_accept(const struct net *net);
bool riw_helper_port_is_ephemeral(struct net *net, u16 port);

void riw_helper_dev_hold(struct net_device *dev);
void riw_helper_dev_put(struct net_device *dev);
int riw_helper_dev_ifindex(const struct net_device *dev);
unsigned int riw_helper_dev_type(const struct net_device *dev);
unsigned int riw_helper_dev_mtu(const struct net_device *dev);
bool riw_helper_dev_carrier(const struct net_device *dev);
void riw_helper_dev_name_copy(struct net_device *dev, char *name);
unsigned int riw_helper_dev_address(const struct net_device *dev, u8 *addr);
int riw_helper_dev_l3_master(struct net_device *dev);
size_t riw_helper_dev_ip_addrs(struct net_device *dev, int family, struct sockaddr_storage *addrs,
			       size_t max);
struct net_device *riw_helper_netdev_notifier_dev(void *info);

#endif
