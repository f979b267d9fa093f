// SPDX-License-Identifier: GPL-2.0
/*
 * bench_machine: prints ceilings of the machine, in MiB/s, as lines `NAME VALUE`: copies of memory,
 * CRC-32C by the CPU's instruction, and CRC-32C by tables.
 */
#define _GNU_SOURCE
#include <nmmintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SMALL (64 << 10)
#define LARGE (64 << 20)
#define SECONDS 0.3

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec * 1e-9;
}

static uint32_t table[8][256];

static void fill_table(void)
{
	for (int i = 0; i < 256; i++) {
		uint32_t crc = i;

		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
		table[0][i] = crc;
	}
	for (int i = 0; i < 256; i++)
		for (int k = 1; k < 8; k++)
			table[k][i] = table[k - 1][i] >> 8 ^ table[0][table[k - 1][i] & 255];
}

static uint32_t crc_tables(uint32_t crc, const uint8_t *at, size_t length)
{
	for (; length >= 8; at += 8, length -= 8) {
		uint64_t word;

		memcpy(&word, at, 8);
		word ^= crc;
		crc = 0;
		for (int k = 0; k < 8; k++)
			crc ^= table[7 - k][word >> 8 * k & 255];
	}
	while (length--)
		crc = crc >> 8 ^ table[0][(crc ^ *at++) & 255];
	return crc;
}

__attribute__((target("sse4.2")))
static uint32_t crc_instruction(uint32_t crc, const uint8_t *at, size_t length)
{
	for (; length >= 8; at += 8, length -= 8) {
		uint64_t word;

		memcpy(&word, at, 8);
		crc = _mm_crc32_u64(crc, word);
	}
	return crc;
}

static volatile uint32_t sink;
static uint8_t *from, *to;

static void copy(size_t length)
{
	memcpy(to, from, length);
	sink += to[length - 1];
}

static void crc_by_tables(size_t length)
{
	sink += crc_tables(~0, from, length);
}

static void crc_by_instruction(size_t length)
{
	sink += crc_instruction(~0, from, length);
}

/*
 * Prints the MiB/s of run(), which processes `length` bytes per call. On a User-Mode Linux, reading
 * the clock takes as long as copying 64 KiB. So read it once per batch, and double the batch until
 * it lasts long enough.
 */
static void measure(const char *name, void (*run)(size_t), size_t length)
{
	double took = 0;
	long times = 1;

	for (;; times *= 2) {
		double begin = now();

		for (long i = 0; i < times; i++)
			run(length);
		took = now() - begin;
		if (took >= SECONDS)
			break;
	}
	printf("%s %.0f\n", name, times * (length / 1048576.0) / took);
}

int main(void)
{
	from = aligned_alloc(4096, LARGE);
	to = aligned_alloc(4096, LARGE);
	if (!from || !to)
		return 1;
	for (size_t i = 0; i < LARGE; i++)
		from[i] = i * 31;
	memset(to, 1, LARGE);
	fill_table();

	measure("memcpy_64KiB", copy, SMALL);
	measure("memcpy_64MiB", copy, LARGE);
	measure("crc32c_tables", crc_by_tables, SMALL);
	if (__builtin_cpu_supports("sse4.2"))
		measure("crc32c_instruction", crc_by_instruction, SMALL);
	return 0;
}
