// SPDX-License-Identifier: GPL-2.0
#include "completion.h"

#include <inttypes.h>
#include <sched.h>

#include "clock.h"
#include "tap.h"

/* Polls for a completion for up to `ms`. Returns the number of completions, negative on error. */
static int poll_within(struct ibv_cq *cq, struct ibv_wc *wc, int ms)
{
	int64_t end = now_ms() + ms;
	int n;

	while (!(n = ibv_poll_cq(cq, 1, wc)) && now_ms() <= end)
		sched_yield();
	return n;
}

bool cq_next(struct ibv_cq *cq, struct ibv_wc *wc, int ms)
{
	return poll_within(cq, wc, ms) > 0;
}

bool cq_silent(struct ibv_cq *cq, int ms)
{
	struct ibv_wc wc;

	return poll_within(cq, &wc, ms) == 0;
}

bool cq_expect(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status, struct ibv_wc *wc)
{
	struct ibv_wc own;

	if (!wc)
		wc = &own;
	if (!cq_next(cq, wc, PATIENCE))
		return tap_check(false, "no completion of work request %" PRIu64, wr_id);
	return tap_check(wc->wr_id == wr_id, "completion of work request %" PRIu64 " (%s), wanted %"
			 PRIu64, wc->wr_id, ibv_wc_status_str(wc->status), wr_id) &&
	       tap_check(wc->status == status, "work request %" PRIu64 ": %s, wanted %s", wr_id,
			 ibv_wc_status_str(wc->status), ibv_wc_status_str(status));
}

bool cq_event_within(struct ibv_comp_channel *channel, int ms)
{
	struct ibv_cq *cq;
	void *context;

	if (!readable_within(channel->fd, ms) || ibv_get_cq_event(channel, &cq, &context))
		return false;
	ibv_ack_cq_events(cq, 1);
	return true;
}

bool async_next(struct ibv_context *ctx, struct ibv_async_event *event, int ms)
{
	if (!readable_within(ctx->async_fd, ms) || ibv_get_async_event(ctx, event))
		return false;
	ibv_ack_async_event(event);
	return true;
}

bool async_event_within(struct ibv_context *ctx, enum ibv_event_type type, void *element, int ms)
{
	int64_t end = now_ms() + ms, left;
	struct ibv_async_event event;

	while ((left = end - now_ms()) >= 0) {
		if (!async_next(ctx, &event, left))
			return false;
		/* All members of the union are pointers except the port number. */
		if (event.event_type == type && (!element || event.element.qp == element))
			return true;
	}
	return false;
}

void async_drain(struct ibv_context *ctx)
{
	struct ibv_async_event event;

	while (async_next(ctx, &event, 0))
		;
}
