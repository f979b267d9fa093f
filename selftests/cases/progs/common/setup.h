/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a test on a fresh connection begins with: a pair, and a region at each end.
 */
#ifndef SETUP_H
#define SETUP_H

#include "pair.h"
#include "region.h"

struct setup {
	struct pair pair;
	struct region local, remote;	/* of the active and the passive end */
	struct ibv_pd *other_pd;	/* not a pair's; freed last, if the test makes it */
};

/* Access of a region that the test registers itself, or not at all. */
#define UNREGISTERED (-1)

struct regions {
	size_t length, offset;		/* as region_make() */
	int local, remote;		/* access, or UNREGISTERED */
};

/* Connects the pair, forgets older asynchronous events. Ends the program on failure. */
void setup_open(struct setup *s, const struct pair_opts *opts, struct rng *rng,
		const struct regions *regions);

/*
 * The active end writes, reads or adds 1 at an address of the passive end, from or to the start of `local`.
 * Returns the status of the completion.
 */
enum ibv_wc_status setup_reach(struct setup *s, enum ibv_wr_opcode opcode, uint64_t addr,
			       uint32_t length, uint32_t rkey);

/* Frees everything. The test fails if an object cannot be destroyed. */
void setup_close(struct setup *s);

#endif
