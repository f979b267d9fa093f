// SPDX-License-Identifier: GPL-2.0
#include "listen.h"

#include <errno.h>

struct rdma_cm_id *listen_anywhere(struct rdma_event_channel *events, struct sockaddr *addr, int backlog)
{
	struct rdma_cm_id *id;
	int error;

	for (int attempt = 0; attempt < 10; attempt++) {
		if (rdma_create_id(events, &id, NULL, RDMA_PS_TCP))
			return NULL;
		if (!rdma_bind_addr(id, addr) && !rdma_listen(id, backlog))
			return id;
		error = errno;
		rdma_destroy_id(id);
		errno = error;
		if (error != EADDRINUSE)
			break;
	}
	return NULL;
}
