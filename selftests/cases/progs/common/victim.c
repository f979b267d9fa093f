// SPDX-License-Identifier: GPL-2.0
#include "victim.h"

#include <string.h>

#include "access.h"
#include "clock.h"
#include "completion.h"
#include "post.h"
#include "tap.h"

/* PATIENCE, independent of the main thread's points. */
#define FLOW_PATIENCE 60000

void victim_open(struct victim *v, const struct pair_opts *opts, struct rng *rng)
{
	struct ring before[RINGS_MAX];
	int count = rings_find(before);

	pair_open(&v->pair, opts);
	region_make(&v->active, rng, VICTIM_BYTES, 100);
	region_make(&v->passive, rng, VICTIM_BYTES, 200);
	region_register(&v->active, v->pair.active.pd, ALL);
	region_register(&v->passive, v->pair.passive.pd, ALL);
	v->count = rings_find_new(before, count, v->rings);
}

static bool region_guarded(struct region *region)
{
	/* The bytes may have any value, but their surroundings must not change. */
	memcpy(region_wanted(region, region->bytes), region->bytes, region->length);
	return region_intact(region, "memory");
}

void victim_close(struct victim *v)
{
	tap_check(region_guarded(&v->active) & region_guarded(&v->passive), "memory was changed");
	region_free(&v->active);
	region_free(&v->passive);
	tap_check(pair_close(&v->pair), "not everything can be destroyed");
}

bool victim_exchange(struct victim *v, uint64_t wr_id)
{
	struct ibv_sge from = region_sge(&v->active, 0, VICTIM_MESSAGE),
		       to = region_sge(&v->passive, 0, VICTIM_MESSAGE);

	return tap_check(!post_recv(v->pair.passive.qp, wr_id, &to, 1) &&
			 !post_send(v->pair.active.qp, wr_id, IBV_WR_SEND, &from, 1,
				    IBV_SEND_SIGNALED, 0), "post") &&
	       cq_expect(v->pair.passive.rcq, wr_id, IBV_WC_SUCCESS, NULL) &&
	       cq_expect(v->pair.active.scq, wr_id, IBV_WC_SUCCESS, NULL);
}

static void post_something(struct end *end, struct region *own, struct region *other,
			   struct rng *rng)
{
	struct ibv_sge sge = region_sge(own, rng_below(rng, VICTIM_BYTES / 2),
					rng_below(rng, VICTIM_BYTES / 2));
	uint64_t at = (uintptr_t)other->bytes + rng_below(rng, VICTIM_BYTES / 2);

	switch (rng_below(rng, 5)) {
	case 0:
		(void)post_rdma(end->qp, 1, IBV_WR_RDMA_WRITE, &sge, 1, IBV_SEND_SIGNALED, at,
				other->mr->rkey);
		break;
	case 1:
		(void)post_rdma(end->qp, 2, IBV_WR_RDMA_READ, &sge, 1, IBV_SEND_SIGNALED, at,
				other->mr->rkey);
		break;
	case 2:
		(void)post_send(end->qp, 3, IBV_WR_SEND, &sge, 1, IBV_SEND_SIGNALED, 0);
		break;
	default:
		(void)post_recv(end->qp, 4, &sge, 1);
	}
}

void victim_post(struct victim *v, struct rng *rng)
{
	if (rng_below(rng, 2))
		post_something(&v->pair.active, &v->active, &v->passive, rng);
	else
		post_something(&v->pair.passive, &v->passive, &v->active, rng);
}

static const char *flow_step(struct flow *f)
{
	uint32_t length = 1 + rng_length(&f->rng, VICTIM_BYTES - 1);
	struct ibv_sge to = region_sge(&f->in, 0, VICTIM_BYTES), from = region_sge(&f->out, 0, length);
	struct ibv_wc wc;

	rng_fill(&f->rng, f->out.bytes, length);
	if (post_recv(f->pair.passive.qp, 1, &to, 1) ||
	    post_send(f->pair.active.qp, 2, IBV_WR_SEND, &from, 1, IBV_SEND_SIGNALED, 0))
		return "a message cannot be posted";
	if (!cq_next(f->pair.passive.rcq, &wc, FLOW_PATIENCE) || wc.status || wc.byte_len != length)
		return "a message does not arrive";
	if (memcmp(f->in.bytes, f->out.bytes, length))
		return "a message arrives changed";
	if (!cq_next(f->pair.active.scq, &wc, FLOW_PATIENCE) || wc.status)
		return "a message is not completed";
	return NULL;
}

static void *run_flow(void *argument)
{
	struct flow *f = argument;

	while (!f->stop && !f->failed) {
		f->failed = flow_step(f);
		f->messages++;
	}
	return NULL;
}

void flow_start(struct flow *f, const struct pair_opts *opts, uint64_t seed)
{
	f->rng.state = seed;
	pair_open(&f->pair, opts);
	region_make(&f->out, &f->rng, VICTIM_BYTES, 0);
	region_make(&f->in, &f->rng, VICTIM_BYTES, 0);
	region_register(&f->out, f->pair.active.pd, IBV_ACCESS_LOCAL_WRITE);
	region_register(&f->in, f->pair.passive.pd, IBV_ACCESS_LOCAL_WRITE);
	if (pthread_create(&f->thread, NULL, run_flow, f))
		tap_bail("pthread_create");
}

void flow_stop(struct flow *f)
{
	f->stop = true;
	pthread_join(f->thread, NULL);
	region_free(&f->out);
	region_free(&f->in);
	tap_check(!f->failed, "%s after %ld", f->failed, f->messages);
	tap_check(pair_close(&f->pair), "not everything can be destroyed");
	tap_note("%ld messages", f->messages);
	tap_point("all this time a connection carried its messages");
}
