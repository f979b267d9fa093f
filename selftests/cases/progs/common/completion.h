/* SPDX-License-Identifier: GPL-2.0 */
/* Waiting for completions and asynchronous events. */
#ifndef COMPLETION_H
#define COMPLETION_H

#include <infiniband/verbs.h>
#include <stdbool.h>

/* Takes one completion. Returns false if there is none after `ms`. */
bool cq_next(struct ibv_cq *cq, struct ibv_wc *wc, int ms);

/* Returns whether the CQ stays empty for `ms`. */
bool cq_silent(struct ibv_cq *cq, int ms);

/* Takes one completion and checks (tap_check) its work request ID and status. */
bool cq_expect(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status, struct ibv_wc *wc);

/* Waits for the event of an armed CQ and acknowledges it. Does not arm. */
bool cq_event_within(struct ibv_comp_channel *channel, int ms);

/*
 * Takes asynchronous events of the device until one of `type` arrives (for `element`, if not NULL).
 * Drops all others. Returns false if none arrives within `ms`.
 */
bool async_event_within(struct ibv_context *ctx, enum ibv_event_type type, void *element, int ms);

/* Takes the next asynchronous event. Returns false if there is none within `ms`. */
bool async_next(struct ibv_context *ctx, struct ibv_async_event *event, int ms);

/* Drops all pending events. */
void async_drain(struct ibv_context *ctx);

#endif
