// SPDX-License-Identifier: GPL-2.0
/*
 * The times of completions.
 *
 *     provider_timestamps ACTIVE PASSIVE
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "common/access.h"
#include "common/clock.h"
#include "common/completion.h"
#include "common/post.h"
#include "common/random.h"
#include "common/setup.h"
#include "common/tap.h"

#define BOTH (IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
#define MESSAGES 50
/* The clocks are not read at the same moment, and the machine may be busy; in ns. */
#define TOLERANCE 2000000000ull

static struct rng rng = { .state = 1 };
static struct pair_opts sides;

static void begin(struct setup *s, struct pair_opts *opts)
{
	const struct regions regions = { .length = 4096, .local = ALL, .remote = ALL };

	opts->active = sides.active;
	opts->passive = sides.passive;
	setup_open(s, opts, &rng, &regions);
}

static uint64_t nanoseconds(struct timespec time)
{
	return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static uint64_t wallclock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return nanoseconds(now);
}

/* The clock of the device, in its unit. */
static uint64_t device_clock(struct ibv_context *ctx)
{
	struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };

	tap_check(!ibv_query_rt_values_ex(ctx, &values), "ibv_query_rt_values_ex");
	tap_check(values.comp_mask == IBV_VALUES_MASK_RAW_CLOCK, "comp_mask %#x", values.comp_mask);
	/* In the unit of timestamps: programs do not look at tv_sec. */
	tap_check(!values.raw_clock.tv_sec, "%jd s", (intmax_t)values.raw_clock.tv_sec);
	return values.raw_clock.tv_nsec;
}

static void announced(void)
{
	struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK | 1u << 30 };
	struct ibv_cq_init_attr_ex init = {
		.cqe = 10, .wc_flags = BOTH, .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN,
	};
	struct ibv_device_attr_ex attr = {};
	struct pair_opts opts = {};
	struct setup s;

	begin(&s, &opts);
	tap_check(!ibv_query_device_ex(s.pair.active.ctx, NULL, &attr), "ibv_query_device_ex");
	tap_check(attr.hca_core_clock == 1000000, "%" PRIu64 " kHz", attr.hca_core_clock);
	tap_check(attr.completion_timestamp_mask == UINT64_MAX, "mask %#" PRIx64,
		  attr.completion_timestamp_mask);
	tap_check(!ibv_query_rt_values_ex(s.pair.active.ctx, &values), "ibv_query_rt_values_ex");
	tap_check(values.comp_mask == IBV_VALUES_MASK_RAW_CLOCK, "comp_mask %#x", values.comp_mask);
	errno = 0;
	tap_check(!ibv_create_cq_ex(s.pair.active.ctx, &init) && errno == EOPNOTSUPP,
		  "a queue that may overflow: %d", errno);
	setup_close(&s);
	tap_point("the device has a clock of 1 GHz, with 64 bits");
}

/* Takes `count` completions of a queue, whose times are between `from` and now, in order. */
static void check_times(struct ibv_context *ctx, struct ibv_cq *queue, int count, uint64_t from,
			uint64_t wall)
{
	struct ibv_cq_ex *cq = (struct ibv_cq_ex *)queue;
	struct ibv_poll_cq_attr attr = {};
	int64_t end = now_ms() + PATIENCE;
	uint64_t last = from;
	int seen = 0;

	while (seen < count && now_ms() < end && !tap_failing()) {
		if (ibv_start_poll(cq, &attr))
			continue;
		do {
			uint64_t time = ibv_wc_read_completion_ts(cq);
			uint64_t at = ibv_wc_read_completion_wallclock_ns(cq);

			tap_check(time >= last, "%" PRIu64 " ns after %" PRIu64, time, last);
			tap_check(time <= device_clock(ctx), "%" PRIu64 " ns is not over yet", time);
			/* Both clocks have gone on by the same time. */
			tap_check(at - wall + TOLERANCE >= time - from &&
				  at - wall <= time - from + TOLERANCE,
				  "%" PRIu64 " ns by the clock, %" PRIu64 " by the wall clock",
				  time - from, at - wall);
			last = time;
			seen++;
		} while (!ibv_next_poll(cq));
		ibv_end_poll(cq);
	}
	tap_check(seen == count, "%d of %d completions", seen, count);
}

static void times(bool resized)
{
	struct pair_opts opts = { .wc_flags = BOTH, .cqe = 256 };
	uint64_t from, wall, middle;
	struct setup s;

	begin(&s, &opts);
	for (int i = 0; i <= MESSAGES; i++)
		tap_check(!post_recv(s.pair.passive.qp, i, NULL, 0), "ibv_post_recv");
	from = device_clock(s.pair.active.ctx);
	wall = wallclock();
	for (int i = 0; i < MESSAGES; i++)
		tap_check(!post_send(s.pair.active.qp, i, IBV_WR_SEND, NULL, 0, IBV_SEND_SIGNALED, 0),
			  "ibv_post_send");
	if (resized)
		tap_check(!ibv_resize_cq(s.pair.active.scq, 1000) &&
			  !ibv_resize_cq(s.pair.passive.rcq, 1000), "ibv_resize_cq");
	check_times(s.pair.active.ctx, s.pair.active.scq, MESSAGES, from, wall);
	check_times(s.pair.passive.ctx, s.pair.passive.rcq, MESSAGES, from, wall);
	/* A completion has the time at which it came, not that of the poll. */
	tap_check(!post_send(s.pair.active.qp, 1, IBV_WR_SEND, NULL, 0, IBV_SEND_SIGNALED, 0),
		  "ibv_post_send");
	tap_check(!post_rdma(s.pair.active.qp, 2, IBV_WR_RDMA_READ,
			     &(struct ibv_sge){ (uintptr_t)s.local.bytes, 1, s.local.mr->lkey }, 1,
			     IBV_SEND_SIGNALED, (uintptr_t)s.remote.bytes, s.remote.mr->rkey),
		  "ibv_post_send");
	check_times(s.pair.active.ctx, s.pair.active.scq, 2, from, wall);
	middle = device_clock(s.pair.active.ctx);
	sleep_ms(SILENCE);
	if (tap_check(!ibv_start_poll((struct ibv_cq_ex *)s.pair.passive.rcq,
				      &(struct ibv_poll_cq_attr){}), "the receive")) {
		struct ibv_cq_ex *cq = (struct ibv_cq_ex *)s.pair.passive.rcq;

		tap_check(ibv_wc_read_completion_ts(cq) < middle, "the time of the poll");
		ibv_end_poll(cq);
	}
	setup_close(&s);
	tap_point("completions have the time at which they came, in order%s",
		  resized ? ", also after ibv_resize_cq" : "");
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	sides.active = side_parse(argv[1]);
	sides.passive = side_parse(argv[2]);

	announced();
	times(false);
	times(true);
	return tap_done();
}
