/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory under test: bytes that may change, between guard bytes that must not. The expected
 * contents are kept separately, and everything is compared byte for byte.
 */
#ifndef REGION_H
#define REGION_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rng;

struct region {
	uint8_t *map;		/* everything, guards included */
	size_t map_length;
	uint8_t *bytes;		/* the bytes under test */
	size_t length;
	uint8_t *wanted;	/* the expected contents of `map` */
	struct ibv_mr *mr;	/* of bytes..length, if registered */
};

/*
 * Maps `length` bytes at `offset` bytes into a page, with at least a page of guard bytes at both
 * ends, all filled from `rng`. Ends the program on failure.
 */
void region_make(struct region *region, struct rng *rng, size_t length, size_t offset);

/* Registers the bytes, not the guards. */
void region_register(struct region *region, struct ibv_pd *pd, int access);

/* Returns the position in `wanted` that corresponds to `at` in `bytes`. */
uint8_t *region_wanted(const struct region *region, const void *at);

/*
 * Returns whether all bytes and guards are as wanted. Reports the first difference to tap_check().
 */
bool region_intact(const struct region *region, const char *name);

void region_free(struct region *region);

/* Returns an SGE of the region. */
struct ibv_sge region_sge(const struct region *region, size_t offset, uint32_t length);

#endif
