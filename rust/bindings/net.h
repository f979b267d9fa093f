/* SPDX-License-Identifier: GPL-2.0 */
/* Headers that rust/net binds. */
#include <linux/crc32c.h>
#include <linux/if_arp.h>
#include <linux/netdevice.h>
#include <linux/uio.h>
#include <net/sock.h>
#include <net/tcp.h>
#include <uapi/linux/tls.h>
