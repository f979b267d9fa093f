// SPDX-License-Identifier: GPL-2.0
/*
 * Writes and reads a block device with several threads, past the page cache, and compares everything
 * that it reads with the last data that it wrote there.
 *
 *     block_load [-t THREADS] [-m MAX] [-a ALIGN] [-n REQUESTS] [-r SEED] DEVICE FIRST LENGTH
 *
 * Uses LENGTH bytes of the device from offset FIRST, an equal part for each thread. A request has up to
 * MAX bytes, a multiple of BLOCK; its buffer starts at a multiple of ALIGN bytes. Each thread first
 * writes its part, then makes random requests, REQUESTS of them or until SIGTERM, and then reads its
 * part. Prints the number of completed requests as it goes. The exit status is FAILED after a request
 * that failed, WRONG after a block with other contents than its last ones. Both end the program at
 * once.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/block.h"
#include "common/random.h"

/* Requests from one line of progress to the next. */
#define PROGRESS 64

enum { FAILED = 1, USAGE = 2, WRONG = 3 };

static size_t threads = 8, max = 65536, align = 512;
static long requests = -1;
static uint64_t seed = 1;
static int device;
static atomic_long completed;
static volatile sig_atomic_t stop;

struct part {
	pthread_t thread;
	struct rng rng;
	size_t first, count;		/* blocks */
	uint32_t *generation;		/* of each block: number of times that it was written */
	uint8_t *buffer;
};

/* Ends the program. Only the first caller returns from the lock. */
static void give_up(int status, const char *text)
{
	static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&once);
	printf("%s\n", text);
	exit(status);
}

static void block_check(const uint8_t *at, uint64_t index, uint64_t generation)
{
	char text[200];

	if (!block_is(at, seed, index, generation, text, sizeof(text)))
		give_up(WRONG, text);
}

/* Makes a request for `count` blocks from block `at` of the part. */
static void transfer(struct part *p, bool write, size_t at, size_t count)
{
	uint8_t *buffer = p->buffer + rng_below(&p->rng, BLOCK / align) * align;
	off_t offset = (off_t)(p->first + at) * BLOCK;
	uint64_t block[BLOCK / 8];
	char text[200];
	ssize_t done;
	long number;

	for (size_t i = 0; write && i < count; i++) {
		block_make(block, seed, p->first + at + i, ++p->generation[at + i]);
		memcpy(buffer + i * BLOCK, block, BLOCK);
	}
	done = write ? pwrite(device, buffer, count * BLOCK, offset) :
		       pread(device, buffer, count * BLOCK, offset);
	if (done != (ssize_t)(count * BLOCK)) {
		snprintf(text, sizeof(text), "failed: %s of %zu bytes at %#jx: %s",
			 write ? "write" : "read", count * BLOCK, (uintmax_t)offset,
			 done < 0 ? strerror(errno) : "incomplete");
		give_up(FAILED, text);
	}
	for (size_t i = 0; !write && i < count; i++)
		block_check(buffer + i * BLOCK, p->first + at + i, p->generation[at + i]);
	number = atomic_fetch_add(&completed, 1) + 1;
	if (number % PROGRESS == 0)
		printf("%ld requests\n", number);
}

static void whole(struct part *p, bool write)
{
	size_t step = max / BLOCK;

	for (size_t at = 0; at < p->count; at += step)
		transfer(p, write, at, p->count - at < step ? p->count - at : step);
}

static void *run(void *argument)
{
	struct part *p = argument;

	whole(p, true);
	for (long i = 0; i != requests && !stop; i++) {
		size_t count = 1 + rng_length(&p->rng, max - BLOCK) / BLOCK;
		size_t at;

		if (count > p->count)
			count = p->count;
		at = rng_below(&p->rng, p->count - count + 1);
		transfer(p, rng_below(&p->rng, 2), at, count);
	}
	whole(p, false);
	return NULL;
}

static void on_term(int signum)
{
	(void)signum;
	stop = true;
}

static void usage(void)
{
	fprintf(stderr, "usage: block_load [-t THREADS] [-m MAX] [-a ALIGN] [-n REQUESTS] [-r SEED]"
		" DEVICE FIRST LENGTH\n");
	exit(USAGE);
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_term, .sa_flags = SA_RESTART };
	size_t first, length, each;
	struct part *parts;
	int option;

	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((option = getopt(argc, argv, "t:m:a:n:r:")) != -1) {
		switch (option) {
		case 't': threads = strtoul(optarg, NULL, 0); break;
		case 'm': max = strtoul(optarg, NULL, 0); break;
		case 'a': align = strtoul(optarg, NULL, 0); break;
		case 'n': requests = strtol(optarg, NULL, 0); break;
		case 'r': seed = strtoull(optarg, NULL, 0); break;
		default: usage();
		}
	}
	if (argc - optind != 3 || !threads || max < BLOCK || max % BLOCK || !align || BLOCK % align)
		usage();
	first = strtoull(argv[optind + 1], NULL, 0);
	length = strtoull(argv[optind + 2], NULL, 0);
	each = length / BLOCK / threads;
	if (first % BLOCK || !each)
		usage();
	printf("seed %ju\n", (uintmax_t)seed);
	sigaction(SIGTERM, &action, NULL);
	device = open(argv[optind], O_RDWR | O_DIRECT);
	if (device < 0) {
		perror(argv[optind]);
		return FAILED;
	}
	parts = calloc(threads, sizeof(*parts));
	for (size_t i = 0; i < threads; i++) {
		struct part *p = &parts[i];

		p->rng.state = seed + i;
		p->first = first / BLOCK + i * each;
		p->count = each;
		p->generation = calloc(each, sizeof(*p->generation));
		p->buffer = aligned_alloc(BLOCK, max + BLOCK);
		if (!p->generation || !p->buffer ||
		    pthread_create(&p->thread, NULL, run, p)) {
			fprintf(stderr, "out of memory or threads\n");
			return FAILED;
		}
	}
	for (size_t i = 0; i < threads; i++)
		pthread_join(parts[i].thread, NULL);
	printf("verified %zu blocks, %ld requests\n", each * threads, atomic_load(&completed));
	return 0;
}
