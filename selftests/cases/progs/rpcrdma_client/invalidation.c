// SPDX-License-Identifier: GPL-2.0
/* Remote invalidation (RFC 8797). */
#include <string.h>

#include "../common/access.h"
#include "../common/tap.h"
#include "../rpcrdma/private.h"
#include "tests.h"

#define BYTES 2000

static struct call call;
static struct reply reply;
static struct connection c;
static uint8_t data[BYTES];

/* Connects with private data of `length` bytes. */
static void open_with(const uint8_t *private, uint8_t length)
{
	struct connection_opts opts = plain();

	opts.private = private;
	opts.private_length = length;
	connection_open(&c, &opts);
}

/* Connects with RFC 8797's private data. */
static void open_flags(uint32_t magic, uint8_t version, uint8_t flags)
{
	uint8_t own[PRIVATE_BYTES];

	private_put(own, (struct private){ .magic = magic, .version = version, .flags = flags,
					   .send = 3, .receive = 3 });
	open_with(own, sizeof(own));
}

enum kind { READ_CHUNK, WRITE_CHUNK, REPLY_CHUNK, POSITION_ZERO, KINDS };

/* Makes a call with one chunk in the region. */
static void make(enum kind kind, struct region *region)
{
	struct segment all = segment_of(region, 0, region->length);

	switch (kind) {
	case READ_CHUNK:
	case POSITION_ZERO:
		rng_fill(&rng, data, BYTES);
		call_write(&call, 0, data, BYTES);
		if (kind == READ_CHUNK) {
			call_move(&call, 0, region, 0);
		} else {
			all.length = call_store(&call, region, 0);
			call.header.procedure = RDMA_NOMSG;
			header_add_read(&call.header, 0, all);
		}
		break;
	case WRITE_CHUNK:
		call_read(&call, DATA, 0, BYTES);
		header_add_write(&call.header, &all, 1);
		break;
	default:
		call_read(&call, DATA, 0, BYTES);
		header_set_reply(&call.header, &all, 1);
	}
}

/* Does a call with one chunk and checks whether its reply invalidates the STag. */
static void do_kind(enum kind kind, bool invalidates)
{
	struct region region;

	region_open(&region, &c, 2 * BYTES, REVOCABLE);
	make(kind, &region);
	if (call_do(&c, &call, &reply)) {
		uint32_t wanted = invalidates ? region.mr->rkey : 0;

		tap_check(reply.message.invalidated == wanted,
			  "chunk kind %d: STag %#x was invalidated, wanted %#x", kind,
			  reply.message.invalidated, wanted);
	}
	region_free(&region);
}

static void one_stag(void)
{
	open_flags(MAGIC, 1, R);
	for (int kind = 0; kind < KINDS; kind++)
		do_kind(kind, true);
	tap_point("with R of the client alone, a reply invalidates the one STag of the call, whatever "
		  "chunk it is in (deviates from RFC 8797, 4.1: both shall have R)");
}

static void no_stag(void)
{
	call_null(&call);
	if (call_do(&c, &call, &reply))
		tap_check(!reply.message.invalidated, "the reply invalidates STag %#x",
			  reply.message.invalidated);
	tap_point("the reply to a call without an STag invalidates none (RFC 8797, 4.1)");
}

/* Does a READ into the region. */
static void do_read(struct region *region)
{
	struct segment segment = segment_of(region, 0, BYTES);

	call_read(&call, DATA, 0, BYTES);
	header_add_write(&call.header, &segment, 1);
	if (call_do(&c, &call, &reply))
		tap_check(chunk_length(&reply.header.write[0]) == BYTES, "%u bytes were read",
			  chunk_length(&reply.header.write[0]));
}

static void two_stags(void)
{
	struct region first, second;
	struct segment segments[2];

	region_open(&first, &c, BYTES, REVOCABLE);
	region_open(&second, &c, 2 * BYTES, REVOCABLE);
	for (int kind = 0; kind < 2; kind++) {
		segments[0] = segment_of(&first, 0, BYTES / 2);
		segments[1] = segment_of(&second, 0, 2 * BYTES);
		call_read(&call, DATA, 0, BYTES);
		header_add_write(&call.header, segments, kind ? 1 : 2);
		if (kind) {
			call.header.write[0].segments[0].length = BYTES;
			header_set_reply(&call.header, segments + 1, 1);
		}
		if (call_do(&c, &call, &reply))
			tap_check(!reply.message.invalidated, "the reply invalidates STag %#x",
				  reply.message.invalidated);
	}
	/* Both still work. Each of these invalidates one. */
	do_read(&first);
	do_read(&second);
	region_free(&first);
	region_free(&second);
	tap_point("the reply to a call with two STags invalidates none (RFC 8797, 3.2)");
}

static void errors(void)
{
	struct segment segment;
	struct region region;

	region_open(&region, &c, BYTES, REVOCABLE);
	segment = segment_of(&region, 0, BYTES);
	/* not a position */
	rng_fill(&rng, data, 100);
	call_write(&call, 0, data, 100);
	call_reduce(&call, 0);
	header_add_read(&call.header, call.items[0].position + 1, segment);
	if (call_send(&c, &call))
		refused(&c, call.header.xid, VERSION, ERR_CHUNK);
	/* not a procedure */
	call_null(&call);
	header_add_write(&call.header, &segment, 1);
	call.header.procedure = 17;
	if (call_send(&c, &call))
		refused(&c, call.header.xid, VERSION, ERR_CHUNK);
	/* too small for the reply */
	call_read(&call, DATA, 0, BYTES);
	segment.length = 64;
	header_set_reply(&call.header, &segment, 1);
	if (call_send(&c, &call))
		refused(&c, call.header.xid, VERSION, ERR_CHUNK);
	do_read(&region);
	region_free(&region);
	tap_point("an error is a Send that invalidates no STag (RFC 8166, 4.5; RFC 8797, 4.1)");
}

static void used_again(enum kind kind, const char *name)
{
	uint64_t before;
	struct region region;

	open_flags(MAGIC, 1, R);
	region_open(&region, &c, 2 * BYTES, REVOCABLE);
	make(kind, &region);
	if (call_do(&c, &call, &reply))
		tap_check(reply.message.invalidated, "the reply invalidates no STag");
	make(kind, &region);
	/* What arrived with the first call stays. */
	memcpy(region_wanted(&region, region.bytes), region.bytes, region.length);
	before = terminates(&c, SENT);
	if (call_send(&c, &call) && connection_ends(&c))
		terminated(&c, SENT, before);
	region_close(&region, "the region after its invalidation");
	connection_close(&c);
	tap_point("an STag that was invalidated, used again in a %s chunk, ends the connection by a "
		  "Terminate of the client (RFC 8166, 4.5.3)", name);
}

static void private_data(void)
{
	static const struct {
		uint32_t magic;
		uint8_t version, flags;
	} ignored[] = {
		{ MAGIC, 1, 0 },
		{ MAGIC, 1, 0xfe },
		{ MAGIC ^ 1, 1, R },
		{ 0, 1, R },
		{ MAGIC, 0, R },
		{ MAGIC, 2, R },
	};
	uint8_t later[WORD + PRIVATE_BYTES] = {};

	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++) {
		open_flags(ignored[i].magic, ignored[i].version, ignored[i].flags);
		do_kind(WRITE_CHUNK, false);
		connection_close(&c);
	}
	open_with(NULL, 0);
	do_kind(WRITE_CHUNK, false);
	connection_close(&c);
	tap_point("without R, or with private data of another kind or version, or none, a reply "
		  "invalidates no STag (RFC 8797, 4.1, 5.1)");

	open_flags(MAGIC, 1, 0xff);
	do_kind(WRITE_CHUNK, true);
	connection_close(&c);
	tap_point("the server ignores reserved flags (RFC 8797, 4)");

	private_put(later + WORD, (struct private){ .magic = MAGIC, .version = 1, .flags = R,
						    .send = 3, .receive = 3 });
	open_with(later, sizeof(later));
	do_kind(WRITE_CHUNK, false);
	connection_close(&c);
	tap_point("the server does not find the format identifier behind other private data "
		  "(deviates from RFC 8797, 5.2: it shall search)");

	/* The server may read them as RFC 8797's only as far as they are there. */
	private_put(later, (struct private){ .magic = MAGIC, .version = 1, .flags = R });
	open_with(later, 5);
	works(&c);
	connection_close(&c);
	tap_point("the server accepts private data that end too early (RFC 8797, 5.2)");
}

void test_invalidation(void)
{
	one_stag();
	no_stag();
	two_stags();
	errors();
	connection_close(&c);
	used_again(READ_CHUNK, "Read");
	used_again(WRITE_CHUNK, "Write");
	private_data();
}
