// SPDX-License-Identifier: GPL-2.0
/*
 * Queue pairs of two devices and threads of this process change one word: nothing is lost.
 *
 *     provider_atomics LEFT RIGHT
 *
 * Half of the queue pairs connect LEFT to RIGHT, half RIGHT to LEFT; the word is registered in both
 * devices. Most add, the others compare and swap, which succeeds when the others are done, at the latest. Two
 * threads add by instructions of the CPU until then.
 */
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/access.h"
#include "common/clock.h"
#include "common/pair.h"
#include "common/post.h"
#include "common/tap.h"

#define QPS 8
#define THREADS 2
#define EACH 200		/* additions of a queue pair */
#define SWAPPING 2		/* queue pairs that compare and swap */
#define DEPTH 8			/* at a time */

static _Alignas(4096) struct {
	_Atomic uint64_t word;
	uint64_t old[QPS][DEPTH];	/* sinks of the original values */
} memory;

static _Atomic bool over;
static uint64_t originals[QPS * EACH], count;

struct flow {
	struct pair pair;
	struct ibv_mr *target, *sink;
	bool swaps;
	uint64_t expected;	/* what it compares with */
	int posted, done;
};

static bool post(struct flow *flow, int which)
{
	int slot = flow->posted % DEPTH;
	struct ibv_sge sge = {
		.addr = (uintptr_t)&memory.old[which][slot], .length = 8, .lkey = flow->sink->lkey,
	};
	enum ibv_wr_opcode opcode = flow->swaps ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD;

	flow->posted++;
	return tap_check(!post_atomic(flow->pair.active.qp, slot, opcode, &sge, (uintptr_t)&memory.word,
				      flow->target->rkey, flow->swaps ? flow->expected : 1,
				      flow->expected + 1), "ibv_post_send");
}

/* Takes the original value of an operation. */
static void take(struct flow *flow, uint64_t old)
{
	if (flow->swaps && old != flow->expected) {
		flow->expected = old;
		return;
	}
	originals[count++] = old;
	flow->done++;
	flow->expected = old + 1;
}

static bool poll(struct flow *flow, int which)
{
	/* A swap needs the value that the one before has found. */
	int depth = flow->swaps ? 1 : DEPTH, taken = 0;
	struct ibv_wc wc;

	while (ibv_poll_cq(flow->pair.active.scq, 1, &wc) > 0) {
		if (!tap_check(!wc.status, "queue pair %d: %s", which, ibv_wc_status_str(wc.status)))
			return false;
		take(flow, memory.old[which][wc.wr_id]);
		taken++;
	}
	if (!flow->posted)
		taken = depth;
	while (taken-- && flow->done < EACH && (flow->swaps || flow->posted < EACH))
		if (!post(flow, which))
			return false;
	return true;
}

static void *add(void *arg)
{
	uint64_t *added = arg;

	while (!over) {
		for (int i = 0; i < 100; i++)
			memory.word++;
		*added += 100;
		/* The kernel needs the CPUs, too. */
		usleep(1000);
	}
	return NULL;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
	const uint64_t first = UINT64_MAX - 1000;	/* wraps around */
	uint64_t added[THREADS] = {}, sum = 0, repeated = 0;
	struct pair_opts opts = {}, swapped = {};
	static struct flow flows[QPS];
	pthread_t thread[THREADS];
	bool good = true, finished;
	int i, adders;
	int64_t end;

	if (argc != 3)
		return 2;
	opts.active = swapped.passive = side_parse(argv[1]);
	opts.passive = swapped.active = side_parse(argv[2]);
	memory.word = first;
	for (i = 0; i < QPS; i++) {
		struct flow *flow = &flows[i];

		pair_open(&flow->pair, i % 2 ? &swapped : &opts);
		flow->swaps = i >= QPS - SWAPPING;
		flow->target = ibv_reg_mr(flow->pair.passive.pd, (void *)&memory.word, 8,
					  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
		flow->sink = ibv_reg_mr(flow->pair.active.pd, memory.old[i], sizeof(memory.old[i]),
					IBV_ACCESS_LOCAL_WRITE);
		if (!flow->target || !flow->sink)
			tap_bail("ibv_reg_mr");
	}
	tap_check(flows[0].pair.passive.ctx->device != flows[1].pair.passive.ctx->device, "one device");
	for (i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, add, &added[i]))
			tap_bail("pthread_create");
	end = now_ms() + PATIENCE;
	do {
		finished = true;
		adders = 0;
		for (i = 0; i < QPS && good; i++) {
			good = poll(&flows[i], i);
			finished &= flows[i].done == EACH;
			adders += !flows[i].swaps && flows[i].done < EACH;
		}
		over = !adders;
		sched_yield();
		good = good && tap_check(now_ms() < end, "operations are missing");
	} while (good && !finished);
	over = true;
	for (i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		tap_check(added[i], "thread %d has added nothing", i);
		sum += added[i];
	}
	for (i = 0; i < QPS; i++)
		tap_note("queue pair %d: %d operations for %d additions", i, flows[i].posted, flows[i].done);
	tap_note("the threads have added %" PRIu64 " times", sum);
	tap_check(memory.word == first + sum + QPS * EACH, "the word is %" PRIu64 ", not %" PRIu64,
		  memory.word, first + sum + QPS * EACH);
	qsort(originals, count, sizeof(*originals), compare);
	for (uint64_t at = 1; at < count; at++)
		repeated += originals[at] == originals[at - 1];
	tap_check(!repeated, "%" PRIu64 " values were found by two operations", repeated);
	tap_point("%d queue pairs of two devices and %d threads add to one word: nothing is lost", QPS,
		  THREADS);
	good = true;
	for (i = 0; i < QPS; i++) {
		good &= !ibv_dereg_mr(flows[i].target);
		good &= !ibv_dereg_mr(flows[i].sink);
		good &= pair_close(&flows[i].pair);
	}
	tap_ok(good, "everything can be destroyed");
	return tap_done();
}
