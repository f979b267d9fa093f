// SPDX-License-Identifier: GPL-2.0
#include "random.h"

#include <string.h>

uint64_t rng_next(struct rng *rng)
{
	uint64_t z = rng->state += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

uint64_t rng_below(struct rng *rng, uint64_t limit)
{
	return limit ? rng_next(rng) % limit : 0;
}

size_t rng_length(struct rng *rng, size_t max)
{
	static const size_t edges[] = { 0, 1, 3, 4, 31, 32, 33, 80, 1428, 1448, 4096, 8192, 65536 };
	size_t length;
	int bits = 0;

	if (rng_below(rng, 4) == 0) {
		length = edges[rng_below(rng, sizeof(edges) / sizeof(*edges))];
		length += rng_below(rng, 3);
		return length > max ? max : length;
	}
	while (max >> bits)
		bits++;
	length = rng_next(rng) & ((1ULL << rng_below(rng, bits + 1)) - 1);
	return length > max ? max : length;
}

void rng_fill(struct rng *rng, void *to, size_t length)
{
	uint8_t *p = to;

	for (; length >= 8; length -= 8, p += 8) {
		uint64_t value = rng_next(rng);

		memcpy(p, &value, 8);
	}
	while (length--)
		*p++ = rng_next(rng);
}
