// SPDX-License-Identifier: GPL-2.0
/*
 * A process that writes to the rings of a connection that carries data, and to the word that arms
 * its completion queues.
 *
 *     hostile_established [-n ROUNDS] [-r SEED] ACTIVE PASSIVE
 */
#include <pthread.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/siw-abi.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/completion.h"
#include "common/options.h"
#include "common/pair.h"
#include "common/post.h"
#include "common/random.h"
#include "common/rings.h"
#include "common/tap.h"
#include "common/victim.h"

static struct pair_opts opts = { .sq = 64, .rq = 64, .inline_data = 64, .notify = true };
static struct rng rng = { 1 };

static void start(pthread_t *thread, void *(*run)(void *), void *argument)
{
	if (pthread_create(thread, NULL, run, argument))
		tap_bail("pthread_create");
}

/* --- garbage between the entries that are posted */

struct writer {
	struct victim *victim;
	struct rng rng;
	pthread_t thread;
	atomic_bool stop;
};

/* Rings have no type here: any word of any ring. */
static void *run_writer(void *argument)
{
	struct writer *w = argument;

	while (!w->stop) {
		const struct ring *ring = &w->victim->rings[rng_below(&w->rng, w->victim->count)];
		uint64_t *word = (uint64_t *)ring->at + rng_below(&w->rng, ring->bytes / 8);

		/* Rarely enough for messages to pass between writes. */
		__atomic_store_n(word, rng_below(&w->rng, 4) ? rng_next(&w->rng) : 0, __ATOMIC_RELAXED);
		for (int i = rng_below(&w->rng, 64); i; i--)
			sched_yield();
	}
	return NULL;
}

static void garbage_in_traffic(int rounds)
{
	for (int i = 0; i < rounds; i++) {
		struct writer w = { .rng.state = rng_next(&rng) };
		struct victim v;

		victim_open(&v, &opts, &rng);
		w.victim = &v;
		start(&w.thread, run_writer, &w);
		for (int step = 0; step < 800; step++)
			victim_post(&v, &rng);
		w.stop = true;
		pthread_join(w.thread, NULL);
		victim_close(&v);
	}
	tap_point("garbage in rings that carry requests, %d times", rounds);
}

/* --- arming a completion queue */

/* Returns the control word of the CQ whose first completion was for the receive `wr_id`. */
static uint64_t *find_control(const struct victim *v, const struct ibv_cq *cq, uint64_t wr_id)
{
	for (int i = 0; i < v->count; i++) {
		const struct siw_cqe *cqe = (struct siw_cqe *)v->rings[i].at;

		if (cqe->id == wr_id && cqe->opcode == SIW_OP_RECEIVE && cqe->bytes == VICTIM_MESSAGE)
			return (uint64_t *)(v->rings[i].at + cq->cqe * sizeof(*cqe));
	}
	tap_bail("no completion in any ring");
}

struct armer {
	struct ibv_cq *cq;
	uint64_t *control;
	struct rng rng;
	pthread_t thread;
	atomic_bool stop;
};

/* Arms it by verb and by command, or writes an invalid value. */
static void *run_armer(void *argument)
{
	struct armer *a = argument;
	struct ib_uverbs_req_notify_cq body = { .cq_handle = a->cq->handle };

	while (!a->stop) {
		switch (rng_below(&a->rng, 4)) {
		case 0:
			__atomic_store_n(a->control, rng_next(&a->rng), __ATOMIC_RELAXED);
			break;
		case 1:
			__atomic_store_n(a->control, rng_below(&a->rng, 8), __ATOMIC_RELAXED);
			break;
		case 2:
			(void)ibv_req_notify_cq(a->cq, rng_below(&a->rng, 2));
			break;
		default:
			body.solicited_only = rng_below(&a->rng, 2);
			(void)command(a->cq->context, IB_USER_VERBS_CMD_REQ_NOTIFY_CQ, &body,
				      sizeof(body), NULL, 0);
		}
	}
	return NULL;
}

static void events_drain(struct ibv_comp_channel *channel)
{
	while (cq_event_within(channel, 0))
		;
}

static void arming(int messages)
{
	struct armer armers[2];
	struct victim v;
	struct end *end = &v.pair.passive;

	victim_open(&v, &opts, &rng);
	victim_exchange(&v, 0x5eed);
	for (int i = 0; i < 2; i++) {
		armers[i] = (struct armer){ .cq = end->rcq, .rng.state = rng_next(&rng) };
		armers[i].control = find_control(&v, end->rcq, 0x5eed);
		start(&armers[i].thread, run_armer, &armers[i]);
	}
	for (int i = 0; i < messages; i++) {
		victim_exchange(&v, i);
		events_drain(end->rchannel);
	}
	for (int i = 0; i < 2; i++) {
		armers[i].stop = true;
		pthread_join(armers[i].thread, NULL);
	}
	tap_point("a completion queue is armed and disarmed while %d messages arrive", messages);

	for (int i = 0; i < messages; i++) {
		struct ibv_sge from = region_sge(&v.active, 0, VICTIM_MESSAGE),
			       to = region_sge(&v.passive, 0, VICTIM_MESSAGE);

		__atomic_store_n(armers[0].control, 0, __ATOMIC_RELAXED);
		events_drain(end->rchannel);
		if (!tap_check(!post_recv(end->qp, i, &to, 1) && !ibv_req_notify_cq(end->rcq, 0) &&
			       !post_send(v.pair.active.qp, i, IBV_WR_SEND, &from, 1, IBV_SEND_SIGNALED, 0),
			       "post") ||
		    !tap_check(cq_event_within(end->rchannel, PATIENCE), "no event of message %d", i))
			break;
		cq_expect(end->rcq, i, IBV_WC_SUCCESS, NULL);
		cq_expect(v.pair.active.scq, i, IBV_WC_SUCCESS, NULL);
	}
	tap_point("and gives an event for each of %d more once it is armed as it should be", messages);
	events_drain(end->rchannel);
	victim_close(&v);
	tap_point("the connection and its queues can be destroyed");
}

int main(int argc, char **argv)
{
	struct options options = options_parse(argc, argv, 10);
	struct flow flow = {};

	rng = options.rng;
	opts.active = options.active;
	opts.passive = options.passive;

	flow_start(&flow, &opts, rng_next(&rng));
	arming(500);
	garbage_in_traffic(options.rounds);
	flow_stop(&flow);
	return tap_done();
}
