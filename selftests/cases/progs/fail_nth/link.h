/* SPDX-License-Identifier: GPL-2.0 */
/* The link, by netlink: running rdma would take longer than everything else in fail_nth. */
#ifndef LINK_H
#define LINK_H

#include <stdint.h>

/* Names the device, its netdev and its type. Once, before the others. */
void link_init(const char *device, const char *netdev, const char *type);

/* Returns 0 or a negative errno. */
int link_add(void);

/* Adds it unless it is there. Ends the program if that fails. */
void link_must_be(void);

/* Deletes it if it is there. Ends the program if that fails. */
void link_delete(void);

/* Returns its device index, -1 if it is not there. */
int link_number(void);

/*
 * Binds the queue pair to a new counter of `rdma statistic`, which goes with it. `number` is the index of the
 * device. Returns 0 or a negative errno.
 */
int link_bind_counter(int number, uint32_t qp_num);

#endif
