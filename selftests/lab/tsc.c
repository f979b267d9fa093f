// SPDX-License-Identifier: GPL-2.0
/*
 * Prints the frequency of the host's time stamp counter in kHz. An emulated machine has the
 * same counter, and its kernel gets the frequency as a parameter: when the host is busy, the
 * kernel calibrates a wrong one, and its clock then runs many times too fast.
 */
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <x86intrin.h>

#define TRIES 1000
#define NS_PER_MS UINT64_C(1000000)

struct moment {
	uint64_t ticks;
	uint64_t ns;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 * NS_PER_MS + now.tv_nsec;
}

/* Returns a reading of both clocks: the one of TRIES readings that took the least time. */
static struct moment read_both(void)
{
	struct moment best = { 0 };
	uint64_t shortest = UINT64_MAX;

	for (int i = 0; i < TRIES; i++) {
		uint64_t before = now_ns();
		uint64_t ticks = __rdtsc();
		uint64_t took = now_ns() - before;

		if (took < shortest) {
			shortest = took;
			best = (struct moment){ ticks, before + took / 2 };
		}
	}
	return best;
}

int main(void)
{
	const struct timespec pause = { .tv_nsec = 100 * NS_PER_MS };
	struct moment begin, end;

	begin = read_both();
	nanosleep(&pause, NULL);
	end = read_both();
	printf("%.0f\n", (end.ticks - begin.ticks) * (double)NS_PER_MS / (end.ns - begin.ns));
	return 0;
}
