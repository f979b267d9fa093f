// SPDX-License-Identifier: GPL-2.0
#include "setup.h"

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
