/* SPDX-License-Identifier: GPL-2.0 */
/* Headers that rust/net and rust/kernel-ext bind. */
#include <linux/crc32c.h>
#include <linux/delay.h>
#include <linux/if_arp.h>
#include <linux/key.h>
#include <linux/netdevice.h>
#include <linux/random.h>
#include <linux/siphash.h>
#include <linux/uio.h>
#include <net/sock.h>
#include <net/tcp.h>
#include <uapi/linux/tls.h>
/* It needs <linux/key.h>. */
#include <net/handshake.h>
