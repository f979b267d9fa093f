// SPDX-License-Identifier: GPL-2.0
#include <string.h>

#include "../common/access.h"
#include "../common/tap.h"
#include "tests.h"

struct connection_opts plain(void)
{
	return (struct connection_opts){ .server = server };
}

void data_copy(uint8_t *to, size_t offset, size_t length)
{
	/* as in the case that makes the file */
	for (size_t i = offset; length--; i++)
		*to++ = i * 7 + i / 251;
}

void region_open(struct region *region, struct connection *c, size_t length, int access)
{
	region_make(region, &rng, length, 0);
	region_register(region, c->pd, access);
}

void region_close(struct region *region, const char *name)
{
	region_intact(region, name);
	region_free(region);
}

void call_write(struct call *call, uint64_t offset, const void *bytes, uint32_t length)
{
	call_compound(call, 0);
	op_file(call, SINK);
	op_write(call, offset, bytes, length);
	op_type(call);
}

void call_read(struct call *call, const char *file, uint64_t offset, uint32_t count)
{
	call_compound(call, 0);
	op_file(call, file);
	op_read(call, offset, count);
	op_type(call);
}

bool file_results(struct xdr *body, uint32_t operations)
{
	return compound_results(body, operations) && result_of(body, OP_PUTROOTFH) &&
	       result_of(body, OP_LOOKUP);
}

bool write_results(struct xdr *body, uint32_t length)
{
	uint32_t count;

	if (!file_results(body, 4) || !result_of(body, OP_WRITE))
		return false;
	count = xdr_get(body);
	xdr_get(body);
	xdr_get64(body);
	return tap_check(count == length, "%u bytes were written, wanted %u", count, length) &&
	       result_type(body, TYPE_FILE);
}

bool write_done(struct connection *c, const struct call *call, uint32_t length)
{
	struct reply reply;

	return call_do(c, call, &reply) && write_results(&reply.body, length);
}

bool read_result(struct xdr *body, uint32_t count)
{
	uint32_t got;

	if (!result_of(body, OP_READ))
		return false;
	xdr_get(body);
	got = xdr_get(body);
	return tap_check(!body->failed && got == count, "%u bytes were read, wanted %u", got, count);
}

bool sink_holds(struct connection *c, uint64_t offset, const void *bytes, uint32_t length)
{
	static struct call call;
	struct region region;
	struct segment all;
	struct reply reply;
	bool holds;

	region_open(&region, c, length, ALL);
	all = segment_of(&region, 0, length);
	call_read(&call, SINK, offset, length);
	header_add_write(&call.header, &all, 1);
	holds = call_do(c, &call, &reply) && file_results(&reply.body, 4) &&
		read_result(&reply.body, length);
	memcpy(region_wanted(&region, region.bytes), bytes, length);
	if (holds)
		holds = region_intact(&region, "the bytes of the file");
	region_free(&region);
	return holds;
}
