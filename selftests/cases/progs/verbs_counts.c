// SPDX-License-Identifier: GPL-2.0
/*
 * Sends known numbers of messages and bytes, on command, for cases that compare them with counters.
 *
 *     verbs_counts [-q QPS] ACTIVE PASSIVE
 *
 * Connects QPs, writes `qp ACTIVE PASSIVE` with the numbers of each, then `ready`. Each command is a
 * line of stdin. Its answer ends with the line `done`, after a line for each end of each QP with what
 * that end has posted by this command:
 *
 *     sent QP SENDS BYTES WRITES BYTES READS BYTES
 *
 * mix COUNT SEED       random messages from both ends of all QPs at the same time
 * send|inline|write|read COUNT BYTES
 *                      messages from the active end of the first QP, one after the other
 * destroy QP           destroys the ends of the QP with this place, from 0
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/access.h"
#include "common/clock.h"
#include "common/completion.h"
#include "common/pair.h"
#include "common/post.h"
#include "common/random.h"
#include "common/tap.h"

#define DEPTH 16		/* messages in flight at one end */
#define RECEIVES 1024		/* messages of a command, at most */
#define MIXED 200000		/* length of a mixed message, at most */
#define LARGEST (4 << 20)
#define INLINE 64

struct moved {
	uint64_t messages, bytes;
};

/* An end of a QP. The other end reads from `memory` and writes to it: its contents do not matter. */
struct half {
	struct end *end;
	struct half *other;
	pthread_t thread;
	struct ibv_mr *mr;
	struct rng rng;
	int count;			/* messages to post */
	int receives;			/* posted and not completed */
	struct moved sends, writes, reads;
};

static struct flow {
	struct pair pair;
	struct half half[2];
} *flows;

static void post(struct half *h, enum ibv_wr_opcode opcode, uint32_t length, unsigned int flags)
{
	struct ibv_sge sge = { (uintptr_t)h->mr->addr, length, h->mr->lkey };
	struct moved *moved = opcode == IBV_WR_SEND ? &h->sends :
			      opcode == IBV_WR_RDMA_WRITE ? &h->writes : &h->reads;
	int status;

	flags |= IBV_SEND_SIGNALED;
	if (opcode == IBV_WR_SEND)
		status = post_send(h->end->qp, 1, opcode, &sge, 1, flags, 0);
	else
		status = post_rdma(h->end->qp, 1, opcode, &sge, 1, flags,
				   (uintptr_t)h->other->mr->addr, h->other->mr->rkey);
	if (status)
		tap_bail("post: %s", strerror(status));
	moved->messages++;
	moved->bytes += length;
}

static void await(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	if (!cq_next(cq, &wc, PATIENCE))
		tap_bail("no completion");
	if (wc.status != IBV_WC_SUCCESS)
		tap_bail("%s", ibv_wc_status_str(wc.status));
}

static void post_receives(struct half *h, int count)
{
	struct ibv_sge sge = { (uintptr_t)h->mr->addr, LARGEST, h->mr->lkey };

	for (; h->receives < count; h->receives++)
		if (post_recv(h->end->qp, 1, &sge, 1))
			tap_bail("post a receive");
}

/* Takes the completions of all Sends of the other end. */
static void take_receives(struct half *h)
{
	for (uint64_t i = 0; i < h->other->sends.messages; i++, h->receives--)
		await(h->end->rcq);
}

static void *mix(void *argument)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ };
	struct half *h = argument;
	int i;

	for (i = 0; i < h->count; i++) {
		uint32_t length = rng_length(&h->rng, MIXED);
		enum ibv_wr_opcode opcode = opcodes[rng_below(&h->rng, 3)];
		bool inlined = opcode != IBV_WR_RDMA_READ && length <= INLINE && rng_below(&h->rng, 2);

		if (i >= DEPTH)
			await(h->end->scq);
		post(h, opcode, length, inlined ? IBV_SEND_INLINE : 0);
	}
	for (i = 0; i < h->count && i < DEPTH; i++)
		await(h->end->scq);
	return NULL;
}

static void mix_all(int qps, int count, uint64_t seed)
{
	struct half *h;
	int i;

	for (i = 0; i < 2 * qps; i++) {
		h = &flows[i / 2].half[i % 2];
		h->count = h->end->qp ? count : 0;
		h->rng.state = seed + i;
		if (h->count)
			post_receives(h, count);
	}
	for (i = 0; i < 2 * qps; i++) {
		h = &flows[i / 2].half[i % 2];
		if (pthread_create(&h->thread, NULL, mix, h))
			tap_bail("pthread_create");
	}
	for (i = 0; i < 2 * qps; i++)
		pthread_join(flows[i / 2].half[i % 2].thread, NULL);
	for (i = 0; i < 2 * qps; i++)
		take_receives(&flows[i / 2].half[i % 2]);
}

static void one_by_one(struct half *h, const char *kind, int count, uint32_t length)
{
	enum ibv_wr_opcode opcode = !strcmp(kind, "write") ? IBV_WR_RDMA_WRITE :
				    !strcmp(kind, "read") ? IBV_WR_RDMA_READ : IBV_WR_SEND;

	post_receives(h->other, count);
	for (int i = 0; i < count; i++) {
		post(h, opcode, length, strcmp(kind, "inline") ? 0 : IBV_SEND_INLINE);
		await(h->end->scq);
	}
	take_receives(h->other);
}

static void half_open(struct half *h, struct end *end, struct half *other)
{
	void *memory = calloc(1, LARGEST);

	h->end = end;
	h->other = other;
	h->mr = memory ? ibv_reg_mr(end->pd, memory, LARGEST, ALL) : NULL;
	if (!h->mr)
		tap_bail("ibv_reg_mr: %m");
}

static void flow_close(struct flow *flow)
{
	for (int i = 0; i < 2; i++)
		if (flow->half[i].mr)
			ibv_dereg_mr(flow->half[i].mr);
	if (!pair_close(&flow->pair))
		tap_bail("destroy");
	for (int i = 0; i < 2; i++)
		flow->half[i].mr = NULL;
}

static void report(int qps)
{
	for (int i = 0; i < 2 * qps; i++) {
		struct half *h = &flows[i / 2].half[i % 2];

		if (h->end->qp)
			printf("sent %u %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
			       h->end->qp->qp_num, h->sends.messages, h->sends.bytes,
			       h->writes.messages, h->writes.bytes, h->reads.messages, h->reads.bytes);
		h->sends = h->writes = h->reads = (struct moved){};
	}
	puts("done");
}

int main(int argc, char **argv)
{
	struct pair_opts opts = { .inline_data = INLINE, .sq = DEPTH, .rq = RECEIVES };
	char line[100], kind[20];
	unsigned long long second;
	int qps = 1, i, first;

	setlinebuf(stdout);
	while ((i = getopt(argc, argv, "q:")) != -1) {
		if (i != 'q')
			return 2;
		qps = atoi(optarg);
	}
	if (argc - optind != 2 || qps < 1)
		return 2;
	opts.active = side_parse(argv[optind]);
	opts.passive = side_parse(argv[optind + 1]);
	flows = calloc(qps, sizeof(*flows));
	if (!flows)
		tap_bail("memory");
	for (i = 0; i < qps; i++) {
		struct flow *flow = &flows[i];

		pair_open(&flow->pair, &opts);
		half_open(&flow->half[0], &flow->pair.active, &flow->half[1]);
		half_open(&flow->half[1], &flow->pair.passive, &flow->half[0]);
		printf("qp %u %u\n", flow->pair.active.qp->qp_num, flow->pair.passive.qp->qp_num);
	}
	puts("ready");
	while (fgets(line, sizeof(line), stdin)) {
		second = 0;
		if (sscanf(line, "%19s %d %llu", kind, &first, &second) < 2 || first > RECEIVES)
			return 2;
		if (!strcmp(kind, "mix"))
			mix_all(qps, first, second);
		else if (!strcmp(kind, "destroy") && first < qps)
			flow_close(&flows[first]);
		else
			one_by_one(&flows[0].half[0], kind, first, second);
		report(qps);
	}
	for (i = 0; i < qps; i++)
		flow_close(&flows[i]);
	return 0;
}
