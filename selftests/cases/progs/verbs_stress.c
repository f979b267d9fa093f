// SPDX-License-Identifier: GPL-2.0
/*
 * Doorbells, acknowledgements and arriving messages race in every combination: nothing may be lost,
 * sent twice, or stall.
 *
 *     verbs_stress [-q QPS] [-n MESSAGES] [-l LARGEST] [-c CHAIN] [-o] [-r SEED] ACTIVE PASSIVE
 *
 * -c: up to CHAIN WRs in a call. -o: one direction, from the active ends.
 *
 * Each end of each QP has its own thread that posts messages as fast as its queue accepts them, in
 * both directions at once. Each message has its number at its beginning and end. Receives are
 * reposted before a credit is returned (with the other end's next message, or an empty one). READs
 * run at the same time.
 *
 * The ID of a WR is its number in its queue. So a completion that is lost, doubled or out of order is not
 * the next one.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
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
#define SENDS 64		/* entries of a send queue */

struct half {
	struct end *end;
	struct half *other;
	pthread_t thread;
	struct rng rng;
	uint8_t *out, *in, *sink;	/* DEPTH slots of `largest` bytes; the sink is one */
	struct ibv_mr *mr_out, *mr_in, *mr_sink;
	int messages, expected;		/* to send and to receive */
	int sent, confirmed;		/* by completions */
	int receives, received;		/* posted and completed */
	_Atomic int taken;		/* receives posted again: the other end's credit */
	int reads, reads_done;
	int posted, completed;		/* WRs of the send queue: messages and READs */
	enum ibv_wc_opcode opcodes[SENDS];
	struct ibv_send_wr wrs[DEPTH];	/* to be posted in one call */
	struct ibv_sge sges[DEPTH];
	int chained;
	atomic_bool failed;
	char why[240];
};

static uint32_t largest = 20000;	/* bytes of a message */
static int chain = 1;			/* WRs in a call, at most */
static atomic_bool stop;

static void fail(struct half *h, const char *why, long a, long b)
{
	snprintf(h->why, sizeof(h->why), "%s QP %u: %s (%ld, %ld); sent %d, confirmed %d, received %d, taken %d, other's taken %d, reads %d of %d",
		 h->end->name, h->end->qp->qp_num, why, a, b, h->sent, h->confirmed, h->received,
		 h->taken, h->other->taken, h->reads_done, h->reads);
	h->failed = true;
	stop = true;
}

static uint8_t *slot_of(uint8_t *slots, int number)
{
	return slots + (size_t)(number % DEPTH) * largest;
}

static void receive_next(struct half *h)
{
	struct ibv_sge sge = { (uintptr_t)slot_of(h->in, h->receives), largest, h->mr_in->lkey };
	int error = post_recv(h->end->qp, h->receives, &sge, 1);

	if (error)
		fail(h, "post_recv", error, h->receives);
	h->receives++;
}

/* Returns the ID of the next WR of the send queue, whose completion will have this opcode. */
static int next_id(struct half *h, enum ibv_wc_opcode opcode)
{
	h->opcodes[h->posted % SENDS] = opcode;
	return h->posted++;
}

static void add_send(struct half *h)
{
	uint8_t *at = slot_of(h->out, h->sent);
	uint32_t length = 8 + rng_below(&h->rng, (h->sent % 4 && largest > 208 ? 208 : largest) - 8);
	struct ibv_sge *sge = &h->sges[h->chained];
	struct ibv_send_wr *wr = &h->wrs[h->chained];

	memcpy(at, &h->sent, 4);
	memcpy(at + length - 4, &h->sent, 4);
	*sge = (struct ibv_sge){ (uintptr_t)at, length, h->mr_out->lkey };
	*wr = (struct ibv_send_wr){
		.wr_id = next_id(h, IBV_WC_SEND), .sg_list = sge, .num_sge = 1,
		.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
	};
	if (length <= 64 && h->sent % 3 == 0)
		wr->send_flags |= IBV_SEND_INLINE;
	if (h->chained++)
		wr[-1].next = wr;
	h->sent++;
}

/* Posts the messages for which there are credits, up to `chain` of them. */
static void send_next(struct half *h)
{
	/* A credit is a receive of the other end; its memory is shared with this thread. */
	int taken = h->other->taken;
	struct ibv_send_wr *bad;

	while (h->sent < h->messages && h->chained < chain && h->sent - taken < DEPTH &&
	       h->sent - h->confirmed < DEPTH)
		add_send(h);
	if (!h->chained)
		return;
	h->chained = 0;
	if (ibv_post_send(h->end->qp, h->wrs, &bad))
		fail(h, "post_send", errno, h->sent);
}

static void read_next(struct half *h)
{
	struct ibv_sge sge = { (uintptr_t)h->sink, 1 + rng_below(&h->rng, largest), h->mr_sink->lkey };

	/* Reads the other end's send buffers; their contents do not matter here. */
	if (post_rdma(h->end->qp, next_id(h, IBV_WC_RDMA_READ), IBV_WR_RDMA_READ, &sge, 1,
		      IBV_SEND_SIGNALED, (uintptr_t)h->other->out, h->other->mr_out->rkey))
		fail(h, "post READ", errno, h->reads);
	h->reads++;
}

static void take_send(struct half *h, const struct ibv_wc *wc)
{
	if (wc->wr_id != (uint64_t)h->completed)
		return fail(h, "another completion of the send queue than the next", wc->wr_id,
			    h->completed);
	if (wc->status != IBV_WC_SUCCESS)
		return fail(h, ibv_wc_status_str(wc->status), wc->wr_id, 0);
	if (wc->opcode != h->opcodes[h->completed++ % SENDS])
		return fail(h, "another opcode than that of the WR", wc->opcode, wc->wr_id);
	if (wc->opcode == IBV_WC_RDMA_READ)
		h->reads_done++;
	else
		h->confirmed++;
}

static void take_recv(struct half *h, const struct ibv_wc *wc)
{
	const uint8_t *at = slot_of(h->in, h->received);
	int first, last;

	if (wc->wr_id != (uint64_t)h->received)
		return fail(h, "another completion of the receive queue than the next", wc->wr_id,
			    h->received);
	if (wc->status != IBV_WC_SUCCESS)
		return fail(h, ibv_wc_status_str(wc->status), wc->wr_id, 0);
	if (wc->opcode != IBV_WC_RECV || wc->byte_len < 8 || wc->byte_len > largest)
		return fail(h, "another opcode or length than of a message", wc->opcode, wc->byte_len);
	memcpy(&first, at, 4);
	memcpy(&last, at + wc->byte_len - 4, 4);
	if (first != h->received || last != h->received)
		return fail(h, "another message than expected", first, last);
	h->received++;
	if (h->receives < h->expected)
		receive_next(h);
	h->taken++;
}

static bool finished(const struct half *h)
{
	return h->confirmed == h->messages && h->received == h->expected && h->reads == h->reads_done;
}

/* Takes one completion of each queue. Returns whether there was one. */
static bool poll_both(struct half *h)
{
	int sends, receives;
	struct ibv_wc wc;

	sends = ibv_poll_cq(h->end->scq, 1, &wc);
	if (sends > 0)
		take_send(h, &wc);
	receives = ibv_poll_cq(h->end->rcq, 1, &wc);
	if (receives > 0)
		take_recv(h, &wc);
	if (sends < 0 || receives < 0)
		fail(h, "ibv_poll_cq", sends, receives);
	return sends || receives;
}

static void *run(void *argument)
{
	struct half *h = argument;
	int64_t idle_since = 0;

	while (!stop && !finished(h)) {
		send_next(h);
		if (h->sent % 16 == 0 && h->reads - h->reads_done < 4 && h->sent < h->messages &&
		    h->reads < h->messages / 8)
			read_next(h);
		if (poll_both(h))
			idle_since = 0;
		else if (!idle_since)
			idle_since = now_ms();
		else if (now_ms() - idle_since > 15000)
			fail(h, "stands still", 0, 0);
		else
			sched_yield();
	}
	return NULL;
}

static void half_open(struct half *h, struct end *end, int messages, int expected, uint64_t seed)
{
	h->end = end;
	h->messages = messages;
	h->expected = expected;
	h->rng.state = seed;
	h->out = calloc(DEPTH, largest);
	h->in = calloc(DEPTH, largest);
	h->sink = calloc(1, largest);
	h->mr_out = ibv_reg_mr(end->pd, h->out, (size_t)DEPTH * largest, ALL);
	h->mr_in = ibv_reg_mr(end->pd, h->in, (size_t)DEPTH * largest, ALL);
	h->mr_sink = ibv_reg_mr(end->pd, h->sink, largest, ALL);
	if (!h->mr_out || !h->mr_in || !h->mr_sink)
		tap_bail("memory");
	while (h->receives < DEPTH)
		receive_next(h);
}

/* Checks that no completion is left, unless the run has ended early. */
static void half_check(struct half *h)
{
	struct ibv_wc wc = {};

	/* A queue that cannot be polled fails, too. */
	if (!stop && ibv_poll_cq(h->end->scq, 1, &wc))
		fail(h, "a completion too many of the send queue", wc.wr_id, wc.status);
	if (!stop && ibv_poll_cq(h->end->rcq, 1, &wc))
		fail(h, "a completion too many of the receive queue", wc.wr_id, wc.status);
	tap_check(!h->failed, "%s", h->why);
}

static void half_close(struct half *h)
{
	ibv_dereg_mr(h->mr_out);
	ibv_dereg_mr(h->mr_in);
	ibv_dereg_mr(h->mr_sink);
}

static struct flow {
	struct pair pair;
	struct half half[2];
} *flows;

static void flow_open(struct flow *flow, const struct pair_opts *opts, int messages, int back,
		      uint64_t seed)
{
	pair_open(&flow->pair, opts);
	flow->half[0].other = &flow->half[1];
	flow->half[1].other = &flow->half[0];
	half_open(&flow->half[0], &flow->pair.active, messages, back, seed);
	half_open(&flow->half[1], &flow->pair.passive, back, messages, seed + 1);
}

/* Runs the threads of all ends, and checks what they have seen. */
static void run_all(int qps)
{
	int64_t begin = now_ms();
	int i, j;

	for (i = 0; i < qps; i++)
		for (j = 0; j < 2; j++)
			if (pthread_create(&flows[i].half[j].thread, NULL, run, &flows[i].half[j]))
				tap_bail("pthread_create");
	for (i = 0; i < qps; i++)
		for (j = 0; j < 2; j++)
			pthread_join(flows[i].half[j].thread, NULL);
	for (i = 0; i < qps; i++)
		for (j = 0; j < 2; j++)
			half_check(&flows[i].half[j]);
	tap_note("%lld ms", (long long)(now_ms() - begin));
}

static bool flow_close(struct flow *flow)
{
	half_close(&flow->half[0]);
	half_close(&flow->half[1]);
	return pair_close(&flow->pair);
}

int main(int argc, char **argv)
{
	struct pair_opts opts = { .inline_data = 64, .sq = SENDS, .rq = DEPTH, .depth = 2 };
	int qps = 2, messages = 1000, option, i;
	bool one_way = false, closed = true;
	uint64_t seed = 1;

	while ((option = getopt(argc, argv, "q:n:l:c:or:")) != -1) {
		if (option == 'q')
			qps = atoi(optarg);
		else if (option == 'n')
			messages = atoi(optarg);
		else if (option == 'l')
			largest = atoi(optarg);
		else if (option == 'c')
			chain = atoi(optarg);
		else if (option == 'o')
			one_way = true;
		else if (option == 'r')
			seed = strtoull(optarg, NULL, 0);
		else
			return 2;
	}
	if (argc - optind != 2 || messages < DEPTH || largest <= 8 || chain < 1 || chain > DEPTH)
		return 2;
	opts.active = side_parse(argv[optind]);
	opts.passive = side_parse(argv[optind + 1]);
	flows = calloc(qps, sizeof(*flows));
	if (!flows)
		tap_bail("memory");
	for (i = 0; i < qps; i++)
		flow_open(&flows[i], &opts, messages, one_way ? 0 : messages, seed + 2 * i);
	run_all(qps);
	tap_point("%d QPs, %d messages %s and READs: all come once, in order, and never stand still",
		  qps, messages, one_way ? "one way" : "each way");
	for (i = 0; i < qps; i++)
		closed &= flow_close(&flows[i]);
	tap_ok(closed, "everything can be destroyed");
	return tap_done();
}
