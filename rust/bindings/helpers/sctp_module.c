// SPDX-License-Identifier: GPL-2.0
/*
 * The module sctp, for rust/net. In C: the functions that hold a module are inline without
 * CONFIG_MODULES, and READ_ONCE(), cmpxchg() and the barriers are macros.
 */
#include <linux/module.h>
#include <linux/net.h>

#include "net.h"
#include "sctp.h"

/* sctp.ko, unless it is built in. */
static struct module *riw_sctp_module;
static bool riw_sctp_loaded;

/*
 * Loads sctp.ko, and keeps it until riw_helper_sctp_unload(): no socket loads it then. Waits for
 * modprobe. sctp.ko waits for all network namespaces that are being dismantled, and these for their
 * netdevs. So the caller must hold no lock, and nothing that the unregistration of a netdev waits
 * for.
 */
int riw_helper_sctp_load(void)
{
	struct module *owner;
	struct socket *sock;
	int ret;

	if (riw_helper_sctp_is_loaded())
		return 0;
	ret = sock_create_kern(&init_net, AF_INET, SOCK_STREAM, IPPROTO_SCTP, &sock);
	if (ret)
		return ret;
	owner = READ_ONCE(sock->ops)->owner;
	/* The socket has a reference. */
	__module_get(owner);
	sock_release(sock);
	if (cmpxchg(&riw_sctp_module, NULL, owner))
		module_put(owner);
	/* Pairs with riw_helper_sctp_is_loaded(): a caller that sees it may make sockets. */
	smp_store_release(&riw_sctp_loaded, true);
	return 0;
}

bool riw_helper_sctp_is_loaded(void)
{
	/* Pairs with riw_helper_sctp_load(). */
	return smp_load_acquire(&riw_sctp_loaded);
}

/* There must be no SCTP socket, and no other caller of these three functions. */
void riw_helper_sctp_unload(void)
{
	riw_sctp_loaded = false;
	module_put(riw_sctp_module);
	riw_sctp_module = NULL;
}
