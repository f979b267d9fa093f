// SPDX-License-Identifier: GPL-2.0
/*
 * Doorbells, acknowledgements and arriving messages race in every combination: nothing may be lost,
 * sent twice, or stall.
 *
 *     verbs_stress [-q QPS] [-n MESSAGES] [-r SEED] ACTIVE PASSIVE
 *
 * Each end of each QP has its own thread that posts messages as fast as its queue accepts them, in
 * both directions at once. Each message has its number at its beginning and end. Receives are
 * reposted before a credit is returned (with the other end's next message, or an empty one). READs
 * run at the same time.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/access.h"
#include "common/clock.h"
#include "common/pair.h"
#include "common/post.h"
#include "common/random.h"
#include "common/tap.h"

#define DEPTH 32		/* messages in flight in one direction */
#define LARGEST 20000

struct half {
	struct end *end;
	struct half *other;
	pthread_t thread;
	struct rng rng;
	uint8_t *out, *in, *sink;	/* DEPTH slots of LARGEST bytes; the sink is one */
	struct ibv_mr *mr_out, *mr_in, *mr_sink;
	int messages;
	int sent, confirmed;		/* by completions */
	int received;
	_Atomic int taken;		/* receives posted again: the other end's credit */
	int reads, reads_done;
	atomic_bool failed;
	char why[160];
};

static atomic_bool stop;

static void fail(struct half *h, const char *why, long a, long b)
{
	snprintf(h->why, sizeof(h->why), "%s QP %u: %s (%ld, %ld); sent %d, confirmed %d, received %d, taken %d, other's taken %d, reads %d of %d",
		 h->end->name, h->end->qp->qp_num, why, a, b, h->sent, h->confirmed, h->received,
		 h->taken, h->other->taken, h->reads_done, h->reads);
	h->failed = true;
	stop = true;
}

static void post_slot(struct half *h, int slot)
{
	struct ibv_sge sge = { (uintptr_t)h->in + slot * LARGEST, LARGEST, h->mr_in->lkey };
	int error = post_recv(h->end->qp, slot, &sge, 1);

	if (error)
		fail(h, "post_recv", error, slot);
}

static bool send_next(struct half *h)
{
	int slot = h->sent % DEPTH;
	uint8_t *at = h->out + slot * LARGEST;
	uint32_t length = 8 + rng_below(&h->rng, h->sent % 4 ? 200 : LARGEST - 8);
	struct ibv_sge sge = { (uintptr_t)at, length, h->mr_out->lkey };
	unsigned int flags = IBV_SEND_SIGNALED;

	memcpy(at, &h->sent, 4);
	memcpy(at + length - 4, &h->sent, 4);
	if (length <= 64 && h->sent % 3 == 0)
		flags |= IBV_SEND_INLINE;
	if (post_send(h->end->qp, slot, IBV_WR_SEND, &sge, 1, flags, 0)) {
		fail(h, "post_send", errno, h->sent);
		return false;
	}
	h->sent++;
	return true;
}

static void read_next(struct half *h)
{
	struct ibv_sge sge = { (uintptr_t)h->sink, 1 + rng_below(&h->rng, LARGEST), h->mr_sink->lkey };

	/* Reads the other end's send buffers; their contents do not matter here. */
	if (post_rdma(h->end->qp, 1000, IBV_WR_RDMA_READ, &sge, 1, IBV_SEND_SIGNALED,
		      (uintptr_t)h->other->out, h->other->mr_out->rkey))
		fail(h, "post READ", errno, h->reads);
	h->reads++;
}

static void take_send(struct half *h, const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS)
		return fail(h, ibv_wc_status_str(wc->status), wc->wr_id, 0);
	if (wc->wr_id == 1000) {
		h->reads_done++;
		return;
	}
	if ((int)wc->wr_id != h->confirmed % DEPTH)
		return fail(h, "completions out of order", wc->wr_id, h->confirmed);
	h->confirmed++;
}

static void take_recv(struct half *h, const struct ibv_wc *wc)
{
	const uint8_t *at = h->in + wc->wr_id * LARGEST;
	int first, last;

	if (wc->status != IBV_WC_SUCCESS)
		return fail(h, ibv_wc_status_str(wc->status), wc->wr_id, 0);
	memcpy(&first, at, 4);
	memcpy(&last, at + wc->byte_len - 4, 4);
	if (first != h->received || last != h->received)
		return fail(h, "another message than expected", first, last);
	h->received++;
	if (h->received <= h->messages - DEPTH)
		post_slot(h, wc->wr_id);
	h->taken++;
}

static bool finished(const struct half *h)
{
	return h->confirmed == h->messages && h->received == h->messages && h->reads == h->reads_done;
}

static void *run(void *argument)
{
	struct half *h = argument;
	int64_t last = now_ms();
	struct ibv_wc wc;
	int taken;

	while (!stop && !finished(h)) {
		/* A credit is a receive of the other end; its memory is shared with this thread. */
		taken = h->other->taken;
		if (h->sent < h->messages && h->sent - taken < DEPTH && h->sent - h->confirmed < DEPTH)
			send_next(h);
		if (h->sent % 16 == 0 && h->reads - h->reads_done < 4 && h->sent < h->messages &&
		    h->reads < h->messages / 8)
			read_next(h);
		if (ibv_poll_cq(h->end->scq, 1, &wc) > 0) {
			take_send(h, &wc);
			last = now_ms();
		}
		if (ibv_poll_cq(h->end->rcq, 1, &wc) > 0) {
			take_recv(h, &wc);
			last = now_ms();
		}
		if (now_ms() - last > 15000)
			fail(h, "stands still", 0, 0);
	}
	return NULL;
}

static void half_open(struct half *h, struct end *end, int messages, uint64_t seed)
{
	h->end = end;
	h->messages = messages;
	h->rng.state = seed;
	h->out = calloc(DEPTH, LARGEST);
	h->in = calloc(DEPTH, LARGEST);
	h->sink = calloc(1, LARGEST);
	h->mr_out = ibv_reg_mr(end->pd, h->out, DEPTH * LARGEST, ALL);
	h->mr_in = ibv_reg_mr(end->pd, h->in, DEPTH * LARGEST, ALL);
	h->mr_sink = ibv_reg_mr(end->pd, h->sink, LARGEST, ALL);
	if (!h->mr_out || !h->mr_in || !h->mr_sink)
		tap_bail("memory");
	for (int i = 0; i < DEPTH; i++)
		post_slot(h, i);
}

static void half_close(struct half *h)
{
	ibv_dereg_mr(h->mr_out);
	ibv_dereg_mr(h->mr_in);
	ibv_dereg_mr(h->mr_sink);
}

struct flow {
	struct pair pair;
	struct half half[2];
};

int main(int argc, char **argv)
{
	struct pair_opts opts = { .inline_data = 64, .sq = 64, .rq = DEPTH, .depth = 2 };
	int qps = 2, messages = 1000, option, i, j;
	struct flow *flows;
	uint64_t seed = 1;
	bool closed = true;
	int64_t begin;

	while ((option = getopt(argc, argv, "q:n:r:")) != -1) {
		if (option == 'q')
			qps = atoi(optarg);
		else if (option == 'n')
			messages = atoi(optarg);
		else if (option == 'r')
			seed = strtoull(optarg, NULL, 0);
		else
			return 2;
	}
	if (argc - optind != 2 || messages < DEPTH)
		return 2;
	opts.active = side_parse(argv[optind]);
	opts.passive = side_parse(argv[optind + 1]);
	flows = calloc(qps, sizeof(*flows));
	if (!flows)
		tap_bail("memory");
	for (i = 0; i < qps; i++) {
		pair_open(&flows[i].pair, &opts);
		half_open(&flows[i].half[0], &flows[i].pair.active, messages, seed + 2 * i);
		half_open(&flows[i].half[1], &flows[i].pair.passive, messages, seed + 2 * i + 1);
		flows[i].half[0].other = &flows[i].half[1];
		flows[i].half[1].other = &flows[i].half[0];
	}
	begin = now_ms();
	for (i = 0; i < qps; i++)
		for (j = 0; j < 2; j++)
			if (pthread_create(&flows[i].half[j].thread, NULL, run, &flows[i].half[j]))
				tap_bail("pthread_create");
	for (i = 0; i < qps; i++)
		for (j = 0; j < 2; j++)
			pthread_join(flows[i].half[j].thread, NULL);
	for (i = 0; i < qps; i++)
		for (j = 0; j < 2; j++)
			tap_check(!flows[i].half[j].failed, "%s", flows[i].half[j].why);
	tap_note("%lld ms", (long long)(now_ms() - begin));
	tap_point("%d QPs, %d messages each way and READs: all come once, in order, and never stand still",
		  qps, messages);
	for (i = 0; i < qps; i++) {
		half_close(&flows[i].half[0]);
		half_close(&flows[i].half[1]);
		closed &= pair_close(&flows[i].pair);
	}
	tap_ok(closed, "everything can be destroyed");
	return tap_done();
}
