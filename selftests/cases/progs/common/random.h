/* SPDX-License-Identifier: GPL-2.0 */
/* Random numbers that a seed repeats (splitmix64). */
#ifndef RANDOM_H
#define RANDOM_H

#include <stddef.h>
#include <stdint.h>

struct rng {
	uint64_t state;
};

uint64_t rng_next(struct rng *rng);

/* A number below `limit` (0 if that is 0). */
uint64_t rng_below(struct rng *rng, uint64_t limit);

/* A length up to `max`, each power of two as likely as the next, often at the edge of a page or segment. */
size_t rng_length(struct rng *rng, size_t max);

void rng_fill(struct rng *rng, void *to, size_t length);

#endif
