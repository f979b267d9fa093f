// SPDX-License-Identifier: GPL-2.0
/*
 * Fills memory, changes random pages of it, and compares all that it finds with what it wrote. With less
 * memory than that, the pages go to the swap space and come back.
 *
 *     memory_load [-r SEED] MEGABYTES CHANGES
 *
 * Makes CHANGES changes, or goes on until SIGTERM if that is negative. Prints the number of changes as
 * it goes. The exit status is WRONG after a page with other contents than its last ones.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/block.h"
#include "common/random.h"

/* Changes from one line of progress to the next. */
#define PROGRESS 256

enum { FAILED = 1, USAGE = 2, WRONG = 3 };

static uint64_t seed = 1;
static volatile sig_atomic_t stop;

static void page_check(const uint64_t *page, uint64_t index, uint64_t generation)
{
	char text[200];

	if (block_is(page, seed, index, generation, text, sizeof(text)))
		return;
	printf("%s\n", text);
	exit(WRONG);
}

/* The kernel shall end this program, and no other, if memory does not suffice. */
static bool volunteer(void)
{
	FILE *file = fopen("/proc/self/oom_score_adj", "w");

	return file && fputs("1000", file) >= 0 && !fclose(file);
}

static void on_term(int signum)
{
	(void)signum;
	stop = true;
}

static void usage(void)
{
	fprintf(stderr, "usage: memory_load [-r SEED] MEGABYTES CHANGES\n");
	exit(USAGE);
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_term, .sa_flags = SA_RESTART };
	uint32_t *generation;
	uint64_t *memory;
	struct rng rng;
	size_t count;
	long changes;
	int option;

	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((option = getopt(argc, argv, "r:")) != -1) {
		if (option != 'r')
			usage();
		seed = strtoull(optarg, NULL, 0);
	}
	if (argc - optind != 2)
		usage();
	count = strtoull(argv[optind], NULL, 0) * (1 << 20) / BLOCK;
	changes = strtol(argv[optind + 1], NULL, 0);
	if (!count)
		usage();
	rng.state = seed;
	sigaction(SIGTERM, &action, NULL);
	memory = mmap(NULL, count * BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	generation = calloc(count, sizeof(*generation));
	if (memory == MAP_FAILED || !generation || madvise(memory, count * BLOCK, MADV_NOHUGEPAGE) ||
	    !volunteer()) {
		perror("memory_load");
		return FAILED;
	}

	for (size_t i = 0; i < count; i++)
		block_make(memory + i * (BLOCK / 8), seed, i, 0);
	printf("filled\n");
	for (long i = 0; i != changes && !stop; i++) {
		size_t at = rng_below(&rng, count);
		uint64_t *page = memory + at * (BLOCK / 8);

		page_check(page, at, generation[at]);
		block_make(page, seed, at, ++generation[at]);
		if ((i + 1) % PROGRESS == 0)
			printf("%ld changes\n", i + 1);
	}
	for (size_t i = 0; i < count; i++)
		page_check(memory + i * (BLOCK / 8), i, generation[i]);
	printf("verified %zu pages\n", count);
	return 0;
}
