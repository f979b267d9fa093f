// SPDX-License-Identifier: GPL-2.0
/*
 * C wrappers for rust/net and rust/kernel-ext: netdevs, their addresses, and namespaces.
 *
 * They are macros and inline functions of the kernel, which bindgen does not see, or look at
 * members of struct net_device or struct net, whose layouts depend on the configuration, and which
 * rust/bindings does not select. Where a helper has several steps, RCU or a lock protects what they
 * look at, and macros walk the lists.
 */
#include <linux/if_vlan.h>
#include <linux/inetdevice.h>
#include <linux/nsproxy.h>
#include <linux/sched/task.h>
#include <linux/wait_bit.h>
#include <net/addrconf.h>
#include <net/ip.h>
#include <net/l3mdev.h>
#include <net/netns/generic.h>

#include "net.h"

/* Returns the namespace of a netdev with a reference; NULL if it is being dismantled. */
struct net *riw_helper_dev_net(struct net_device *dev)
{
	struct net *net;

	rcu_read_lock();
	net = maybe_get_net(dev_net_rcu(dev));
	rcu_read_unlock();
	return net;
}

static unsigned int riw_net_id;

/* The number of riw's sockets in a namespace. In C: net_generic() and the waits are macros. */
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
 * Copies the first `max` addresses of a netdev, with port 0, without those that are valid on the
 * host or the link only. Returns their number.
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

#if IS_ENABLED(CONFIG_IPV6)
/* Finds the netdev that has an IPv6 address. ipv6_dev_find() does not look at netdevs in a VRF. */
static struct net_device *riw_ip6_owner(struct net *net, const struct in6_addr *addr)
{
	struct net_device *dev = ipv6_dev_find(net, addr, NULL);

	if (dev)
		return dev;
	for_each_netdev_rcu(net, dev)
		if (l3mdev_master_ifindex_rcu(dev) && ipv6_chk_addr(net, addr, dev, 1))
			return dev;
	return NULL;
}
#endif

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
		dev = riw_ip6_owner(net, addr);
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

/* In C: riw_helper_tcp_release_ephemeral_port() calls it, too. */
bool riw_helper_port_is_ephemeral(struct net *net, u16 port)
{
	int low, high;

	inet_get_local_port_range(net, &low, &high);
	return port >= low && port <= high;
}

/* Whether a listener of TCP that is in no VRF gets the connections of all VRFs, too. */
bool riw_helper_tcp_l3mdev_accept(const struct net *net)
{
#ifdef CONFIG_NET_L3_MASTER_DEV
	return READ_ONCE(net->ipv4.sysctl_tcp_l3mdev_accept);
#else
	return false;
#endif
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

bool riw_helper_dev_carrier(const struct net_device *dev)
{
	return netif_carrier_ok(dev);
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

/* Returns the index of the VRF device that a netdev is, or is a port of; 0 if there is none. */
int riw_helper_dev_l3_master(struct net_device *dev)
{
	return l3mdev_master_ifindex(dev);
}

struct net_device *riw_helper_netdev_notifier_dev(void *info)
{
	return netdev_notifier_info_to_dev(info);
}
