// SPDX-License-Identifier: GPL-2.0
/*
 * Disconnecting with work outstanding: requests posted before go out, requests posted later do not,
 * and neither end can delay the end.
 *
 *     verbs_disconnect ACTIVE PASSIVE
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/access.h"
#include "common/clock.h"
#include "common/completion.h"
#include "common/post.h"
#include "common/random.h"
#include "common/setup.h"
#include "common/tap.h"

#define LENGTH (64U << 10)
#define QUEUE 64		/* requests posted and not complete */
#define BEFORE 200		/* requests before the disconnect */
#define PROMPT 8000		/* maximum ms of the disconnect, with a full queue */

static struct pair_opts plain = { .sq = QUEUE };
static struct rng rng = { 11 };

static const struct regions regions = { LENGTH, 0, ALL, ALL };

static int post(struct setup *s, uint64_t wr_id, enum ibv_wr_opcode opcode, uint32_t length)
{
	struct ibv_sge sge = region_sge(&s->local, 0, length);

	return post_rdma(s->pair.active.qp, wr_id, opcode, &sge, 1, IBV_SEND_SIGNALED,
			 (uintptr_t)s->remote.bytes, s->remote.mr->rkey);
}

static bool has_event(const struct end *end)
{
	return readable_within(end->events->fd, 0);
}

/* Counts of requests. */
struct course {
	uint64_t before;	/* posted before the disconnect */
	uint64_t succeeded, completed;
	int64_t took;		/* ms from the disconnect to the events at both ends */
};

/* The active end keeps its send queue full, before and after `ends` disconnects. */
static struct course post_steadily(struct setup *s, enum ibv_wr_opcode opcode, struct end *ends)
{
	struct end *active = &s->pair.active, *passive = &s->pair.passive;
	struct course course = {};
	bool told = false;
	uint64_t posted = 0;
	int64_t since = 0;
	struct ibv_wc wc;

	while (!told || course.completed < posted) {
		while (!told && posted - course.completed < QUEUE &&
		       !post(s, posted + 1, opcode, LENGTH / 4))
			posted++;
		while (ibv_poll_cq(active->scq, 1, &wc) > 0) {
			course.completed++;
			tap_check(wc.wr_id == course.completed, "completion of %" PRIu64 ", wanted %"
				  PRIu64, wc.wr_id, course.completed);
			if (wc.status == IBV_WC_SUCCESS && tap_check(
			    course.succeeded == course.completed - 1, "%" PRIu64 " succeeded, but not all"
			    " before it", wc.wr_id))
				course.succeeded++;
		}
		if (!since && course.completed >= BEFORE) {
			course.before = posted;
			since = now_ms();
			tap_check(!rdma_disconnect(ends->id), "rdma_disconnect: %m");
		}
		/* However late the process runs again, it posts something after the disconnect. */
		if (since && !told && posted > course.before && has_event(active) &&
		    has_event(passive)) {
			told = true;
			course.took = now_ms() - since;
		}
		if (since && now_ms() > since + PATIENCE) {
			tap_check(false, "%" PRIu64 " of %" PRIu64 " requests complete, ends told: %d",
				  course.completed, posted, told);
			break;
		}
	}
	cm_expect(active->events, RDMA_CM_EVENT_DISCONNECTED, NULL, NULL, NULL);
	cm_expect(passive->events, RDMA_CM_EVENT_DISCONNECTED, NULL, NULL, NULL);
	tap_check(course.took < PROMPT, "it took %" PRId64 " ms", course.took);
	tap_check(course.completed > course.succeeded, "nothing was flushed");
	return course;
}

static void poster_disconnects(enum ibv_wr_opcode opcode, const char *name)
{
	struct course course;
	struct setup s;

	setup_open(&s, &plain, &rng, &regions);
	course = post_steadily(&s, opcode, &s.pair.active);
	tap_check(course.succeeded == course.before, "%" PRIu64 " succeeded, %" PRIu64
		  " were posted before", course.succeeded, course.before);
	setup_close(&s);
	tap_point("%ss that are posted before a disconnect are done, later ones flushed", name);
}

static void peer_goes_on_reading(void)
{
	struct setup s;

	setup_open(&s, &plain, &rng, &regions);
	post_steadily(&s, IBV_WR_RDMA_READ, &s.pair.passive);
	setup_close(&s);
	tap_point("a peer that goes on reading does not put a disconnect off");
}

static void nothing_posted(void)
{
	struct setup s;

	setup_open(&s, &plain, &rng, &regions);
	tap_check(!rdma_disconnect(s.pair.active.id), "rdma_disconnect: %m");
	tap_check(!post(&s, 1, IBV_WR_RDMA_WRITE, 8), "post a WRITE");
	tap_check(!post(&s, 2, IBV_WR_RDMA_READ, 8), "post a READ");
	cq_expect(s.pair.active.scq, 1, IBV_WC_WR_FLUSH_ERR, NULL);
	cq_expect(s.pair.active.scq, 2, IBV_WC_WR_FLUSH_ERR, NULL);
	cm_expect(s.pair.passive.events, RDMA_CM_EVENT_DISCONNECTED, NULL, NULL, NULL);
	region_intact(&s.remote, "the remote region");
	setup_close(&s);
	tap_point("what is posted after the disconnect of an idle QP is flushed");
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	plain.active = side_parse(argv[1]);
	plain.passive = side_parse(argv[2]);
	poster_disconnects(IBV_WR_RDMA_WRITE, "WRITE");
	poster_disconnects(IBV_WR_RDMA_READ, "READ");
	nothing_posted();
	peer_goes_on_reading();
	return tap_done();
}
