// SPDX-License-Identifier: GPL-2.0
/*
 * Connects many QPs to a peer that never reads, and posts as many WRITEs on each as its send queue
 * accepts. Writes a line when all are posted, and runs until it is killed.
 *
 *     unread_writes QPS ADDRESS PORT
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/access.h"
#include "common/pair.h"
#include "common/post.h"
#include "common/tap.h"

#define LENGTH (1U << 20)
#define QUEUE 4

static uint8_t memory[LENGTH] __attribute__((aligned(4096)));
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;

static void prepare(struct ibv_context *ctx)
{
	if (pd)
		return;
	pd = ibv_alloc_pd(ctx);
	cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
	mr = pd ? ibv_reg_mr(pd, memory, LENGTH, ALL) : NULL;
	if (!cq || !mr)
		tap_bail("resources");
}

static void connect_one(struct rdma_event_channel *events, const struct side *to, uint16_t port)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = QUEUE, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_sge sge = { (uintptr_t)memory, LENGTH, 0 };
	struct rdma_conn_param param = {};
	const struct side here = {};
	struct rdma_cm_id *id = cm_resolve(&here, events, to, port);

	prepare(id->verbs);
	sge.lkey = mr->lkey;
	init.send_cq = init.recv_cq = cq;
	if (rdma_create_qp(id, pd, &init) || rdma_connect(id, &param) ||
	    !cm_expect(events, RDMA_CM_EVENT_ESTABLISHED, NULL, NULL, NULL))
		tap_bail("connecting: %m");
	for (int i = 0; i < QUEUE; i++)
		if (post_rdma(id->qp, i, IBV_WR_RDMA_WRITE, &sge, 1, 0, 0, 1))
			break;
}

int main(int argc, char **argv)
{
	struct rdma_event_channel *events;
	struct side to = {};

	if (argc != 4)
		return 2;
	to.addr = argv[2];
	events = cm_new_channel();
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 0; i < atoi(argv[1]); i++)
		connect_one(events, &to, atoi(argv[3]));
	puts("posted");
	pause();
	return 0;
}
