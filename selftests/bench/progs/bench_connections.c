// SPDX-License-Identifier: GPL-2.0
/*
 * bench_connections COUNT CYCLES ACTIVE PASSIVE: opens that many connections, one after
 * another, keeps all of them, closes them, so many times. Prints, as lines `NAME VALUE`,
 * connections per second and the kernel's memory per QP (in KiB, TCP's included).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "common/pair.h"
#include "common/tap.h"

/* KiB in use. */
static long memory(void)
{
	long total = 0, unused = 0, cached = 0, value;
	char line[256];
	FILE *file = fopen("/proc/sys/vm/drop_caches", "w");

	if (file) {
		fputs("3", file);
		fclose(file);
	}
	file = fopen("/proc/meminfo", "r");
	if (!file)
		tap_bail("/proc/meminfo");
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "MemTotal: %ld", &value) == 1)
			total = value;
		else if (sscanf(line, "MemFree: %ld", &value) == 1)
			unused = value;
		else if (sscanf(line, "Cached: %ld", &value) == 1)
			cached = value;
	}
	fclose(file);
	return total - unused - cached;
}

/* The same when it falls no more: what was closed is freed after a while. */
static long settled(void)
{
	const struct timespec pause = { .tv_nsec = 100 * 1000 * 1000 };
	long now = memory(), before;

	do {
		before = now;
		nanosleep(&pause, NULL);
		now = memory();
	} while (now < before);
	return now;
}

int main(int argc, char **argv)
{
	struct pair_opts opts = { .sq = 16, .rq = 16 };
	struct pair *pairs;
	int count, cycles, cycle, i;
	long grown = 0;
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
	/* The first one pays for what all share. */
	pair_open(&pairs[count], &opts);
	memset(pairs, 0, count * sizeof(*pairs));
	for (cycle = 0; cycle < cycles; cycle++) {
		grown -= settled();
		took -= now_ms();
		for (i = 0; i < count; i++)
			pair_open(&pairs[i], &opts);
		took += now_ms();
		grown += memory();
		for (i = 0; i < count; i++)
			pair_close(&pairs[i]);
	}
	printf("connections_per_second %.1f\n", 1000.0 * count * cycles / took);
	printf("kib_per_qp %.1f\n", grown / 2.0 / count / cycles);
	pair_close(&pairs[count]);
	return 0;
}
