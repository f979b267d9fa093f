// SPDX-License-Identifier: GPL-2.0
#include "block.h"

#include <stdio.h>
#include <string.h>

#include "random.h"

void block_make(uint64_t *block, uint64_t seed, uint64_t index, uint64_t generation)
{
	struct rng rng = { seed ^ index << 32 ^ generation };

	block[0] = index;
	block[1] = generation;
	rng_fill(&rng, block + 2, BLOCK - 2 * sizeof(*block));
}

bool block_is(const void *at, uint64_t seed, uint64_t index, uint64_t generation, char *text,
	      size_t size)
{
	uint64_t wanted[BLOCK / 8], found[BLOCK / 8];
	size_t word = 0;

	block_make(wanted, seed, index, generation);
	memcpy(found, at, BLOCK);
	if (!memcmp(found, wanted, BLOCK))
		return true;
	while (found[word] == wanted[word])
		word++;
	snprintf(text, size,
		 "wrong: block %#jx, generation %#jx, differs from byte %zu on; it begins %#jx, %#jx",
		 (uintmax_t)index, (uintmax_t)generation, 8 * word, (uintmax_t)found[0],
		 (uintmax_t)found[1]);
	return false;
}
