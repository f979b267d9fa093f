// SPDX-License-Identifier: GPL-2.0
/*
 * Completion queues of another size.
 *
 *     provider_resize ACTIVE PASSIVE
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include <rdma/ib_user_verbs.h>

#include "common/access.h"
#include "common/clock.h"
#include "common/completion.h"
#include "common/post.h"
#include "common/random.h"
#include "common/rings.h"
#include "common/setup.h"
#include "common/tap.h"

static struct rng rng = { .state = 1 };
static struct pair_opts sides;

static void begin(struct setup *s, struct pair_opts *opts)
{
	const struct regions regions = { .length = 4096, .local = ALL, .remote = ALL };

	opts->active = sides.active;
	opts->passive = sides.passive;
	setup_open(s, opts, &rng, &regions);
}

/* Lets `count` sends complete, from `first` on, at the passive end. */
static void send_some(struct setup *s, int first, int count)
{
	for (int i = first; i < first + count; i++) {
		tap_check(!post_recv(s->pair.passive.qp, i, NULL, 0), "ibv_post_recv");
		tap_check(!post_send(s->pair.active.qp, i, IBV_WR_SEND, NULL, 0, IBV_SEND_SIGNALED, 0),
			  "ibv_post_send");
		cq_expect(s->pair.active.scq, i, IBV_WC_SUCCESS, NULL);
	}
	/* The answer comes after the messages. */
	tap_check(!post_rdma(s->pair.active.qp, 0, IBV_WR_RDMA_READ,
			     &(struct ibv_sge){ (uintptr_t)s->local.bytes, 1, s->local.mr->lkey }, 1,
			     IBV_SEND_SIGNALED, (uintptr_t)s->remote.bytes, s->remote.mr->rkey),
		  "ibv_post_send");
	cq_expect(s->pair.active.scq, 0, IBV_WC_SUCCESS, NULL);
}

static void expect_some(struct setup *s, int first, int count)
{
	for (int i = first; i < first + count; i++)
		cq_expect(s->pair.passive.rcq, i, IBV_WC_SUCCESS, NULL);
}

static int resize(struct ibv_cq *cq, int cqe)
{
	int status = ibv_resize_cq(cq, cqe);

	if (!status)
		tap_check(cq->cqe >= cqe, "%d entries, wanted %d", cq->cqe, cqe);
	return status;
}

static void pending(void)
{
	struct pair_opts opts = { .cqe = 64, .rq = 256 };
	const int sizes[] = { 128, 50, 1000, 64, 33, 4096 };
	struct setup s;
	int sent = 1, seen = 1;

	begin(&s, &opts);
	for (unsigned int i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		send_some(&s, sent, 30 - (sent - seen));
		sent = seen + 30;
		tap_check(!resize(s.pair.passive.rcq, sizes[i]), "%d entries", sizes[i]);
		/* Some before, some after. */
		expect_some(&s, seen, 10);
		seen += 10;
		send_some(&s, sent, 3);
		sent += 3;
	}
	expect_some(&s, seen, sent - seen);
	tap_check(cq_silent(s.pair.passive.rcq, SILENCE), "more completions than messages");
	setup_close(&s);
	tap_point("pending completions are in the new queue, in order");
}

static void bound(void)
{
	struct pair_opts opts = { .cqe = 16, .rq = 256 };
	struct ibv_cq *cq;
	struct setup s;
	int count;

	begin(&s, &opts);
	cq = s.pair.passive.rcq;
	tap_check(!resize(cq, 128), "ibv_resize_cq");
	count = cq->cqe;
	send_some(&s, 1, count);
	tap_check(!async_event_within(s.pair.passive.ctx, IBV_EVENT_CQ_ERR, cq, 0),
		  "an overflow of the larger queue");
	expect_some(&s, 1, count);
	tap_check(!resize(cq, 16), "ibv_resize_cq");
	count = cq->cqe;
	tap_check(count < 128, "%d entries", count);
	send_some(&s, 1, count);
	/* One more than fits. */
	tap_check(!post_recv(s.pair.passive.qp, 1, NULL, 0), "ibv_post_recv");
	tap_check(!post_send(s.pair.active.qp, 1, IBV_WR_SEND, NULL, 0, 0, 0), "ibv_post_send");
	tap_check(async_event_within(s.pair.passive.ctx, IBV_EVENT_CQ_ERR, cq, PATIENCE),
		  "no overflow of the smaller queue");
	expect_some(&s, 1, count);
	setup_close(&s);
	tap_point("a queue overflows above its new size, not below");
}

static void refused(void)
{
	struct pair_opts opts = { .cqe = 64 };
	struct ib_uverbs_resize_cq cmd = {};
	struct ib_uverbs_resize_cq_resp out;
	struct ibv_cq *cq;
	struct setup s;
	int status;

	begin(&s, &opts);
	cq = s.pair.passive.rcq;
	send_some(&s, 1, 40);
	status = resize(cq, 32);
	tap_check(status == EINVAL, "smaller than what is pending: %d", status);
	status = resize(cq, 0);
	tap_check(status == EINVAL, "no entries: %d", status);
	status = resize(cq, s.pair.passive.attr.max_cqe + 1);
	tap_check(status == EINVAL, "more than max_cqe: %d", status);
	/* Nobody could map the ring. */
	cmd.cq_handle = cq->handle;
	cmd.cqe = 128;
	status = command(cq->context, IB_USER_VERBS_CMD_RESIZE_CQ, &cmd, sizeof(cmd), &out, sizeof(out));
	tap_check(status == EINVAL, "no room for a response: %d", status);
	expect_some(&s, 1, 9);
	tap_check(!resize(cq, 32), "31 are pending");
	send_some(&s, 41, 1);
	expect_some(&s, 10, 32);
	setup_close(&s);
	tap_point("what cannot be leaves the queue as it was");
}

static void armed(void)
{
	struct pair_opts opts = { .notify = true };
	struct setup s;

	begin(&s, &opts);
	tap_check(!ibv_req_notify_cq(s.pair.passive.rcq, 0), "ibv_req_notify_cq");
	tap_check(!resize(s.pair.passive.rcq, 500), "ibv_resize_cq");
	send_some(&s, 1, 1);
	tap_check(cq_event_within(s.pair.passive.rchannel, PATIENCE), "no event");
	expect_some(&s, 1, 1);
	tap_check(!resize(s.pair.passive.rcq, 20), "ibv_resize_cq");
	send_some(&s, 2, 1);
	tap_check(!cq_event_within(s.pair.passive.rchannel, SILENCE), "an event of a queue not armed");
	expect_some(&s, 2, 1);
	setup_close(&s);
	tap_point("an armed queue stays armed, and no other gets armed");
}

static void extended(void)
{
	struct pair_opts opts = { .wc_flags = IBV_WC_EX_WITH_BYTE_LEN };
	struct ibv_poll_cq_attr attr = {};
	struct ibv_cq_ex *cq;
	struct setup s;

	begin(&s, &opts);
	cq = (struct ibv_cq_ex *)s.pair.passive.rcq;
	send_some(&s, 1, 2);
	tap_check(!resize(s.pair.passive.rcq, 300), "ibv_resize_cq");
	tap_check(!ibv_start_poll(cq, &attr) && cq->wr_id == 1, "the first");
	tap_check(!ibv_next_poll(cq) && cq->wr_id == 2, "the second");
	tap_check(ibv_next_poll(cq) == ENOENT, "a third");
	ibv_end_poll(cq);
	setup_close(&s);
	tap_point("extended queues can be resized");
}

#define MESSAGES 2000
#define DEPTH 64

struct traffic {
	struct setup *s;
	atomic_int received;
	atomic_bool done;
	atomic_int changes;
};

static void *send_all(void *arg)
{
	struct traffic *t = arg;
	struct ibv_wc wc[16];
	int sent = 0, taken = 0;

	while (taken < MESSAGES && !atomic_load(&t->done)) {
		int got;

		/* The peer's queue must not overflow. */
		while (sent < MESSAGES && sent - taken < DEPTH &&
		       sent - atomic_load(&t->received) < DEPTH) {
			if (post_send(t->s->pair.active.qp, sent, IBV_WR_SEND, NULL, 0,
				      IBV_SEND_SIGNALED, 0))
				return "ibv_post_send";
			sent++;
		}
		got = ibv_poll_cq(t->s->pair.active.scq, 16, wc);
		for (int i = 0; i < got; i++, taken++)
			if (wc[i].status || wc[i].wr_id != (uint64_t)taken)
				return "a send";
		if (got < 0)
			return "ibv_poll_cq";
		/* The mutex of a queue is not fair: let the others have it. */
		if (!got)
			sched_yield();
	}
	return NULL;
}

static void *change(void *arg)
{
	struct traffic *t = arg;

	for (unsigned int i = 0; !atomic_load(&t->done); i++) {
		struct ibv_cq *cq = i % 2 ? t->s->pair.active.scq : t->s->pair.passive.rcq;

		int before = atomic_load(&t->received);

		if (ibv_resize_cq(cq, DEPTH + i % 7 * 100))
			return "ibv_resize_cq";
		atomic_fetch_add(&t->changes, 1);
		while (atomic_load(&t->received) < before + 10 && !atomic_load(&t->done))
			sched_yield();
	}
	return NULL;
}

static void under_traffic(void)
{
	struct pair_opts opts = { .cqe = DEPTH, .rq = MESSAGES };
	int64_t end = now_ms() + PATIENCE;
	struct traffic t = {};
	pthread_t thread[3];
	struct setup s;
	void *why;

	begin(&s, &opts);
	t.s = &s;
	for (int i = 0; i < MESSAGES; i++)
		tap_check(!post_recv(s.pair.passive.qp, i, NULL, 0), "ibv_post_recv");
	for (int i = 0; i < 3; i++)
		if (pthread_create(&thread[i], NULL, i ? change : send_all, &t))
			tap_bail("pthread_create");
	while (atomic_load(&t.received) < MESSAGES && now_ms() < end && !tap_failing()) {
		int received = atomic_load(&t.received);
		struct ibv_wc wc[16];
		int got = ibv_poll_cq(s.pair.passive.rcq, 16, wc);

		tap_check(got >= 0, "ibv_poll_cq: %d", got);
		for (int i = 0; i < got; i++)
			tap_check(!wc[i].status && wc[i].wr_id == (uint64_t)received + i,
				  "receive %" PRIu64 ", wanted %d: %s", wc[i].wr_id, received + i,
				  ibv_wc_status_str(wc[i].status));
		if (got > 0)
			atomic_fetch_add(&t.received, got);
		else
			sched_yield();
	}
	tap_check(atomic_load(&t.received) == MESSAGES, "%d received", atomic_load(&t.received));
	tap_check(atomic_load(&t.changes) > 20, "%d changes", atomic_load(&t.changes));
	tap_note("%d changes", atomic_load(&t.changes));
	/* The sender ends by itself, unless something is wrong. */
	atomic_store(&t.done, tap_failing());
	for (int i = 0; i < 3; i++) {
		pthread_join(thread[i], &why);
		tap_check(!why, "%s", (char *)why);
		atomic_store(&t.done, true);
	}
	tap_check(cq_silent(s.pair.passive.rcq, SILENCE), "more completions than messages");
	setup_close(&s);
	tap_point("under traffic, two threads resize, and each completion comes once, in order");
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	sides.active = side_parse(argv[1]);
	sides.passive = side_parse(argv[2]);

	pending();
	bound();
	refused();
	armed();
	extended();
	under_traffic();
	return tap_done();
}
