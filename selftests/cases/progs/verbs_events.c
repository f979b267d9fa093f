// SPDX-License-Identifier: GPL-2.0
/*
 * Events and their timing: completion events, flushes, SRQ and QP events, queries.
 *
 *     verbs_events ACTIVE PASSIVE
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/access.h"
#include "common/clock.h"
#include "common/completion.h"
#include "common/post.h"
#include "common/random.h"
#include "common/setup.h"
#include "common/tap.h"

static struct pair_opts plain = { .inline_data = 64, .notify = true };
static struct pair_opts with_srq = { .inline_data = 64, .notify = true, .srq = 32 };
static struct rng rng = { 99 };

static const struct regions regions = { 8192, 0, ALL, ALL };

static void receive(struct setup *s, uint64_t wr_id)
{
	struct ibv_sge sge = region_sge(&s->remote, 0, 64);

	if (s->pair.passive.srq)
		tap_check(!post_srq_recv(s->pair.passive.srq, wr_id, &sge, 1), "post a receive to the SRQ");
	else
		tap_check(!post_recv(s->pair.passive.qp, wr_id, &sge, 1), "post a receive");
}

static void send_one(struct setup *s, uint64_t wr_id, unsigned int flags)
{
	struct ibv_sge sge = region_sge(&s->local, 0, 64);

	tap_check(!post_send(s->pair.active.qp, wr_id, IBV_WR_SEND, &sge, 1, flags, 0), "post a SEND");
}

static void next_completion_event(void)
{
	struct setup s;

	setup_open(&s, &plain, &rng, &regions);
	receive(&s, 1);
	receive(&s, 2);
	tap_check(!ibv_req_notify_cq(s.pair.passive.rcq, 0), "arm");
	send_one(&s, 1, 0);
	tap_check(cq_event_within(s.pair.passive.rchannel, PATIENCE), "no event");
	cq_expect(s.pair.passive.rcq, 1, IBV_WC_SUCCESS, NULL);
	send_one(&s, 2, 0);
	cq_expect(s.pair.passive.rcq, 2, IBV_WC_SUCCESS, NULL);
	tap_check(!cq_event_within(s.pair.passive.rchannel, SILENCE), "a second event without arming");
	setup_close(&s);
	tap_point("a CQ armed for the next completion fires once");
}

static void solicited_event(void)
{
	struct setup s;

	setup_open(&s, &plain, &rng, &regions);
	receive(&s, 1);
	receive(&s, 2);
	tap_check(!ibv_req_notify_cq(s.pair.passive.rcq, 1), "arm");
	send_one(&s, 1, 0);
	cq_expect(s.pair.passive.rcq, 1, IBV_WC_SUCCESS, NULL);
	tap_check(!cq_event_within(s.pair.passive.rchannel, SILENCE), "an event without solicitation");
	send_one(&s, 2, IBV_SEND_SOLICITED);
	tap_check(cq_event_within(s.pair.passive.rchannel, PATIENCE), "no event");
	cq_expect(s.pair.passive.rcq, 2, IBV_WC_SUCCESS, NULL);
	setup_close(&s);
	tap_point("a CQ armed for solicited completions fires for SEND with SE, and for that only");
}

static void solicited_with_invalidate(void)
{
	struct setup s;
	struct ibv_sge sge;
	struct ibv_mr *mr;

	setup_open(&s, &plain, &rng, &regions);
	mr = ibv_reg_mr(s.pair.passive.pd, s.remote.bytes, 64, REVOCABLE);
	if (!mr)
		tap_bail("ibv_reg_mr");
	receive(&s, 1);
	tap_check(!ibv_req_notify_cq(s.pair.passive.rcq, 1), "arm");
	sge = region_sge(&s.local, 0, 64);
	tap_check(!post_send(s.pair.active.qp, 1, IBV_WR_SEND_WITH_INV, &sge, 1,
			     IBV_SEND_SOLICITED, mr->rkey), "post a SEND");
	tap_check(cq_event_within(s.pair.passive.rchannel, PATIENCE), "no event");
	cq_expect(s.pair.passive.rcq, 1, IBV_WC_SUCCESS, NULL);
	ibv_dereg_mr(mr);
	setup_close(&s);
	tap_point("a CQ armed for solicited completions fires for SEND with SE and Invalidate");
}

static void errors_are_solicited(void)
{
	struct ibv_sge sge;
	struct setup s;

	setup_open(&s, &plain, &rng, &regions);
	receive(&s, 1);
	tap_check(!ibv_req_notify_cq(s.pair.passive.rcq, 1), "arm");
	tap_check(qp_to_error(s.pair.passive.qp), "to ERROR");
	tap_check(cq_event_within(s.pair.passive.rchannel, PATIENCE), "no event for a flushed receive");
	cq_expect(s.pair.passive.rcq, 1, IBV_WC_WR_FLUSH_ERR, NULL);
	setup_close(&s);

	setup_open(&s, &plain, &rng, &regions);
	tap_check(!ibv_req_notify_cq(s.pair.active.scq, 1), "arm");
	sge = (struct ibv_sge){ (uintptr_t)s.local.bytes, 64, s.local.mr->lkey ^ 0x5a };
	tap_check(!post_send(s.pair.active.qp, 3, IBV_WR_SEND, &sge, 1, 0, 0), "post a SEND");
	tap_check(cq_event_within(s.pair.active.schannel, PATIENCE), "no event for a failed SEND");
	cq_expect(s.pair.active.scq, 3, IBV_WC_LOC_PROT_ERR, NULL);
	setup_close(&s);
	tap_point("a CQ armed for solicited completions fires for errors");
}

/* Arm, poll, wait, as every event-driven program does: no message may be lost in between. */
static void no_event_is_missed(void)
{
	enum { ROUNDS = 400 };
	struct setup s;
	struct ibv_wc wc;
	int i, got;

	setup_open(&s, &plain, &rng, &regions);
	for (i = 0; i < 8; i++)
		receive(&s, i);
	tap_check(!ibv_req_notify_cq(s.pair.passive.rcq, 0), "arm");
	for (i = 0; i < ROUNDS && !tap_failing(); i++) {
		send_one(&s, i, i % 8 == 7 ? IBV_SEND_SIGNALED : 0);
		if (!tap_check(cq_event_within(s.pair.passive.rchannel, PATIENCE), "round %d: no event", i))
			break;
		tap_check(!ibv_req_notify_cq(s.pair.passive.rcq, 0), "arm");
		for (got = 0; ibv_poll_cq(s.pair.passive.rcq, 1, &wc) > 0; got++)
			receive(&s, wc.wr_id);
		tap_check(got == 1, "round %d: %d completions", i, got);
		if (i % 8 == 7)
			cq_expect(s.pair.active.scq, i, IBV_WC_SUCCESS, NULL);
	}
	setup_close(&s);
	tap_point("armed, polled, waited for %d times: no message is missed", ROUNDS);
}

/* Requests posted before ERROR are flushed in order, signaled or not. */
static void flushed_before(void)
{
	enum { N = 10 };
	struct setup s;
	int i;

	setup_open(&s, &plain, &rng, &regions);
	for (i = 0; i < N; i++)
		receive(&s, i);
	tap_check(qp_to_error(s.pair.passive.qp), "to ERROR");
	for (i = 0; i < N; i++)
		cq_expect(s.pair.passive.rcq, i, IBV_WC_WR_FLUSH_ERR, NULL);
	tap_check(qp_reaches(s.pair.active.qp, IBV_QPS_ERR, PATIENCE), "the peer does not notice");
	tap_check(cq_silent(s.pair.passive.rcq, 0), "more completions than receives");
	setup_close(&s);
	tap_point("receives posted before ERROR are flushed, in order, each once");
}

static void flushed_after(bool by_peer)
{
	enum { N = 300 };	/* several times round the queues */
	struct end *end;
	struct setup s;
	struct ibv_sge sge;
	int i;

	setup_open(&s, &plain, &rng, &regions);
	end = &s.pair.passive;
	tap_check(qp_to_error(by_peer ? s.pair.active.qp : end->qp), "to ERROR");
	tap_check(qp_reaches(end->qp, IBV_QPS_ERR, PATIENCE), "the QP is not in ERROR");
	sge = region_sge(&s.remote, 0, 64);
	for (i = 0; i < N && !tap_failing(); i++) {
		tap_check(!post_recv(end->qp, i, &sge, 1), "post a receive in ERROR: %d", i);
		tap_check(!post_send(end->qp, i, IBV_WR_SEND, &sge, 1, i % 2 ? IBV_SEND_SIGNALED : 0, 0),
			  "post a SEND in ERROR: %d", i);
		cq_expect(end->scq, i, IBV_WC_WR_FLUSH_ERR, NULL);
		cq_expect(end->rcq, i, IBV_WC_WR_FLUSH_ERR, NULL);
	}
	setup_close(&s);
	tap_point("sends and receives posted after ERROR (%s) are flushed, %d times",
		  by_peer ? "the peer's" : "its own", N);
}

/* As ib_drain_qp: go to ERROR, post a marker behind the other requests, wait for the marker. */
static void drained_by_marker(void)
{
	struct setup s;
	struct ibv_sge sge;
	struct ibv_wc wc;
	int i, sends = 0, receives = 0;

	setup_open(&s, &plain, &rng, &regions);
	for (i = 0; i < 20; i++)
		receive(&s, i);
	sge = region_sge(&s.remote, 0, 4096);
	for (i = 0; i < 20; i++)
		tap_check(!post_rdma(s.pair.passive.qp, i, IBV_WR_RDMA_READ, &sge, 1, 0,
				     (uintptr_t)s.local.bytes, s.local.mr->rkey), "post READ");
	tap_check(qp_to_error(s.pair.passive.qp), "to ERROR");
	sge.length = 0;
	tap_check(!post_send(s.pair.passive.qp, 1000, IBV_WR_SEND, &sge, 1, IBV_SEND_SIGNALED, 0),
		  "post the send marker");
	sge = region_sge(&s.remote, 0, 64);
	tap_check(!post_recv(s.pair.passive.qp, 1000, &sge, 1), "post the receive marker");
	while (cq_next(s.pair.passive.scq, &wc, PATIENCE) && wc.wr_id != 1000)
		sends++;
	tap_check(wc.wr_id == 1000 && wc.status == IBV_WC_WR_FLUSH_ERR, "the send marker is not flushed");
	while (cq_next(s.pair.passive.rcq, &wc, PATIENCE) && wc.wr_id != 1000)
		receives++;
	tap_check(wc.wr_id == 1000 && wc.status == IBV_WC_WR_FLUSH_ERR, "the receive marker is not flushed");
	tap_check(receives == 20, "%d receives before the marker", receives);
	tap_check(sends <= 20, "%d sends before the marker", sends);
	tap_check(cq_silent(s.pair.passive.scq, SILENCE), "a send completion behind the marker");
	tap_check(cq_silent(s.pair.passive.rcq, 0), "a receive completion behind the marker");
	setup_close(&s);
	tap_point("markers posted after ERROR come behind everything posted before");
}

static void last_wqe(bool by_peer)
{
	struct setup s;

	setup_open(&s, &with_srq, &rng, &regions);
	receive(&s, 1);
	tap_check(qp_to_error(by_peer ? s.pair.active.qp : s.pair.passive.qp), "to ERROR");
	tap_check(async_event_within(s.pair.passive.ctx, IBV_EVENT_QP_LAST_WQE_REACHED, s.pair.passive.qp,
				     PATIENCE), "no such event");
	tap_check(cq_silent(s.pair.passive.rcq, 0), "the SRQ's receive was flushed by one of its QPs");
	setup_close(&s);
	tap_point("a QP with an SRQ raises LAST_WQE_REACHED in ERROR (%s)",
		  by_peer ? "the peer's" : "its own");
}

static void srq_limit(void)
{
	struct ibv_srq_attr attr = { .srq_limit = 4 };
	struct setup s;
	int i;

	setup_open(&s, &with_srq, &rng, &regions);
	for (i = 0; i < 8; i++)
		receive(&s, i);
	tap_check(!ibv_modify_srq(s.pair.passive.srq, &attr, IBV_SRQ_LIMIT), "modify_srq: %m");
	/* libsiw has no query_srq: the following receives show that the limit was set. */
	for (i = 0; i < 4; i++) {
		send_one(&s, i, IBV_SEND_SIGNALED);
		cq_expect(s.pair.passive.rcq, i, IBV_WC_SUCCESS, NULL);
	}
	tap_check(!async_event_within(s.pair.passive.ctx, IBV_EVENT_SRQ_LIMIT_REACHED, NULL, SILENCE),
		  "an event with 4 receives left");
	send_one(&s, 4, IBV_SEND_SIGNALED);
	cq_expect(s.pair.passive.rcq, 4, IBV_WC_SUCCESS, NULL);
	tap_check(async_event_within(s.pair.passive.ctx, IBV_EVENT_SRQ_LIMIT_REACHED, s.pair.passive.srq,
				     PATIENCE), "no event with 3 receives left");
	send_one(&s, 5, IBV_SEND_SIGNALED);
	cq_expect(s.pair.passive.rcq, 5, IBV_WC_SUCCESS, NULL);
	tap_check(!async_event_within(s.pair.passive.ctx, IBV_EVENT_SRQ_LIMIT_REACHED, NULL, SILENCE),
		  "a second event without a new limit");
	attr.srq_limit = 1;
	tap_check(!ibv_modify_srq(s.pair.passive.srq, &attr, IBV_SRQ_LIMIT), "modify_srq: %m");
	send_one(&s, 6, IBV_SEND_SIGNALED);
	send_one(&s, 7, IBV_SEND_SIGNALED);
	tap_check(async_event_within(s.pair.passive.ctx, IBV_EVENT_SRQ_LIMIT_REACHED, s.pair.passive.srq,
				     PATIENCE), "no event after a new limit");
	cq_expect(s.pair.passive.rcq, 6, IBV_WC_SUCCESS, NULL);
	cq_expect(s.pair.passive.rcq, 7, IBV_WC_SUCCESS, NULL);
	attr.srq_limit = 1000000;
	tap_check(ibv_modify_srq(s.pair.passive.srq, &attr, IBV_SRQ_LIMIT), "a limit beyond its size");
	setup_close(&s);
	tap_point("an SRQ tells once when it has fewer receives than its limit");
}

/* Several connections use one SRQ: each receive goes to one of them. */
static void srq_shared(void)
{
	enum { N = 4, EACH = 6 };
	struct ibv_qp_init_attr init;
	struct pair pair[N];
	struct region local, remote[EACH * N];
	struct pair_opts opts = with_srq;
	struct ibv_qp_attr attr;
	struct ibv_sge sge;
	struct ibv_wc wc;
	int i, j, per_qp[N] = {};

	for (i = 0; i < N; i++) {
		pair_open(&pair[i], &opts);
		opts.share = &pair[0].passive;
	}
	region_make(&local, &rng, 64, 0);
	for (i = 0; i < N; i++) {
		tap_check(!ibv_query_qp(pair[i].passive.qp, &attr, IBV_QP_CAP, &init), "query_qp");
		tap_check(init.srq == pair[i].passive.srq, "query_qp tells another SRQ");
		for (j = 0; j < EACH; j++) {
			region_make(&remote[i * EACH + j], &rng, 64, 0);
			region_register(&remote[i * EACH + j], pair[i].passive.pd, ALL);
			sge = region_sge(&remote[i * EACH + j], 0, 64);
			tap_check(!post_srq_recv(pair[i].passive.srq, i * EACH + j, &sge, 1), "post");
		}
	}
	for (i = 0; i < N; i++) {
		struct ibv_mr *mr = ibv_reg_mr(pair[i].active.pd, local.bytes, 64, ALL);

		if (!mr)
			tap_bail("ibv_reg_mr");
		for (j = 0; j < EACH; j++) {
			sge = (struct ibv_sge){ (uintptr_t)local.bytes, 64, mr->lkey };
			tap_check(!post_send(pair[i].active.qp, j, IBV_WR_SEND, &sge, 1, IBV_SEND_SIGNALED, 0), "post");
			cq_expect(pair[i].active.scq, j, IBV_WC_SUCCESS, NULL);
			if (cq_expect(pair[i].passive.rcq, i * EACH + j, IBV_WC_SUCCESS, &wc)) {
				tap_check(wc.qp_num == pair[i].passive.qp->qp_num, "completion of another QP");
				per_qp[i]++;
				memcpy(region_wanted(&remote[wc.wr_id], remote[wc.wr_id].bytes), local.bytes, 64);
			}
		}
		ibv_dereg_mr(mr);
	}
	for (i = 0; i < N * EACH; i++) {
		region_intact(&remote[i], "a receive");
		region_free(&remote[i]);
	}
	for (i = N - 1; i >= 0; i--) {
		tap_check(per_qp[i] == EACH, "QP %d has %d receives", i, per_qp[i]);
		tap_check(pair_close(&pair[i]), "everything can be destroyed");
	}
	region_free(&local);
	tap_point("receives of an SRQ are used in order, and told with their QP");
}

static void queries(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_device_attr dev;
	struct ibv_port_attr port;
	struct ibv_qp_attr attr;
	union ibv_gid gid, zero = {};
	struct setup s;

	setup_open(&s, &plain, &rng, &regions);
	tap_check(!ibv_query_device(s.pair.active.ctx, &dev), "query_device: %m");
	tap_check(dev.max_qp >= 1000 && dev.max_cq >= 1000 && dev.max_mr >= 1000 && dev.max_qp_wr >= 1024 &&
		  dev.max_sge >= 4 && dev.max_cqe >= 4096 && dev.max_srq >= 100 && dev.phys_port_cnt == 1 &&
		  dev.max_qp_rd_atom >= 16 && dev.max_mr_size >= 1ULL << 39, "device limits");
	tap_check(dev.node_guid, "no node GUID");
	tap_check(!ibv_query_port(s.pair.active.ctx, 1, &port), "query_port: %m");
	tap_check(port.state == IBV_PORT_ACTIVE, "port state %d", port.state);
	tap_check(port.max_msg_sz == UINT32_MAX, "longest message %u", port.max_msg_sz);
	tap_check(port.gid_tbl_len >= 1 && port.active_width && port.active_speed, "port attributes");
	tap_check(ibv_query_port(s.pair.active.ctx, 2, &port), "there is a port 2");
	tap_check(!ibv_query_gid(s.pair.active.ctx, 1, 0, &gid), "query_gid: %m");
	tap_check(memcmp(&gid, &zero, sizeof(gid)), "the GID is zero");
	tap_check(s.pair.active.ctx->device->transport_type == IBV_TRANSPORT_IWARP &&
		  s.pair.active.ctx->device->node_type == IBV_NODE_RNIC, "not an RNIC");
	tap_check(!ibv_query_qp(s.pair.active.qp, &attr, IBV_QP_STATE | IBV_QP_CAP, &init), "query_qp");
	tap_check(attr.qp_state == IBV_QPS_RTS && attr.cap.max_send_wr >= 64 && attr.cap.max_recv_wr >= 64 &&
		  attr.cap.max_inline_data >= 64 && attr.cap.max_send_sge >= 4, "QP attributes");
	tap_check(init.qp_type == IBV_QPT_RC && init.send_cq == s.pair.active.scq &&
		  init.recv_cq == s.pair.active.rcq, "QP init attributes");
	setup_close(&s);
	tap_point("device, port, GID and QP can be queried and make sense");
}

/* Invalid combinations are refused at creation. */
static void refused_objects(void)
{
	struct ibv_qp_init_attr good = { .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 } };
	struct ibv_qp_init_attr init;
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 16, .max_sge = 1 } };
	struct setup s;
	struct ibv_qp *qp;
	struct ibv_pd *pd;

	setup_open(&s, &plain, &rng, &regions);
	pd = s.pair.active.pd;
	good.send_cq = good.recv_cq = s.pair.active.scq;
	init = good;
	init.qp_type = IBV_QPT_UD;
	tap_check(!ibv_create_qp(pd, &init), "a UD QP");
	init = good;
	init.cap.max_send_wr = s.pair.active.attr.max_qp_wr + 1;
	tap_check(!ibv_create_qp(pd, &init), "more send WRs than the device has");
	init = good;
	init.cap.max_recv_wr = UINT32_MAX;
	tap_check(!ibv_create_qp(pd, &init), "2^32-1 receive WRs");
	init = good;
	init.cap.max_send_sge = s.pair.active.attr.max_sge + 1;
	tap_check(!ibv_create_qp(pd, &init), "more SGEs than the device has");
	init = good;
	init.cap.max_inline_data = 1 << 20;
	tap_check(!ibv_create_qp(pd, &init), "1 MiB inline");
	init = good;
	init.cap.max_recv_wr = 0;
	qp = ibv_create_qp(pd, &init);
	tap_check(qp && !ibv_destroy_qp(qp), "a QP without receives: %m");
	tap_check(!ibv_create_cq(s.pair.active.ctx, s.pair.active.attr.max_cqe + 1, NULL, NULL, 0),
		  "more CQEs than the device has");
	srq.attr.max_wr = s.pair.active.attr.max_srq_wr + 1;
	tap_check(!ibv_create_srq(pd, &srq), "more SRQ WRs than the device has");
	tap_check(ibv_dealloc_pd(pd) == EBUSY, "a PD in use can be deallocated");
	setup_close(&s);
	tap_point("objects beyond the device's limits are refused, a QP without receives is not");
}

/* Illegal state transitions. */
static void refused_transitions(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS };
	struct setup s;

	setup_open(&s, &plain, &rng, &regions);
	tap_check(qp_to_error(s.pair.active.qp), "to ERROR");
	tap_check(ibv_modify_qp(s.pair.active.qp, &attr, IBV_QP_STATE), "ERROR to RTS");
	attr.qp_state = IBV_QPS_RTR;
	tap_check(ibv_modify_qp(s.pair.active.qp, &attr, IBV_QP_STATE), "ERROR to RTR");
	tap_check(qp_state(s.pair.active.qp) == IBV_QPS_ERR, "the QP left ERROR");
	tap_check(qp_to_error(s.pair.active.qp), "ERROR to ERROR is refused");
	setup_close(&s);
	tap_point("a QP in ERROR does not come back");
}

/* With sq_sig_all every request gives a completion, and ibv_query_qp() says so. */
static void all_signaled(bool all)
{
	struct pair_opts opts = plain;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct setup s;

	opts.sig_all = all;
	setup_open(&s, &opts, &rng, &regions);
	tap_check(!ibv_query_qp(s.pair.active.qp, &attr, IBV_QP_STATE, &init), "ibv_query_qp");
	tap_check(init.sq_sig_all == all, "sq_sig_all is %d", init.sq_sig_all);
	receive(&s, 0);
	send_one(&s, 1, 0);
	cq_expect(s.pair.passive.rcq, 0, IBV_WC_SUCCESS, NULL);
	if (all)
		cq_expect(s.pair.active.scq, 1, IBV_WC_SUCCESS, NULL);
	else
		tap_check(cq_silent(s.pair.active.scq, SILENCE), "a completion");
	setup_close(&s);
	tap_point("%s", all ? "with sq_sig_all, every request gives a completion, and the QP says so"
			    : "without sq_sig_all, only signaled requests do");
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	plain.active = with_srq.active = side_parse(argv[1]);
	plain.passive = with_srq.passive = side_parse(argv[2]);
	queries();
	refused_objects();
	refused_transitions();
	next_completion_event();
	solicited_event();
	solicited_with_invalidate();
	errors_are_solicited();
	no_event_is_missed();
	flushed_before();
	flushed_after(false);
	flushed_after(true);
	drained_by_marker();
	all_signaled(false);
	all_signaled(true);
	last_wqe(false);
	last_wqe(true);
	srq_limit();
	srq_shared();
	return tap_done();
}
