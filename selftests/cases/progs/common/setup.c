// SPDX-License-Identifier: GPL-2.0
#include "setup.h"

#include "clock.h"
#include "completion.h"
#include "tap.h"

void setup_open(struct setup *s, const struct pair_opts *opts, struct rng *rng,
		const struct regions *regions)
{
	s->other_pd = NULL;
	pair_open(&s->pair, opts);
	async_drain(s->pair.active.ctx);
	async_drain(s->pair.passive.ctx);
	region_make(&s->local, rng, regions->length, regions->offset);
	region_make(&s->remote, rng, regions->length, regions->offset);
	if (regions->local != UNREGISTERED)
		region_register(&s->local, s->pair.active.pd, regions->local);
	if (regions->remote != UNREGISTERED)
		region_register(&s->remote, s->pair.passive.pd, regions->remote);
}

void setup_close(struct setup *s)
{
	region_free(&s->local);
	region_free(&s->remote);
	if (s->other_pd)
		tap_check(!ibv_dealloc_pd(s->other_pd), "the other PD can be deallocated");
	tap_check(pair_close(&s->pair), "everything can be destroyed");
}

enum ibv_wc_status setup_reach(struct setup *s, enum ibv_wr_opcode opcode, uint64_t addr,
			       uint32_t length, uint32_t rkey)
{
	struct ibv_sge sge = region_sge(&s->local, 0, length);
	struct ibv_send_wr *bad, wr = {
		.wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_wc wc = {};

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = addr;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = addr;
		wr.wr.rdma.rkey = rkey;
	}
	if (!tap_check(!ibv_post_send(s->pair.active.qp, &wr, &bad), "ibv_post_send") ||
	    !tap_check(cq_next(s->pair.active.scq, &wc, PATIENCE), "no completion"))
		return IBV_WC_GENERAL_ERR;
	return wc.status;
}
