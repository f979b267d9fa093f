// SPDX-License-Identifier: GPL-2.0
/*
 * Preload for perftest on User-Mode Linux: gettimeofday() from the time stamp counter.
 *
 * perftest measures the counter's rate against the time of day, and gives up if the two disagree.
 * On User-Mode Linux the time of day is a system call of the machine, and on a busy host another
 * machine may run between that call and the read of the host's counter. The counter's rate is in
 * /proc/cpuinfo, where the lab has put it.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>
#include <x86intrin.h>

static struct timeval begin;
static unsigned long long begin_count;
static double counts_per_us;

__attribute__((constructor)) static void look_at_both(void)
{
	FILE *file = fopen("/proc/cpuinfo", "r");
	char line[256];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "cpu MHz : %lf", &counts_per_us) == 1)
			break;
	if (!file || counts_per_us <= 0) {
		fputs("tsc_clock: /proc/cpuinfo has no rate\n", stderr);
		_exit(EXIT_FAILURE);
	}
	fclose(file);
	syscall(SYS_gettimeofday, &begin, NULL);
	begin_count = __rdtsc();
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
	unsigned long long us = begin.tv_usec + (__rdtsc() - begin_count) / counts_per_us;

	(void)zone;
	tv->tv_sec = begin.tv_sec + us / 1000000;
	tv->tv_usec = us % 1000000;
	return 0;
}
