// SPDX-License-Identifier: GPL-2.0
/*
 * Refused requests, each on a fresh connection: checks the errors at both ends, and that no byte
 * changed that must not.
 *
 *     verbs_refusals ACTIVE PASSIVE
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/access.h"
#include "common/clock.h"
#include "common/completion.h"
#include "common/post.h"
#include "common/random.h"
#include "common/setup.h"
#include "common/tap.h"

#define LENGTH 8192U
#define OFFSET 100		/* into a page: just outside the region there is pinned memory */

enum spoil {
	FINE,
	OTHER_PD,
	KEY_BYTE,		/* the low byte of the key is another */
	KEY_INDEX,		/* the rest of the key is another */
	DEREGISTERED,
};

static struct pair_opts opts = { .inline_data = 64 };
static struct rng rng = { 42 };

/* Connects a pair, with a region at each end for the given access. */
static void set_up(struct setup *s, int local, int remote)
{
	setup_open(s, &opts, &rng, &(struct regions){ LENGTH, OFFSET, local, remote });
}

/* Registers a region of `end`, invalid in the way of the case. Returns its key. */
static uint32_t spoiled_key(struct setup *s, struct end *end, struct region *region, int access,
			    enum spoil spoil, bool remote_key)
{
	struct ibv_pd *pd = end->pd;
	uint32_t key;

	if (spoil == OTHER_PD) {
		pd = s->other_pd = ibv_alloc_pd(end->ctx);
		if (!pd)
			tap_bail("ibv_alloc_pd");
	}
	region_register(region, pd, access);
	key = remote_key ? region->mr->rkey : region->mr->lkey;
	if (spoil == KEY_BYTE)
		return key ^ 1;
	if (spoil == KEY_INDEX)
		return key ^ 0x40000000;
	if (spoil == DEREGISTERED) {
		if (ibv_dereg_mr(region->mr))
			tap_bail("ibv_dereg_mr");
		region->mr = NULL;
	}
	return key;
}

/* Checks a QP after a fatal error: in ERROR, and its connection reported as ended. */
static void check_ended(struct end *end)
{
	tap_check(qp_reaches(end->qp, IBV_QPS_ERR, PATIENCE), "%s QP is in state %d, not ERROR",
		  end->name, qp_state(end->qp));
	cm_expect(end->events, RDMA_CM_EVENT_DISCONNECTED, NULL, NULL, NULL);
}

/* Checks for one asynchronous error event that names the QP. */
static void check_qp_event(struct end *end)
{
	struct ibv_async_event event;
	int64_t until = now_ms() + PATIENCE;

	while (async_next(end->ctx, &event, until - now_ms())) {
		if (event.element.qp != end->qp)
			continue;
		if (event.event_type == IBV_EVENT_QP_ACCESS_ERR ||
		    event.event_type == IBV_EVENT_QP_REQ_ERR ||
		    event.event_type == IBV_EVENT_QP_FATAL)
			return;
	}
	tap_check(false, "%s end has no QP error event", end->name);
}

/* The remote side's refusal of a WRITE or READ. */
struct remote_case {
	const char *name;
	enum ibv_wr_opcode opcode;
	int access;
	enum spoil spoil;
	int64_t from;		/* first byte, relative to the region */
	uint32_t length;
	uint64_t addr;		/* in place of the region's address */
};

#define WRITE IBV_WR_RDMA_WRITE
#define READ IBV_WR_RDMA_READ

static const struct remote_case remote_cases[] = {
	{ "WRITE without the right (no right at all)", WRITE, 0, FINE, 0, 64, 0 },
	{ "WRITE without the right (local write)", WRITE, IBV_ACCESS_LOCAL_WRITE, FINE, 0, 64, 0 },
	{ "WRITE without the right (remote read)", WRITE,
	  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ, FINE, 0, 64, 0 },
	{ "WRITE to another PD", WRITE, ALL, OTHER_PD, 0, 64, 0 },
	{ "WRITE with a wrong key byte", WRITE, ALL, KEY_BYTE, 0, 64, 0 },
	{ "WRITE with a wrong key index", WRITE, ALL, KEY_INDEX, 0, 64, 0 },
	{ "WRITE to a deregistered region", WRITE, ALL, DEREGISTERED, 0, 64, 0 },
	{ "WRITE one byte before the region", WRITE, ALL, FINE, -1, 64, 0 },
	{ "WRITE one byte beyond the region", WRITE, ALL, FINE, LENGTH - 63, 64, 0 },
	{ "WRITE of one byte right before the region", WRITE, ALL, FINE, -1, 1, 0 },
	{ "WRITE of one byte right behind the region", WRITE, ALL, FINE, LENGTH, 1, 0 },
	{ "WRITE of the region and one byte", WRITE, ALL, FINE, 0, LENGTH + 1, 0 },
	{ "WRITE to an offset that wraps around", WRITE, ALL, FINE, 0, 64, UINT64_MAX - 31 },
	{ "READ without the right (no right at all)", READ, 0, FINE, 0, 64, 0 },
	{ "READ without the right (local write)", READ, IBV_ACCESS_LOCAL_WRITE, FINE, 0, 64, 0 },
	{ "READ without the right (remote write)", READ,
	  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, FINE, 0, 64, 0 },
	{ "READ of another PD", READ, ALL, OTHER_PD, 0, 64, 0 },
	{ "READ with a wrong key byte", READ, ALL, KEY_BYTE, 0, 64, 0 },
	{ "READ with a wrong key index", READ, ALL, KEY_INDEX, 0, 64, 0 },
	{ "READ of a deregistered region", READ, ALL, DEREGISTERED, 0, 64, 0 },
	{ "READ one byte before the region", READ, ALL, FINE, -1, 64, 0 },
	{ "READ one byte beyond the region", READ, ALL, FINE, LENGTH - 63, 64, 0 },
	{ "READ of one byte right before the region", READ, ALL, FINE, -1, 1, 0 },
	{ "READ of one byte right behind the region", READ, ALL, FINE, LENGTH, 1, 0 },
	{ "READ of the region and one byte", READ, ALL, FINE, 0, LENGTH + 1, 0 },
	{ "READ of an offset that wraps around", READ, ALL, FINE, 0, 64, UINT64_MAX - 31 },
};

/*
 * The initiator of a READ gets the error. A WRITE completes when it is sent, so it may have
 * succeeded; its connection ends nevertheless.
 */
static void check_initiator(struct setup *s, const struct remote_case *c)
{
	struct end *active = &s->pair.active;
	struct ibv_wc wc;

	if (!tap_check(cq_next(active->scq, &wc, PATIENCE), "the request does not complete"))
		return;
	if (c->opcode == READ)
		tap_check(wc.status == IBV_WC_REM_ACCESS_ERR, "status %s, wanted %s",
			  ibv_wc_status_str(wc.status), ibv_wc_status_str(IBV_WC_REM_ACCESS_ERR));
	else
		tap_check(wc.status == IBV_WC_SUCCESS || wc.status == IBV_WC_REM_ACCESS_ERR ||
			  wc.status == IBV_WC_WR_FLUSH_ERR, "status %s", ibv_wc_status_str(wc.status));
	cq_expect(active->rcq, 7, IBV_WC_WR_FLUSH_ERR, NULL);
	check_ended(active);
}

static void remote_refusal(const struct remote_case *c)
{
	uint32_t length = c->length, key;
	struct ibv_sge sge, receive;
	struct setup s;
	struct region sink;	/* large enough for every case */
	uint64_t addr;

	set_up(&s, UNREGISTERED, UNREGISTERED);
	region_make(&sink, &rng, 2 * LENGTH, OFFSET);
	region_register(&sink, s.pair.active.pd, ALL);
	key = spoiled_key(&s, &s.pair.passive, &s.remote, c->access, c->spoil, true);
	addr = c->addr ? c->addr : (uintptr_t)s.remote.bytes + c->from;

	receive = region_sge(&sink, LENGTH + 4096, 64);
	tap_check(!post_recv(s.pair.active.qp, 7, &receive, 1), "post a receive");
	sge = region_sge(&sink, 0, length);
	tap_check(!post_rdma(s.pair.active.qp, 1, c->opcode, &sge, 1, IBV_SEND_SIGNALED, addr, key),
		  "post the request");
	check_initiator(&s, c);
	check_ended(&s.pair.passive);
	check_qp_event(&s.pair.passive);
	/* Segments are checked one by one: those within the region may have been placed. */
	if (c->opcode == WRITE && length > LENGTH)
		memcpy(region_wanted(&s.remote, s.remote.bytes), s.remote.bytes, LENGTH);
	region_intact(&s.remote, "the remote region");
	region_intact(&sink, "the local region");
	region_free(&sink);
	setup_close(&s);
	tap_point("refused: %s", c->name);
}

/* The local side's refusal of a SEND, WRITE or READ whose SGE is wrong. */
struct local_case {
	const char *name;
	enum ibv_wr_opcode opcode;
	int access;
	enum spoil spoil;
	int64_t from;
	uint32_t length;
};

#define SEND IBV_WR_SEND

static const struct local_case local_cases[] = {
	{ "SEND from another PD", SEND, ALL, OTHER_PD, 0, 64 },
	{ "SEND with a wrong key byte", SEND, ALL, KEY_BYTE, 0, 64 },
	{ "SEND with a wrong key index", SEND, ALL, KEY_INDEX, 0, 64 },
	{ "SEND from a deregistered region", SEND, ALL, DEREGISTERED, 0, 64 },
	{ "SEND from one byte before the region", SEND, ALL, FINE, -1, 64 },
	{ "SEND from one byte beyond the region", SEND, ALL, FINE, LENGTH - 63, 64 },
	{ "WRITE from another PD", WRITE, ALL, OTHER_PD, 0, 64 },
	{ "WRITE from one byte beyond the region", WRITE, ALL, FINE, LENGTH - 63, 64 },
	{ "READ into a region without the right", READ, 0, FINE, 0, 64 },
	{ "READ into another PD", READ, ALL, OTHER_PD, 0, 64 },
	{ "READ into a deregistered region", READ, ALL, DEREGISTERED, 0, 64 },
	{ "READ into one byte before the region", READ, ALL, FINE, -1, 64 },
	{ "READ into one byte beyond the region", READ, ALL, FINE, LENGTH - 63, 64 },
};

static bool is_local_protection(enum ibv_wc_status status)
{
	return status == IBV_WC_LOC_PROT_ERR || status == IBV_WC_LOC_ACCESS_ERR;
}

static void local_refusal(const struct local_case *c)
{
	struct ibv_sge sge, receive;
	struct ibv_wc wc;
	struct setup s;
	uint32_t key;

	set_up(&s, UNREGISTERED, ALL);
	key = spoiled_key(&s, &s.pair.active, &s.local, c->access, c->spoil, false);
	receive = region_sge(&s.remote, 0, 256);
	tap_check(!post_recv(s.pair.passive.qp, 7, &receive, 1), "post a receive");
	sge = (struct ibv_sge){ (uintptr_t)s.local.bytes + c->from, c->length, key };
	tap_check(!post_rdma(s.pair.active.qp, 1, c->opcode, &sge, 1, IBV_SEND_SIGNALED,
			     (uintptr_t)s.remote.bytes + 1000, s.remote.mr->rkey), "post the request");
	if (tap_check(cq_next(s.pair.active.scq, &wc, PATIENCE), "the request does not complete"))
		tap_check(is_local_protection(wc.status), "status %s", ibv_wc_status_str(wc.status));
	check_ended(&s.pair.active);
	cq_expect(s.pair.passive.rcq, 7, IBV_WC_WR_FLUSH_ERR, NULL);
	check_ended(&s.pair.passive);
	region_intact(&s.local, "the local region");
	region_intact(&s.remote, "the remote region");
	setup_close(&s);
	tap_point("refused: %s", c->name);
}

/* A receive with an invalid SGE: detected when a SEND arrives for it. */
static const struct local_case receive_cases[] = {
	{ "receive into a region without the right", SEND, 0, FINE, 0, 64 },
	{ "receive into another PD", SEND, ALL, OTHER_PD, 0, 64 },
	{ "receive with a wrong key byte", SEND, ALL, KEY_BYTE, 0, 64 },
	{ "receive with a wrong key index", SEND, ALL, KEY_INDEX, 0, 64 },
	{ "receive into a deregistered region", SEND, ALL, DEREGISTERED, 0, 64 },
	{ "receive into one byte before the region", SEND, ALL, FINE, -1, 64 },
	{ "receive into one byte beyond the region", SEND, ALL, FINE, LENGTH - 63, 64 },
};

static void receive_refusal(const struct local_case *c)
{
	struct ibv_sge sge, receive;
	struct ibv_wc wc;
	struct setup s;
	uint32_t key;

	set_up(&s, ALL, UNREGISTERED);
	key = spoiled_key(&s, &s.pair.passive, &s.remote, c->access, c->spoil, false);
	receive = (struct ibv_sge){ (uintptr_t)s.remote.bytes + c->from, c->length, key };
	tap_check(!post_recv(s.pair.passive.qp, 7, &receive, 1), "post a receive");
	sge = region_sge(&s.local, 0, 64);
	tap_check(!post_send(s.pair.active.qp, 1, SEND, &sge, 1, IBV_SEND_SIGNALED, 0), "post a SEND");
	if (tap_check(cq_next(s.pair.passive.rcq, &wc, PATIENCE), "the receive does not complete"))
		tap_check(wc.wr_id == 7 && is_local_protection(wc.status), "status %s",
			  ibv_wc_status_str(wc.status));
	check_ended(&s.pair.passive);
	check_ended(&s.pair.active);
	region_intact(&s.local, "the local region");
	region_intact(&s.remote, "the remote region");
	setup_close(&s);
	tap_point("refused: %s", c->name);
}

static void receive_too_small(uint32_t room, uint32_t length)
{
	struct ibv_sge sge, receive;
	struct ibv_wc wc;
	struct setup s;

	set_up(&s, ALL, ALL);
	receive = region_sge(&s.remote, 0, room);
	tap_check(!post_recv(s.pair.passive.qp, 7, &receive, 1), "post a receive");
	sge = region_sge(&s.local, 0, length);
	tap_check(!post_send(s.pair.active.qp, 1, SEND, &sge, 1, IBV_SEND_SIGNALED, 0), "post a SEND");
	if (tap_check(cq_next(s.pair.passive.rcq, &wc, PATIENCE), "the receive does not complete"))
		tap_check(wc.wr_id == 7 && wc.status == IBV_WC_LOC_LEN_ERR, "status %s",
			  ibv_wc_status_str(wc.status));
	check_ended(&s.pair.passive);
	check_ended(&s.pair.active);
	/* The part that fits may have been placed, but nothing behind it. */
	memcpy(region_wanted(&s.remote, s.remote.bytes), s.remote.bytes, room);
	region_intact(&s.remote, "the remote region, behind the receive");
	setup_close(&s);
	tap_point("refused: SEND of %u bytes for a receive of %u", length, room);
}

static void no_receive(void)
{
	struct ibv_sge sge;
	struct setup s;

	set_up(&s, ALL, ALL);
	sge = region_sge(&s.local, 0, 64);
	tap_check(!post_send(s.pair.active.qp, 1, SEND, &sge, 1, IBV_SEND_SIGNALED, 0), "post a SEND");
	check_ended(&s.pair.passive);
	check_qp_event(&s.pair.passive);
	check_ended(&s.pair.active);
	tap_check(cq_silent(s.pair.passive.rcq, 0), "a completion without a receive");
	region_intact(&s.remote, "the remote region");
	setup_close(&s);
	tap_point("refused: SEND for which no receive is posted");
}

/* Exchanges one message over a connected pair. */
static bool exchange(struct pair *pair, struct region *from, struct region *to)
{
	struct ibv_sge sge = region_sge(from, 0, 16), receive = region_sge(to, 0, 16);

	return !post_recv(pair->passive.qp, 1, &receive, 1) &&
	       !post_send(pair->active.qp, 2, SEND, &sge, 1, IBV_SEND_SIGNALED, 0) &&
	       cq_expect(pair->active.scq, 2, IBV_WC_SUCCESS, NULL) &&
	       cq_expect(pair->passive.rcq, 1, IBV_WC_SUCCESS, NULL);
}

/*
 * More completions than the CQ holds: the CQ reports an error, and its QP ends. A QP of the same
 * device with another CQ continues and gets no event.
 */
static void cq_overrun(void)
{
	struct ibv_async_event event;
	struct setup other;
	struct ibv_sge sge, receive;
	struct pair_opts small = opts;
	struct pair pair;
	struct region local, remote;
	int i, n;

	set_up(&other, ALL, ALL);
	small.cqe = 4;
	small.rq = 64;
	pair_open(&pair, &small);
	async_drain(pair.passive.ctx);
	region_make(&local, &rng, 64, 0);
	region_make(&remote, &rng, 64, 0);
	region_register(&local, pair.active.pd, ALL);
	region_register(&remote, pair.passive.pd, ALL);
	sge = region_sge(&local, 0, 16);
	receive = region_sge(&remote, 0, 16);
	n = pair.passive.rcq->cqe + 2;
	if (n > 60)
		tap_bail("a CQ of 4 entries has %d", pair.passive.rcq->cqe);
	for (i = 0; i < n; i++)
		tap_check(!post_recv(pair.passive.qp, i, &receive, 1), "post a receive");
	for (i = 0; i < n; i++)
		tap_check(!post_send(pair.active.qp, i, SEND, &sge, 1, 0, 0), "post a SEND");
	tap_check(async_event_within(pair.passive.ctx, IBV_EVENT_CQ_ERR, pair.passive.rcq, PATIENCE),
		  "no CQ error event");
	tap_point("a CQ that overflows raises an asynchronous error event");

	check_ended(&pair.passive);
	check_ended(&pair.active);
	tap_check(exchange(&other.pair, &other.local, &other.remote), "the other pair is silent");
	while (async_next(pair.passive.ctx, &event, 0))
		tap_check(event.element.qp != other.pair.passive.qp &&
			  event.element.cq != other.pair.passive.rcq, "an event for the other QP");
	tap_check(qp_state(other.pair.passive.qp) == IBV_QPS_RTS, "the other QP is in state %d",
		  qp_state(other.pair.passive.qp));
	region_free(&local);
	region_free(&remote);
	tap_check(pair_close(&pair), "everything can be destroyed");
	setup_close(&other);
	tap_point("then the QPs that use it end, and no others");
}

/* Zero-length operations that look invalid but are not. */
static void zero_length(void)
{
	struct ibv_sge sge = {}, receive;
	struct ibv_wc wc;
	struct setup s;
	struct ibv_qp *qp;

	set_up(&s, ALL, 0);
	qp = s.pair.active.qp;
	receive = region_sge(&s.remote, 0, 64);
	receive.length = 0;
	tap_check(!post_recv(s.pair.passive.qp, 7, &receive, 1), "post a receive");
	tap_check(!post_rdma(qp, 1, WRITE, NULL, 0, IBV_SEND_SIGNALED, 0, 0x12345678), "post WRITE");
	cq_expect(s.pair.active.scq, 1, IBV_WC_SUCCESS, NULL);
	tap_check(!post_rdma(qp, 2, WRITE, &sge, 1, IBV_SEND_SIGNALED, 0, 0x12345678), "post WRITE");
	cq_expect(s.pair.active.scq, 2, IBV_WC_SUCCESS, NULL);
	sge = region_sge(&s.local, 0, 0);
	tap_check(!post_rdma(qp, 3, READ, &sge, 1, IBV_SEND_SIGNALED, 0, 0x12345678), "post READ");
	cq_expect(s.pair.active.scq, 3, IBV_WC_SUCCESS, NULL);
	tap_check(!post_send(qp, 4, SEND, NULL, 0, IBV_SEND_SIGNALED, 0), "post SEND");
	cq_expect(s.pair.active.scq, 4, IBV_WC_SUCCESS, NULL);
	if (cq_expect(s.pair.passive.rcq, 7, IBV_WC_SUCCESS, &wc))
		tap_check(wc.byte_len == 0, "%u bytes received", wc.byte_len);
	tap_check(qp_state(qp) == IBV_QPS_RTS, "the QP left RTS");
	tap_check(qp_state(s.pair.passive.qp) == IBV_QPS_RTS, "the passive QP left RTS");
	region_intact(&s.local, "the local region");
	region_intact(&s.remote, "the remote region");
	setup_close(&s);
	tap_point("allowed: WRITE, READ and SEND of no bytes, whatever the key");
}

/* The whole region, to its last byte, in both directions. */
static void up_to_the_edge(void)
{
	struct ibv_sge sge;
	struct setup s;

	set_up(&s, ALL, ALL);
	sge = region_sge(&s.local, 0, LENGTH);
	tap_check(!post_rdma(s.pair.active.qp, 1, WRITE, &sge, 1, IBV_SEND_SIGNALED,
			     (uintptr_t)s.remote.bytes, s.remote.mr->rkey), "post WRITE");
	cq_expect(s.pair.active.scq, 1, IBV_WC_SUCCESS, NULL);
	sge = region_sge(&s.local, LENGTH - 1, 1);
	tap_check(!post_rdma(s.pair.active.qp, 2, READ, &sge, 1, IBV_SEND_SIGNALED,
			     (uintptr_t)s.remote.bytes, s.remote.mr->rkey), "post READ");
	cq_expect(s.pair.active.scq, 2, IBV_WC_SUCCESS, NULL);
	memcpy(region_wanted(&s.remote, s.remote.bytes), region_wanted(&s.local, s.local.bytes), LENGTH);
	*region_wanted(&s.local, s.local.bytes + LENGTH - 1) = *region_wanted(&s.remote, s.remote.bytes);
	region_intact(&s.remote, "the remote region");
	region_intact(&s.local, "the local region");
	setup_close(&s);
	tap_point("allowed: WRITE and READ up to the first and last byte");
}

/* A key that SEND with Invalidate has invalidated grants no access. */
static void invalidated(enum ibv_wr_opcode opcode)
{
	struct pair_opts sharing = opts;
	struct ibv_sge sge, receive;
	struct setup s, other;
	struct ibv_wc wc;
	struct ibv_mr *mr;

	set_up(&s, ALL, ALL);
	/* A second connection to the same domain. */
	sharing.share = &s.pair.passive;
	setup_open(&other, &sharing, &rng, &(struct regions){ LENGTH, OFFSET, ALL, UNREGISTERED });
	mr = ibv_reg_mr(s.pair.passive.pd, s.remote.bytes, 1000, REVOCABLE);
	if (!mr)
		tap_bail("ibv_reg_mr");
	receive = region_sge(&s.remote, 4000, 64);
	tap_check(!post_recv(s.pair.passive.qp, 7, &receive, 1), "post a receive");
	sge = region_sge(&s.local, 0, 64);
	tap_check(!post_send(s.pair.active.qp, 1, IBV_WR_SEND_WITH_INV, &sge, 1, IBV_SEND_SIGNALED,
			     mr->rkey), "post SEND with Invalidate");
	cq_expect(s.pair.active.scq, 1, IBV_WC_SUCCESS, NULL);
	cq_expect(s.pair.passive.rcq, 7, IBV_WC_SUCCESS, NULL);
	memcpy(region_wanted(&s.remote, s.remote.bytes + 4000),
	       region_wanted(&s.local, s.local.bytes), 64);
	/* At once: nothing orders it behind the message. */
	sge = region_sge(&other.local, 0, 64);
	tap_check(!post_rdma(other.pair.active.qp, 2, opcode, &sge, 1, IBV_SEND_SIGNALED,
			     (uintptr_t)s.remote.bytes, mr->rkey), "post the request");
	tap_check(cq_next(other.pair.active.scq, &wc, PATIENCE), "the request does not complete");
	check_ended(&other.pair.active);
	check_ended(&other.pair.passive);
	region_intact(&other.local, "the local region");
	region_intact(&s.remote, "the remote region");
	tap_check(!ibv_dereg_mr(mr), "the region can be deregistered");
	setup_close(&other);
	setup_close(&s);
	tap_point("refused: %s with a key that has been invalidated", opcode == READ ? "READ" : "WRITE");
}

/* A region that was not invalidated grants access. `pd` is its protection domain. */
static void check_valid(struct setup *s, struct ibv_pd *pd)
{
	struct end owner = s->pair.passive;
	struct pair_opts sharing = opts;
	struct setup other;

	owner.pd = pd;
	sharing.share = &owner;
	setup_open(&other, &sharing, &rng, &(struct regions){ LENGTH, OFFSET, ALL, UNREGISTERED });
	tap_check(setup_reach(&other, READ, (uintptr_t)s->remote.bytes, 64, s->remote.mr->rkey) ==
		  IBV_WC_SUCCESS, "the region is not valid any more");
	setup_close(&other);
}

/* A peer can only invalidate what it is allowed to. */
static void invalidate_refused(const char *name, int access, enum spoil spoil)
{
	struct ibv_sge sge, receive;
	struct setup s;
	struct ibv_mr *mr;
	uint32_t key;

	set_up(&s, ALL, UNREGISTERED);
	key = spoiled_key(&s, &s.pair.passive, &s.remote, access, spoil, true);
	mr = ibv_reg_mr(s.pair.passive.pd, s.remote.bytes, LENGTH, ALL);
	if (!mr)
		tap_bail("ibv_reg_mr");
	receive = (struct ibv_sge){ (uintptr_t)s.remote.bytes, 64, mr->lkey };
	tap_check(!post_recv(s.pair.passive.qp, 7, &receive, 1), "post a receive");
	sge = region_sge(&s.local, 0, 64);
	tap_check(!post_send(s.pair.active.qp, 1, IBV_WR_SEND_WITH_INV, &sge, 1, IBV_SEND_SIGNALED,
			     key), "post SEND with Invalidate");
	check_ended(&s.pair.passive);
	check_ended(&s.pair.active);
	check_valid(&s, spoil == OTHER_PD ? s.other_pd : s.pair.passive.pd);
	tap_check(!ibv_dereg_mr(mr), "the region can be deregistered");
	setup_close(&s);
	tap_point("refused: Invalidate of %s", name);
}

/* Posting in a state that does not allow sending. */
static void wrong_state(void)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_sge sge;
	struct ibv_qp *qp;
	struct setup s;

	set_up(&s, ALL, ALL);
	init.send_cq = s.pair.active.scq;
	init.recv_cq = s.pair.active.rcq;
	init.cap.max_send_wr = init.cap.max_recv_wr = 4;
	init.cap.max_send_sge = init.cap.max_recv_sge = 1;
	sge = region_sge(&s.local, 0, 64);

	qp = ibv_create_qp(s.pair.active.pd, &init);
	if (!qp)
		tap_bail("ibv_create_qp");
	tap_check(post_send(qp, 1, SEND, &sge, 1, IBV_SEND_SIGNALED, 0), "a QP in RESET takes a SEND");
	tap_check(cq_silent(s.pair.active.scq, SILENCE), "a completion in RESET");
	tap_check(!ibv_destroy_qp(qp), "the QP can be destroyed");
	tap_point("refused: SEND on a QP in RESET");

	qp = ibv_create_qp(s.pair.active.pd, &init);
	if (!qp)
		tap_bail("ibv_create_qp");
	tap_check(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX |
				 IBV_QP_ACCESS_FLAGS), "RESET to INIT: %m");
	tap_check(post_send(qp, 1, SEND, &sge, 1, IBV_SEND_SIGNALED, 0), "a QP in INIT takes a SEND");
	tap_check(cq_silent(s.pair.active.scq, SILENCE), "a completion in INIT");
	attr.qp_state = IBV_QPS_RTS;
	tap_check(ibv_modify_qp(qp, &attr, IBV_QP_STATE), "INIT to RTS without a connection");
	tap_check(!ibv_destroy_qp(qp), "the QP can be destroyed");
	tap_point("refused: SEND on a QP in INIT, and RTS without a connection");

	qp = ibv_create_qp(s.pair.active.pd, &init);
	if (!qp)
		tap_bail("ibv_create_qp");
	attr.qp_state = IBV_QPS_ERR;
	tap_check(!ibv_modify_qp(qp, &attr, IBV_QP_STATE), "to ERROR: %m");
	tap_check(!post_send(qp, 5, SEND, &sge, 1, IBV_SEND_SIGNALED, 0), "post a SEND in ERROR");
	cq_expect(s.pair.active.scq, 5, IBV_WC_WR_FLUSH_ERR, NULL);
	tap_point("flushed: SEND on a QP in ERROR that was never connected");

	attr.qp_state = IBV_QPS_RESET;
	tap_check(!ibv_modify_qp(qp, &attr, IBV_QP_STATE), "ERROR to RESET: %m");
	tap_check(qp_state(qp) == IBV_QPS_INIT, "state %d", qp_state(qp));
	tap_check(!ibv_destroy_qp(qp), "the QP can be destroyed");
	region_intact(&s.remote, "the remote region");
	setup_close(&s);
	tap_point("a QP that was reset is in INIT");
}

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* Attributes of other transports: an error, not ignored, without side effects. */
static const struct {
	const char *name;
	int bit;
} foreign_attributes[] = {
	{ "the current state", IBV_QP_CUR_STATE },
	{ "an event when drained", IBV_QP_EN_SQD_ASYNC_NOTIFY },
	{ "a Q_Key", IBV_QP_QKEY },
	{ "a path MTU", IBV_QP_PATH_MTU },
	{ "a time-out", IBV_QP_TIMEOUT },
	{ "a retry count", IBV_QP_RETRY_CNT },
	{ "an RNR retry count", IBV_QP_RNR_RETRY },
	{ "a first PSN to receive", IBV_QP_RQ_PSN },
	{ "ORD", IBV_QP_MAX_QP_RD_ATOMIC },
	{ "IRD", IBV_QP_MAX_DEST_RD_ATOMIC },
	{ "an RNR timer", IBV_QP_MIN_RNR_TIMER },
	{ "a first PSN to send", IBV_QP_SQ_PSN },
	{ "a migration state", IBV_QP_PATH_MIG_STATE },
	{ "capacities", IBV_QP_CAP },
	{ "the peer's QP number", IBV_QP_DEST_QPN },
};

static void wrong_attributes(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR, .port_num = 1 };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC };
	struct setup s;
	struct ibv_qp *qp;
	size_t i;
	int ret;

	set_up(&s, ALL, ALL);
	init.send_cq = s.pair.active.scq;
	init.recv_cq = s.pair.active.rcq;
	init.cap.max_send_wr = init.cap.max_recv_wr = 4;
	qp = ibv_create_qp(s.pair.active.pd, &init);
	if (!qp)
		tap_bail("ibv_create_qp");
	for (i = 0; i < COUNT(foreign_attributes); i++) {
		ret = ibv_modify_qp(qp, &attr, IBV_QP_STATE | foreign_attributes[i].bit);
		tap_check(ret == EOPNOTSUPP, "%s: %s", foreign_attributes[i].name, strerror(ret));
	}
	attr.pkey_index = 1;
	ret = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX);
	tap_check(ret == EINVAL, "a second P_Key: %s", strerror(ret));
	tap_check(qp_state(qp) != IBV_QPS_ERR, "the state has changed nevertheless");
	tap_check(!ibv_destroy_qp(qp), "the QP can be destroyed");
	setup_close(&s);
	tap_point("refused: attributes that an iWARP QP has not");
}

/*
 * The memory does not exist: a region of any other length cannot be pinned. Nothing is pinned of one that is
 * too long, whose list of pages would be larger than the kernel allocates without a warning.
 */
static void region_too_long(void)
{
	void *start = (void *)(uintptr_t)sysconf(_SC_PAGESIZE);
	struct ibv_device_attr dev;
	struct ibv_mr *mr;
	struct setup s;

	set_up(&s, ALL, ALL);
	if (ibv_query_device(s.pair.active.ctx, &dev))
		tap_bail("ibv_query_device");
	mr = ibv_reg_mr(s.pair.active.pd, start, dev.max_mr_size, IBV_ACCESS_LOCAL_WRITE);
	tap_check(!mr && errno == EFAULT, "%llu bytes: %m", (unsigned long long)dev.max_mr_size);
	mr = ibv_reg_mr(s.pair.active.pd, start, dev.max_mr_size + 1, IBV_ACCESS_LOCAL_WRITE);
	tap_check(!mr && errno == ENOMEM, "one byte more: %m");
	setup_close(&s);
	tap_point("refused: a region longer than max_mr_size, before its memory is pinned");
}

int main(int argc, char **argv)
{
	size_t i;

	if (argc != 3)
		return 2;
	opts.active = side_parse(argv[1]);
	opts.passive = side_parse(argv[2]);

	up_to_the_edge();
	zero_length();
	region_too_long();
	for (i = 0; i < COUNT(remote_cases); i++)
		remote_refusal(&remote_cases[i]);
	for (i = 0; i < COUNT(local_cases); i++)
		local_refusal(&local_cases[i]);
	for (i = 0; i < COUNT(receive_cases); i++)
		receive_refusal(&receive_cases[i]);
	receive_too_small(63, 64);
	receive_too_small(0, 1);
	receive_too_small(4000, 8000);
	no_receive();
	invalidated(WRITE);
	invalidated(READ);
	invalidate_refused("a region of another PD", REVOCABLE, OTHER_PD);
	invalidate_refused("a key that is not there", REVOCABLE, KEY_INDEX);
	invalidate_refused("a region that was not registered for that", ALL, FINE);
	wrong_state();
	wrong_attributes();
	cq_overrun();
	return tap_done();
}
