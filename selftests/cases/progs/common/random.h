/* SPDX-License-Identifier: GPL-2.0 */
/* Random numbers, reproducible by seed (splitmix64). */
#ifndef RANDOM_H
#define RANDOM_H

#include <stddef.h>
#include <stdint.h>

struct rng {
	uint64_t state;
};

uint64_t rng_next(struct rng *rng);

/* Returns a number below `limit` (0 if `limit` is 0). */
uint64_t rng_below(struct rng *rng, uint64_t limit);

/*
 * Returns a length up to `max`: roughly log-uniform, often near a header, page or segment boundary.
 */
size_t rng_length(struct rng *rng, size_t max);

void rng_fill(struct rng *rng, void *to, size_t length);

#endif
