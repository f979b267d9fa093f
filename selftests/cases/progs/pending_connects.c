// SPDX-License-Identifier: GPL-2.0
/*
 * Connects many QPs to a peer that does not answer. Writes a line when all wait for the answer, and
 * runs until it is killed.
 *
 *     pending_connects QPS ADDRESS PORT READS
 *
 * READS: the depth of reads that each asks for, in both directions.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/pair.h"
#include "common/tap.h"

static struct ibv_pd *pd;
static struct ibv_cq *cq;

static void prepare(struct ibv_context *ctx)
{
	if (pd)
		return;
	pd = ibv_alloc_pd(ctx);
	cq = ibv_create_cq(ctx, 1, NULL, NULL, 0);
	if (!pd || !cq)
		tap_bail("resources");
}

static void connect_one(struct rdma_event_channel *events, const struct side *to, uint16_t port,
			int reads)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct rdma_conn_param param = {
		.responder_resources = reads,
		.initiator_depth = reads,
	};
	const struct side here = {};
	struct rdma_cm_id *id = cm_resolve(&here, events, to, port);

	prepare(id->verbs);
	init.send_cq = init.recv_cq = cq;
	if (rdma_create_qp(id, pd, &init) || rdma_connect(id, &param))
		tap_bail("connecting: %m");
}

int main(int argc, char **argv)
{
	struct rdma_event_channel *events;
	struct side to = {};

	if (argc != 5)
		return 2;
	to.addr = argv[2];
	events = cm_new_channel();
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 0; i < atoi(argv[1]); i++)
		connect_one(events, &to, atoi(argv[3]), atoi(argv[4]));
	puts("pending");
	pause();
	return 0;
}
