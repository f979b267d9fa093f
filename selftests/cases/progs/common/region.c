// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include "region.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "random.h"
#include "tap.h"

#define PAGE 4096UL

void region_make(struct region *region, struct rng *rng, size_t length, size_t offset)
{
	size_t whole = (offset + length + PAGE - 1) & ~(PAGE - 1);

	memset(region, 0, sizeof(*region));
	region->map_length = whole + 2 * PAGE;
	region->map = mmap(NULL, region->map_length, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	region->wanted = malloc(region->map_length);
	if (region->map == MAP_FAILED || !region->wanted)
		tap_bail("memory");
	region->bytes = region->map + PAGE + offset;
	region->length = length;
	rng_fill(rng, region->map, region->map_length);
	memcpy(region->wanted, region->map, region->map_length);
}

void region_register(struct region *region, struct ibv_pd *pd, int access)
{
	region->mr = ibv_reg_mr(pd, region->bytes, region->length, access);
	if (!region->mr)
		tap_bail("ibv_reg_mr of %zu bytes, access %#x", region->length, access);
}

uint8_t *region_wanted(const struct region *region, const void *at)
{
	return region->wanted + ((const uint8_t *)at - region->map);
}

bool region_intact(const struct region *region, const char *name)
{
	size_t i, wrong = 0, first = 0;

	if (!memcmp(region->map, region->wanted, region->map_length))
		return true;
	for (i = 0; i < region->map_length; i++)
		if (region->map[i] != region->wanted[i] && !wrong++)
			first = i;
	return tap_check(false, "%s: %zu bytes differ, the first at %zd of 0..%zu: %#x, wanted %#x",
			 name, wrong, region->map + first - region->bytes, region->length,
			 region->map[first], region->wanted[first]);
}

void region_free(struct region *region)
{
	if (region->mr)
		ibv_dereg_mr(region->mr);
	munmap(region->map, region->map_length);
	free(region->wanted);
	memset(region, 0, sizeof(*region));
}

struct ibv_sge region_sge(const struct region *region, size_t offset, uint32_t length)
{
	return (struct ibv_sge){
		.addr = (uintptr_t)region->bytes + offset,
		.length = length,
		.lkey = region->mr ? region->mr->lkey : 0,
	};
}
