/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Included before arch/um/drivers/vector_transports.c: the transport "fdvnet", for the bench of two machines. Packets
 * on the file descriptor begin with a virtio_net_hdr, so segments of up to 64 KiB cross a socket pair as a whole, and
 * without a checksum, as between a NIC with TSO and one with hardware GRO.
 *
 * vector_user.c takes the name for the transport "fd", whose packets have no header. Here it takes the place of "raw",
 * which has one. "raw" and "hybrid" do not work in this kernel.
 */
/* First: vector_user.h defines names of the kernel for vector_user.c. */
#include <linux/etherdevice.h>
#include <linux/netdevice.h>
#include "vector_user.h"

#undef TRANS_RAW
#define TRANS_RAW "fdvnet"
/* Asks a packet socket for the header. Both ends of a socket pair are ours. */
#define uml_raw_enable_vnet_headers(fd) true
