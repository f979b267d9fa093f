// SPDX-License-Identifier: GPL-2.0
/*
 * Connections that are opened at the same time, as perftest opens those of several queue pairs. Their
 * requests are reported in the order in which they were opened: perftest tells queue pairs apart by
 * nothing else.
 *
 *     cm_order MOST ACTIVE PASSIVE
 *
 * MOST of them may be displaced.
 */
#include <endian.h>
#include <rdma/rdma_cma.h>
#include <stdint.h>
#include <stdlib.h>

#include "common/pair.h"
#include "common/tap.h"

#define IDS 32
#define ROUNDS 60

/* Requests that came out of their place. */
static int displaced;

/* Returns an ID with a queue pair, ready to connect. */
static struct rdma_cm_id *prepare(const struct side *side, struct rdma_event_channel *events,
				  const struct side *to, uint16_t port)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct rdma_cm_id *id = cm_resolve(side, events, to, port);

	if (rdma_create_qp(id, NULL, &attr))
		tap_bail("rdma_create_qp: %m");
	return id;
}

static void open_at_once(const struct side *active, const struct side *passive)
{
	struct rdma_event_channel *clients = cm_new_channel(), *server = cm_new_channel();
	struct rdma_cm_id *listener = cm_listen(passive, server, IDS), *ids[IDS], *child;
	uint16_t port = be16toh(rdma_get_src_port(listener));

	for (int i = 0; i < IDS; i++)
		ids[i] = prepare(active, clients, passive, port);
	for (uint8_t i = 0; i < IDS; i++) {
		struct rdma_conn_param param = { .private_data = &i, .private_data_len = sizeof(i) };

		if (rdma_connect(ids[i], &param))
			tap_bail("rdma_connect: %m");
	}
	for (int i = 0; i < IDS; i++) {
		uint8_t number = UINT8_MAX, length = sizeof(number);

		if (!cm_expect(server, RDMA_CM_EVENT_CONNECT_REQUEST, &child, &number, &length))
			break;
		displaced += number != i;
		if (rdma_reject(child, NULL, 0) || rdma_destroy_id(child))
			tap_bail("a rejection: %m");
	}
	for (int i = 0; i < IDS; i++)
		cm_expect(clients, RDMA_CM_EVENT_REJECTED, NULL, NULL, NULL);
	for (int i = 0; i < IDS; i++) {
		rdma_destroy_qp(ids[i]);
		rdma_destroy_id(ids[i]);
	}
	rdma_destroy_id(listener);
	rdma_destroy_event_channel(clients);
	rdma_destroy_event_channel(server);
}

int main(int argc, char **argv)
{
	struct side active, passive;

	if (argc != 4)
		tap_bail("usage: cm_order MOST ACTIVE PASSIVE");
	active = side_parse(argv[2]);
	passive = side_parse(argv[3]);
	for (int i = 0; i < ROUNDS && !tap_failing(); i++)
		open_at_once(&active, &passive);
	tap_note("%d of %d requests are displaced", displaced, IDS * ROUNDS);
	tap_check(displaced <= atoi(argv[1]), "%d requests are out of their place", displaced);
	tap_point("requests come in the order of %d connections", IDS);
	return tap_done();
}
