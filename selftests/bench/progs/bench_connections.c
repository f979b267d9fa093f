// SPDX-License-Identifier: GPL-2.0
/*
 * bench_connections COUNT CYCLES ACTIVE PASSIVE: opens COUNT connections one after another, then
 * closes all of them; repeats that CYCLES times. Prints connections opened per second, without the
 * time to close.
 */
#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/pair.h"

int main(int argc, char **argv)
{
	struct pair_opts opts = { .sq = 16, .rq = 16 };
	struct pair *pairs;
	int count, cycles, cycle, i;
	int64_t took = 0;

	if (argc != 5)
		return 2;
	count = atoi(argv[1]);
	cycles = atoi(argv[2]);
	if (count < 1 || cycles < 1)
		return 2;
	opts.active = side_parse(argv[3]);
	opts.passive = side_parse(argv[4]);
	pairs = calloc(count + 1, sizeof(*pairs));
	if (!pairs)
		return 1;
	/* Open one connection first: it allocates the objects that all connections share. */
	pair_open(&pairs[count], &opts);
	for (cycle = 0; cycle < cycles; cycle++) {
		took -= now_ms();
		for (i = 0; i < count; i++)
			pair_open(&pairs[i], &opts);
		took += now_ms();
		for (i = 0; i < count; i++)
			pair_close(&pairs[i]);
	}
	pair_close(&pairs[count]);
	printf("%.1f\n", 1000.0 * count * cycles / took);
	return 0;
}
