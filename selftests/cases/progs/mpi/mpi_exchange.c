// SPDX-License-Identifier: GPL-2.0
/*
 * Exchanges data between all processes of an MPI job, and checks each element.
 *
 *     mpi_exchange FILE
 *
 * Writes TAP, and into FILE the bytes of data that the processes have exchanged: what a network that
 * connects them has to have carried at least.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/random.h"
#include "common/tap.h"

#define MESSAGES 12		/* between two processes, in flight at a time */
#define LONGEST 60000		/* elements of a random message, at most */

static int rank, size;
static uint32_t round_number;
static uint64_t exchanged;	/* bytes that this process has received from others */

/* The first wrong element that a process has found in this round. */
static struct fault {
	int64_t wrong;		/* number of wrong elements */
	int64_t index;
	int32_t peer;
	uint32_t found, wanted;
} fault;

/* Returns a number that depends on the round, both processes and the message between them. */
static uint32_t key(int from, int to, int message)
{
	struct rng rng = { ((uint64_t)round_number << 32) + (from << 20) + (to << 8) + message };

	return rng_next(&rng);
}

static uint32_t element(uint32_t key, size_t index)
{
	return key ^ (uint32_t)(index * 0x9e3779b1);
}

static void fill(uint32_t *to, size_t count, uint32_t key)
{
	size_t i;

	for (i = 0; i < count; i++)
		to[i] = element(key, i);
}

static void check_element(uint32_t found, uint32_t wanted, int peer, size_t index)
{
	if (found != wanted && !fault.wrong++) {
		fault.index = index;
		fault.peer = peer;
		fault.found = found;
		fault.wanted = wanted;
	}
}

static void check(const uint32_t *from, size_t count, uint32_t key, int peer)
{
	size_t i;

	for (i = 0; i < count; i++)
		check_element(from[i], element(key, i), peer, i);
}

/* Counts elements that have been received from another process. */
static void count_exchanged(int peer, size_t count)
{
	if (peer != rank)
		exchanged += count * sizeof(uint32_t);
}

/* Writes the point of this round, with the faults of all processes. */
static void conclude(const char *name)
{
	struct fault *all = calloc(size, sizeof(*all));
	bool right = true;
	int i;

	MPI_Gather(&fault, sizeof(fault), MPI_BYTE, all, sizeof(fault), MPI_BYTE, 0, MPI_COMM_WORLD);
	for (i = 0; rank == 0 && i < size; i++) {
		if (!all[i].wrong)
			continue;
		right = false;
		tap_note("rank %d: %ld elements are wrong; the first: %ld, for rank %d: %08x, not %08x", i,
			 (long)all[i].wrong, (long)all[i].index, all[i].peer, all[i].found, all[i].wanted);
	}
	if (rank == 0)
		tap_ok(right, "%s", name);
	free(all);
	memset(&fault, 0, sizeof(fault));
	round_number++;
}

static uint32_t *elements(size_t count)
{
	uint32_t *memory = calloc(count ? count : 1, sizeof(*memory));

	if (!memory) {
		fprintf(stderr, "rank %d: no memory\n", rank);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	return memory;
}

/* Each process sends `count` elements to each, itself included. */
static void all_to_all(size_t count, int rounds)
{
	uint32_t *out = elements(count * size), *in = elements(count * size);
	char name[80];
	int i;

	for (; rounds; rounds--, round_number++) {
		for (i = 0; i < size; i++)
			fill(out + i * count, count, key(rank, i, 0));
		memset(in, 0, count * size * sizeof(*in));
		MPI_Alltoall(out, count, MPI_UINT32_T, in, count, MPI_UINT32_T, MPI_COMM_WORLD);
		for (i = 0; i < size; i++) {
			check(in + i * count, count, key(i, rank, 0), i);
			count_exchanged(i, count);
		}
	}
	free(out);
	free(in);
	snprintf(name, sizeof(name), "all to all, %zu bytes for each", count * sizeof(uint32_t));
	conclude(name);
}

/* The length of a message, which both of its processes know. */
static int random_length(int from, int to, int message)
{
	struct rng rng = { key(from, to, message) };

	return rng_length(&rng, LONGEST);
}

static void all_to_all_random(void)
{
	int *counts[2], *starts[2], direction, i;
	uint32_t *data[2];

	for (direction = 0; direction < 2; direction++) {
		int total = 0;

		counts[direction] = calloc(size, sizeof(int));
		starts[direction] = calloc(size, sizeof(int));
		for (i = 0; i < size; i++) {
			int length = direction ? random_length(i, rank, 0) : random_length(rank, i, 0);

			counts[direction][i] = length;
			starts[direction][i] = total;
			total += length;
		}
		data[direction] = elements(total);
	}
	for (i = 0; i < size; i++)
		fill(data[0] + starts[0][i], counts[0][i], key(rank, i, 0));
	MPI_Alltoallv(data[0], counts[0], starts[0], MPI_UINT32_T, data[1], counts[1], starts[1],
		      MPI_UINT32_T, MPI_COMM_WORLD);
	for (i = 0; i < size; i++) {
		check(data[1] + starts[1][i], counts[1][i], key(i, rank, 0), i);
		count_exchanged(i, counts[1][i]);
	}
	for (direction = 0; direction < 2; direction++) {
		free(counts[direction]);
		free(starts[direction]);
		free(data[direction]);
	}
	conclude("all to all, random lengths");
}

/*
 * Each process sends all its messages to all others before it receives any, and receives them in the
 * opposite order. So MPI has to keep those that arrive, or to delay their data.
 */
static void unexpected(void)
{
	uint32_t **out = calloc(size * MESSAGES, sizeof(*out));
	MPI_Request *sent = calloc(size * MESSAGES, sizeof(*sent));
	int i, message, pending = 0;

	for (i = 0; i < size; i++) {
		for (message = 0; i != rank && message < MESSAGES; message++, pending++) {
			int length = random_length(rank, i, message);

			out[pending] = elements(length);
			fill(out[pending], length, key(rank, i, message));
			MPI_Isend(out[pending], length, MPI_UINT32_T, i, message, MPI_COMM_WORLD,
				  &sent[pending]);
		}
	}
	for (i = size - 1; i >= 0; i--) {
		for (message = MESSAGES - 1; i != rank && message >= 0; message--) {
			int length = random_length(i, rank, message), got;
			uint32_t *in = elements(length);
			MPI_Status status;

			MPI_Recv(in, length, MPI_UINT32_T, i, message, MPI_COMM_WORLD, &status);
			MPI_Get_count(&status, MPI_UINT32_T, &got);
			check_element(got, length, i, 0);
			check(in, length, key(i, rank, message), i);
			count_exchanged(i, length);
			free(in);
		}
	}
	MPI_Waitall(pending, sent, MPI_STATUSES_IGNORE);
	while (pending)
		free(out[--pending]);
	free(out);
	free(sent);
	conclude("messages that arrive before their receives are posted, in the opposite order");
}

/* Writes to the file what all processes together have exchanged. */
static void report_exchanged(const char *path)
{
	uint64_t total = 0;
	FILE *file;

	MPI_Reduce(&exchanged, &total, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank)
		return;
	file = fopen(path, "w");
	if (!file || fprintf(file, "%llu\n", (unsigned long long)total) < 0 || fclose(file)) {
		perror(path);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
}

int main(int argc, char **argv)
{
	static const struct {
		size_t count;
		int rounds;
	} shapes[] = { { 2, 20 }, { 250, 20 }, { 4000, 10 }, { 20000, 4 }, { 262144, 2 } };
	size_t i;

	MPI_Init(&argc, &argv);
	if (argc != 2) {
		fprintf(stderr, "usage: mpi_exchange FILE\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (size < 2) {
		fprintf(stderr, "one process cannot exchange anything\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	for (i = 0; i < sizeof(shapes) / sizeof(*shapes); i++)
		all_to_all(shapes[i].count, shapes[i].rounds);
	all_to_all_random();
	unexpected();
	report_exchanged(argv[1]);
	if (rank == 0)
		tap_done();
	MPI_Finalize();
	return 0;
}
