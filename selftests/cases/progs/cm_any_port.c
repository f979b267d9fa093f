// SPDX-License-Identifier: GPL-2.0
/*
 * Listens at port 0, beside sockets of TCP. rdma_cm may choose a port that TCP uses: then rdma_listen() fails with
 * EADDRINUSE, and an attempt with another id has another port.
 *
 *     cm_any_port ADDRESS LISTENERS ATTEMPTS
 */
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>

#include "common/tap.h"

static int failures;

/* Listens at any port. Returns whether an attempt has succeeded; all others must fail with EADDRINUSE. */
static bool listen_somewhere(struct rdma_event_channel *events, struct sockaddr *addr, int attempts)
{
	struct rdma_cm_id *id;

	for (int i = 0; i < attempts; i++) {
		if (rdma_create_id(events, &id, NULL, RDMA_PS_TCP) || rdma_bind_addr(id, addr))
			tap_bail("an id at port 0: %m");
		if (!rdma_listen(id, 1))
			return tap_check(rdma_get_src_port(id), "port 0");
		failures++;
		if (!tap_check(errno == EADDRINUSE, "rdma_listen: %m"))
			return false;
		rdma_destroy_id(id);
	}
	return tap_check(false, "%d attempts have failed", attempts);
}

int main(int argc, char **argv)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE | RAI_NUMERICHOST, .ai_port_space = RDMA_PS_TCP };
	struct rdma_event_channel *events = rdma_create_event_channel();
	struct rdma_addrinfo *info;
	int listeners;

	if (argc != 4)
		tap_bail("usage: cm_any_port ADDRESS LISTENERS ATTEMPTS");
	if (!events || rdma_getaddrinfo(argv[1], NULL, &hints, &info))
		tap_bail("an event channel or the address: %m");
	listeners = atoi(argv[2]);
	for (int i = 0; i < listeners; i++)
		if (!listen_somewhere(events, info->ai_src_addr, atoi(argv[3])))
			break;
	tap_note("%d attempts have failed", failures);
	tap_point("%d listeners at port 0, in %s attempts each", listeners, argv[3]);
	return tap_done();
}
