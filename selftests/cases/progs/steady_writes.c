// SPDX-License-Identifier: GPL-2.0
/*
 * Connects QPs, each with a thread that posts one large WRITE after the other, until one fails. Writes a
 * line when each thread has completed one, and ends when all threads have ended.
 *
 *     steady_writes QPS ADDRESS PORT
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/access.h"
#include "common/clock.h"
#include "common/completion.h"
#include "common/pair.h"
#include "common/post.h"
#include "common/tap.h"

#define LENGTH (1U << 20)

struct writer {
	struct ibv_cq *cq;
	struct rdma_cm_id *id;
	pthread_t thread;
	_Atomic unsigned int done;
};

static uint8_t memory[LENGTH] __attribute__((aligned(4096)));
static struct ibv_pd *pd;
static struct ibv_mr *mr;

static void connect_one(struct writer *w, const struct side *to, uint16_t port)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct rdma_event_channel *events = cm_new_channel();
	struct rdma_conn_param param = {};
	const struct side here = {};

	w->id = cm_resolve(&here, events, to, port);
	if (!pd) {
		pd = ibv_alloc_pd(w->id->verbs);
		mr = pd ? ibv_reg_mr(pd, memory, LENGTH, ALL) : NULL;
	}
	w->cq = ibv_create_cq(w->id->verbs, 2, NULL, NULL, 0);
	if (!mr || !w->cq)
		tap_bail("resources");
	init.send_cq = init.recv_cq = w->cq;
	if (rdma_create_qp(w->id, pd, &init) || rdma_connect(w->id, &param) ||
	    !cm_expect(events, RDMA_CM_EVENT_ESTABLISHED, NULL, NULL, NULL))
		tap_bail("connecting: %m");
}

static void *write_steadily(void *argument)
{
	struct writer *w = argument;
	struct ibv_sge sge = { (uintptr_t)memory, LENGTH, mr->lkey };
	struct ibv_wc wc;

	while (!post_rdma(w->id->qp, 1, IBV_WR_RDMA_WRITE, &sge, 1, IBV_SEND_SIGNALED, 0, 1) &&
	       cq_next(w->cq, &wc, PATIENCE) && wc.status == IBV_WC_SUCCESS)
		w->done++;
	if (!w->done)
		tap_bail("the first WRITE");
	return NULL;
}

int main(int argc, char **argv)
{
	int qps = argc == 4 ? atoi(argv[1]) : 0;
	struct writer *writers = calloc(qps, sizeof(*writers));
	struct side to = {};

	if (!qps || !writers)
		return 2;
	to.addr = argv[2];
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 0; i < qps; i++)
		connect_one(&writers[i], &to, atoi(argv[3]));
	for (int i = 0; i < qps; i++)
		if (pthread_create(&writers[i].thread, NULL, write_steadily, &writers[i]))
			tap_bail("pthread_create");
	for (int i = 0; i < qps; i++)
		while (!writers[i].done)
			sleep_ms(10);
	puts("writing");
	for (int i = 0; i < qps; i++)
		pthread_join(writers[i].thread, NULL);
	return 0;
}
