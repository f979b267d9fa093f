// SPDX-License-Identifier: GPL-2.0
/*
 * SENDs for which no receive is posted when they arrive.
 *
 *     receive_wait ACTIVE PASSIVE late		the receives come in time, before `receive_wait` is over
 *     receive_wait ACTIVE PASSIVE over MS	they do not; `receive_wait` is MS
 *     receive_wait ACTIVE PASSIVE ends		the wait ends otherwise; `receive_wait` is long
 *     receive_wait ACTIVE PASSIVE line		many wait for one SRQ, until stdin has a line
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/access.h"
#include "common/clock.h"
#include "common/completion.h"
#include "common/post.h"
#include "common/random.h"
#include "common/setup.h"
#include "common/tap.h"

#define SLOTS 48U
#define SIZE 3000U		/* bytes of a message: several segments */
#define LENGTH (SLOTS * SIZE)
#define STREAMS 6U		/* on one SRQ */
#define LINE 40U		/* streams on one SRQ that wait for long */
#define MANY 3000U		/* messages to a slow receiver */
#define PROMPT 5000		/* maximum ms of an end that must not wait, on a slow machine */

static struct pair_opts own = { .sq = 64, .rq = 64 };
static struct pair_opts shared = { .sq = 64, .srq = 64 };
static struct rng rng = { 16 };
static const struct regions regions = { LENGTH, 0, ALL, ALL };

static struct ibv_sge slot(const struct region *region, unsigned int number)
{
	return region_sge(region, number % SLOTS * SIZE, SIZE);
}

static void say(struct setup *s, unsigned int number)
{
	struct ibv_sge sge = slot(&s->local, number);

	tap_check(!post_send(s->pair.active.qp, number, IBV_WR_SEND, &sge, 1, IBV_SEND_SIGNALED, 0),
		  "post SEND %u", number);
}

static void hear(struct setup *s, unsigned int number)
{
	struct ibv_sge sge = slot(&s->remote, number);
	int ret;

	/* What an earlier message has left there does not count. */
	memset((void *)(uintptr_t)sge.addr, 0, sge.length);
	ret = s->pair.passive.srq ? post_srq_recv(s->pair.passive.srq, number, &sge, 1) :
					post_recv(s->pair.passive.qp, number, &sge, 1);

	tap_check(!ret, "post receive %u", number);
}

/* Checks that the next receive of a stream completes with the message of the same number. */
static void expect(struct setup *s, unsigned int number)
{
	size_t at = number % SLOTS * SIZE;
	struct ibv_wc wc;

	if (!cq_expect(s->pair.passive.rcq, number, IBV_WC_SUCCESS, &wc))
		return;
	tap_check(wc.byte_len == SIZE, "%u bytes", wc.byte_len);
	tap_check(!memcmp(s->remote.bytes + at, s->local.bytes + at, SIZE),
		  "message %u is not as it was sent", number);
	memcpy(region_wanted(&s->remote, s->remote.bytes + at), s->local.bytes + at, SIZE);
}

static bool is_open(const struct end *end)
{
	return tap_check(qp_state(end->qp) == IBV_QPS_RTS, "%s QP is in state %d", end->name,
			 qp_state(end->qp));
}

/* Checks that a stream waits: nothing is received, and nothing has ended. */
static void check_waits(struct setup *s)
{
	tap_check(cq_silent(s->pair.passive.rcq, SILENCE), "a completion without a receive");
	is_open(&s->pair.passive);
	is_open(&s->pair.active);
}

static void close_intact(struct setup *s)
{
	region_intact(&s->remote, "the receiver's memory");
	setup_close(s);
}

static void one_by_one(const struct pair_opts *opts, const char *name)
{
	struct setup s;
	unsigned int i;

	setup_open(&s, opts, &rng, &regions);
	for (i = 0; i < SLOTS; i++)
		say(&s, i);
	check_waits(&s);
	for (i = 0; i < SLOTS; i++) {
		hear(&s, i);
		expect(&s, i);
		tap_check(cq_silent(s.pair.passive.rcq, 0), "a completion without a receive");
	}
	close_intact(&s);
	tap_point("SENDs are delivered as receives are posted, one by one (%s)", name);
}

static void all_at_once(const struct pair_opts *opts, const char *name)
{
	struct setup s;
	unsigned int i;

	setup_open(&s, opts, &rng, &regions);
	for (i = 0; i < SLOTS; i++)
		say(&s, i);
	check_waits(&s);
	for (i = 0; i < SLOTS; i++)
		hear(&s, i);
	for (i = 0; i < SLOTS; i++)
		expect(&s, i);
	close_intact(&s);
	tap_point("SENDs are delivered in order when many receives are posted (%s)", name);
}

/* The receiver posts a few receives at a time, when those before are used up. */
static void slow_receiver(const struct pair_opts *opts, const char *name)
{
	unsigned int sent = 0, complete = 0, posted = 0, i;
	struct setup s;
	struct ibv_wc wc;

	setup_open(&s, opts, &rng, &regions);
	for (i = 0; i < MANY && !tap_failing(); i++) {
		/* A sender that never waits: it has SENDs posted whenever there is room. */
		while (sent < MANY && sent - complete < 32)
			say(&s, sent++);
		while (complete < sent && ibv_poll_cq(s.pair.active.scq, 1, &wc) > 0)
			complete += tap_check(wc.status == IBV_WC_SUCCESS, "SEND %" PRIu64 ": %s",
					      wc.wr_id, ibv_wc_status_str(wc.status));
		if (posted == i) {
			if (rng_below(&rng, 20) == 0)
				sleep_ms(rng_below(&rng, 10));
			for (posted += 1 + rng_below(&rng, 8); posted > MANY; posted--)
				;
			for (unsigned int at = i; at < posted; at++)
				hear(&s, at);
		}
		expect(&s, i);
	}
	close_intact(&s);
	tap_point("a steady sender is held back by a receiver that is slow with receives (%s)", name);
}

static void several_streams(void)
{
	struct pair_opts opts = shared;
	struct setup s[STREAMS];
	unsigned int i, got[STREAMS] = {}, round, all = 0;
	struct ibv_wc wc;
	int64_t until;

	for (i = 0; i < STREAMS; i++) {
		setup_open(&s[i], &opts, &rng, &regions);
		opts.share = &s[0].pair.passive;
	}
	for (round = 0; round < 4; round++)
		for (i = 0; i < STREAMS; i++)
			say(&s[i], round);
	for (i = 0; i < STREAMS; i++)
		check_waits(&s[i]);
	until = now_ms() + PATIENCE;
	for (unsigned int posted = 0; all < 4 * STREAMS && now_ms() < until; ) {
		/* Into memory of the first stream: only who gets them matters here. */
		if (posted == all)
			hear(&s[0], posted++);
		for (i = 0; i < STREAMS; i++)
			while (ibv_poll_cq(s[i].pair.passive.rcq, 1, &wc) > 0) {
				tap_check(wc.status == IBV_WC_SUCCESS, "stream %u: %s", i,
					  ibv_wc_status_str(wc.status));
				got[i]++;
				all++;
			}
	}
	for (i = 0; i < STREAMS; i++) {
		tap_check(got[i] == 4, "stream %u has %u of 4 messages", i, got[i]);
		is_open(&s[i].pair.passive);
	}
	for (i = STREAMS; i-- > 0; )
		setup_close(&s[i]);
	tap_point("%u streams that wait for one SRQ get all their messages", STREAMS);
}

/* Says `posted` when each stream has a message that must wait. */
static void wait_in_line(void)
{
	static struct setup s[LINE];
	struct pair_opts opts = shared;
	struct ibv_wc wc;
	unsigned int i;

	for (i = 0; i < LINE; i++) {
		setup_open(&s[i], &opts, &rng, &regions);
		opts.share = &s[0].pair.passive;
	}
	for (i = 0; i < LINE; i++)
		say(&s[i], 0);
	printf("# posted\n");
	fflush(stdout);
	while (getchar() != '\n' && !feof(stdin))
		;
	for (i = 0; i < LINE; i++)
		hear(&s[0], i);
	for (i = 0; i < LINE; i++) {
		tap_check(cq_next(s[i].pair.passive.rcq, &wc, PATIENCE) && wc.status == IBV_WC_SUCCESS,
			  "stream %u has no message", i);
		is_open(&s[i].pair.passive);
	}
	for (i = LINE; i-- > 0; )
		setup_close(&s[i]);
	tap_point("%u streams that wait for one SRQ for long get their messages", LINE);
}

/* Opens two streams on one SRQ. The first waits, and then the second. */
static void open_waiting(struct setup s[2])
{
	struct pair_opts opts = shared;

	setup_open(&s[0], &opts, &rng, &regions);
	opts.share = &s[0].pair.passive;
	setup_open(&s[1], &opts, &rng, &regions);
	say(&s[0], 0);
	check_waits(&s[0]);
	for (unsigned int i = 0; i < 8; i++)
		say(&s[1], i);
	check_waits(&s[1]);
}

static void in_turn(void)
{
	struct setup s[2];

	open_waiting(s);
	hear(&s[0], 0);
	expect(&s[0], 0);
	check_waits(&s[1]);
	for (unsigned int i = 0; i < 8; i++) {
		hear(&s[1], i);
		expect(&s[1], i);
	}
	setup_close(&s[1]);
	close_intact(&s[0]);
	tap_point("a stream that waits for an SRQ is served before one that came later");
}

static void others_continue(void)
{
	struct setup waits, other;

	setup_open(&waits, &own, &rng, &regions);
	setup_open(&other, &own, &rng, &regions);
	say(&waits, 0);
	check_waits(&waits);
	for (unsigned int i = 0; i < 300 && !tap_failing(); i++) {
		hear(&other, i);
		say(&other, i);
		cq_expect(other.pair.active.scq, i, IBV_WC_SUCCESS, NULL);
		expect(&other, i);
	}
	check_waits(&waits);
	hear(&waits, 0);
	expect(&waits, 0);
	close_intact(&other);
	close_intact(&waits);
	tap_point("other streams go on while one waits");
}

static void other_direction(void)
{
	struct ibv_sge sge;
	struct setup s;

	setup_open(&s, &own, &rng, &regions);
	say(&s, 0);
	check_waits(&s);
	sge = slot(&s.local, 1);
	tap_check(!post_recv(s.pair.active.qp, 7, &sge, 1), "post a receive");
	sge = slot(&s.remote, 1);
	tap_check(!post_send(s.pair.passive.qp, 8, IBV_WR_SEND, &sge, 1, IBV_SEND_SIGNALED, 0),
		  "post a SEND");
	cq_expect(s.pair.passive.scq, 8, IBV_WC_SUCCESS, NULL);
	cq_expect(s.pair.active.rcq, 7, IBV_WC_SUCCESS, NULL);
	hear(&s, 0);
	expect(&s, 0);
	close_intact(&s);
	tap_point("a stream that waits sends");
}

/* Checks a QP after a fatal error: in ERROR, and its connection reported as ended. */
static void check_ended(struct end *end)
{
	tap_check(qp_reaches(end->qp, IBV_QPS_ERR, PATIENCE), "%s QP is in state %d, not ERROR",
		  end->name, qp_state(end->qp));
	cm_expect(end->events, RDMA_CM_EVENT_DISCONNECTED, NULL, NULL, NULL);
}

/* Checks that a wait that began at `since` has lasted `ms` until now, or a little more. */
static void check_lasted(int64_t since, int ms)
{
	int64_t lasted = now_ms() - since;

	tap_check(lasted >= ms, "ended after %" PRId64 " ms, wanted %d", lasted, ms);
	tap_check(lasted < ms + PROMPT, "ended after %" PRId64 " ms, wanted %d", lasted, ms);
}

static void never(const struct pair_opts *opts, int ms, const char *name)
{
	struct setup s;
	int64_t since;

	setup_open(&s, opts, &rng, &regions);
	since = now_ms();
	say(&s, 0);
	say(&s, 1);
	tap_check(qp_reaches(s.pair.passive.qp, IBV_QPS_ERR, PATIENCE), "the stream does not end");
	check_lasted(since, ms);
	check_ended(&s.pair.passive);
	tap_check(async_event_within(s.pair.passive.ctx, IBV_EVENT_QP_REQ_ERR, s.pair.passive.qp,
				     PATIENCE), "no QP error event");
	check_ended(&s.pair.active);
	tap_check(cq_silent(s.pair.passive.rcq, 0), "a completion without a receive");
	close_intact(&s);
	tap_point("without a receive a stream ends after %d ms (%s)", ms, name);
}

static void both_wait(int ms)
{
	struct ibv_sge sge;
	struct setup s;
	int64_t since;

	setup_open(&s, &own, &rng, &regions);
	since = now_ms();
	say(&s, 0);
	sge = slot(&s.remote, 0);
	tap_check(!post_send(s.pair.passive.qp, 0, IBV_WR_SEND, &sge, 1, IBV_SEND_SIGNALED, 0),
		  "post a SEND");
	check_ended(&s.pair.passive);
	check_ended(&s.pair.active);
	check_lasted(since, ms);
	setup_close(&s);
	tap_point("two ends that wait for each other end after %d ms", ms);
}

/* A wait that ends well does not shorten the next one, and its timer ends no stream. */
static void each_its_own(int ms)
{
	struct setup s;

	setup_open(&s, &own, &rng, &regions);
	/* All of them together wait longer than one may. */
	for (unsigned int i = 0; i < 6; i++) {
		say(&s, i);
		tap_check(cq_silent(s.pair.passive.rcq, ms / 4), "a completion without a receive");
		hear(&s, i);
		expect(&s, i);
	}
	tap_check(cq_silent(s.pair.passive.rcq, ms), "a completion without a receive");
	is_open(&s.pair.passive);
	close_intact(&s);
	tap_point("each message has the whole time");
}

static void ended_by(const char *name, bool passive_sees, void (*end)(struct setup *s))
{
	struct setup s;
	int64_t since;

	setup_open(&s, &own, &rng, &regions);
	say(&s, 0);
	check_waits(&s);
	since = now_ms();
	end(&s);
	if (passive_sees)
		check_ended(&s.pair.passive);
	if (s.pair.active.qp)
		cm_expect(s.pair.active.events, RDMA_CM_EVENT_DISCONNECTED, NULL, NULL, NULL);
	check_lasted(since, 0);
	tap_check(cq_silent(s.pair.passive.rcq, 0), "a completion without a receive");
	close_intact(&s);
	tap_point("%s ends a wait at once", name);
}

static void destroy(struct end *end)
{
	rdma_destroy_qp(end->id);
	end->qp = NULL;
}

static void destroy_passive(struct setup *s)
{
	destroy(&s->pair.passive);
}

static void destroy_active(struct setup *s)
{
	destroy(&s->pair.active);
}

static void to_error(struct setup *s)
{
	tap_check(qp_to_error(s->pair.passive.qp), "ibv_modify_qp: %m");
}

static void disconnect_passive(struct setup *s)
{
	tap_check(!rdma_disconnect(s->pair.passive.id), "rdma_disconnect: %m");
}

static void disconnect_active(struct setup *s)
{
	tap_check(!rdma_disconnect(s->pair.active.id), "rdma_disconnect: %m");
}

/* The peer closes behind two messages, for which receives are posted later. */
static void closed_behind(const char *name, void (*end)(struct setup *s))
{
	struct setup s;

	setup_open(&s, &own, &rng, &regions);
	say(&s, 0);
	say(&s, 1);
	check_waits(&s);
	end(&s);
	for (unsigned int i = 0; i < 2; i++) {
		/* The close does not end the wait, and is not reported before the messages. */
		tap_check(cq_silent(s.pair.passive.rcq, SILENCE), "a completion without a receive");
		is_open(&s.pair.passive);
		tap_check(!readable_within(s.pair.passive.events->fd, 0), "an event before message %u", i);
		hear(&s, i);
		expect(&s, i);
	}
	check_ended(&s.pair.passive);
	if (s.pair.active.qp)
		cm_expect(s.pair.active.events, RDMA_CM_EVENT_DISCONNECTED, NULL, NULL, NULL);
	tap_check(cq_silent(s.pair.passive.rcq, 0), "a completion without a receive");
	close_intact(&s);
	tap_point("%s waits behind the messages", name);
}

static void turn_passes_on(void)
{
	struct setup s[2];

	open_waiting(s);
	/* The PD and the SRQ are those of the first. */
	destroy(&s[0].pair.passive);
	hear(&s[1], 0);
	expect(&s[1], 0);
	setup_close(&s[1]);
	setup_close(&s[0]);
	tap_point("the turn of a stream that ends passes to the next");
}

int main(int argc, char **argv)
{
	if (argc < 4)
		return 2;
	own.active = shared.active = side_parse(argv[1]);
	own.passive = shared.passive = side_parse(argv[2]);
	if (!strcmp(argv[3], "late")) {
		one_by_one(&own, "QP");
		one_by_one(&shared, "SRQ");
		all_at_once(&own, "QP");
		all_at_once(&shared, "SRQ");
		slow_receiver(&own, "QP");
		slow_receiver(&shared, "SRQ");
		several_streams();
		in_turn();
		others_continue();
		other_direction();
	} else if (!strcmp(argv[3], "over") && argc == 5) {
		int ms = atoi(argv[4]);

		never(&own, ms, "QP");
		never(&shared, ms, "SRQ");
		both_wait(ms);
		if (ms)
			each_its_own(ms);
	} else if (!strcmp(argv[3], "ends")) {
		ended_by("the destruction of the QP", false, destroy_passive);
		ended_by("a move to ERROR", true, to_error);
		ended_by("a disconnect", true, disconnect_passive);
		closed_behind("a disconnect by the peer", disconnect_active);
		closed_behind("the destruction of the peer's QP", destroy_active);
		turn_passes_on();
	} else if (!strcmp(argv[3], "line")) {
		wait_in_line();
	} else {
		return 2;
	}
	return tap_done();
}
