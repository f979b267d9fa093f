/* SPDX-License-Identifier: GPL-2.0 */
#ifndef LISTEN_H
#define LISTEN_H

#include <rdma/rdma_cma.h>

/*
 * Creates an id that listens at a port of its own. rdma_cm chooses a port without a look at TCP, which may use it:
 * tries others then. Returns NULL and sets errno if that fails.
 */
struct rdma_cm_id *listen_anywhere(struct rdma_event_channel *events, struct sockaddr *addr, int backlog);

#endif
