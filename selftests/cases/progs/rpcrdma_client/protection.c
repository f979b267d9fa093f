// SPDX-License-Identifier: GPL-2.0
/* Chunks that the client's device refuses: STags, bounds, rights. */
#include <string.h>

#include "../common/access.h"
#include "../common/tap.h"
#include "tests.h"

#define BYTES 8000

static struct call call;
static struct connection c;

enum fault { OTHER_STAG, OTHER_PD, TOO_LONG, NO_RIGHT };

static const struct {
	enum fault fault;
	const char *name;
} faults[] = {
	{ OTHER_STAG, "an STag that does not exist" },
	{ OTHER_PD, "an STag of another PD" },
	{ TOO_LONG, "a segment beyond the end of the region" },
	{ NO_RIGHT, "a region without the right" },
};

static void give(enum fault fault, bool write, const char *name)
{
	struct connection_opts opts = plain();
	uint64_t before;
	struct segment segment;
	struct region region;
	struct ibv_pd *other;
	int access = ALL;

	connection_open(&c, &opts);
	other = ibv_alloc_pd(c.id->verbs);
	if (!other)
		tap_bail("ibv_alloc_pd");
	if (fault == NO_RIGHT)
		access = write ? IBV_ACCESS_REMOTE_READ
			       : IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	region_make(&region, &rng, fault == TOO_LONG ? BYTES - 3000 : BYTES, 0);
	region_register(&region, fault == OTHER_PD ? other : c.pd, access);
	segment = segment_of(&region, 0, BYTES);
	if (fault == OTHER_STAG)
		segment.handle ^= 0x00a5a500;

	if (write) {
		call_read(&call, DATA, 0, BYTES);
		header_add_write(&call.header, &segment, 1);
	} else {
		uint8_t data[BYTES];

		memset(data, 0, sizeof(data));
		call_write(&call, 0, data, BYTES);
		call_reduce(&call, 0);
		header_add_read(&call.header, call.items[0].position, segment);
	}
	before = terminates(&c, SENT);
	if (call_send(&c, &call) && connection_ends(&c))
		terminated(&c, SENT, before);
	/* The first segments of the message may be within the bounds. */
	if (write && fault == TOO_LONG)
		memcpy(region_wanted(&region, region.bytes), region.bytes, region.length);
	region_intact(&region, "the region");
	region_free(&region);
	ibv_dealloc_pd(other);
	connection_close(&c);
	tap_point("%s in a %s chunk: the client sends a Terminate, no reply comes, and no other bytes "
		  "are changed (RFC 8166, 4.5.3)", name, write ? "Write" : "Read");
}

void test_protection(void)
{
	for (int write = 0; write < 2; write++)
		for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
			give(faults[i].fault, write, faults[i].name);
}
