// SPDX-License-Identifier: GPL-2.0
/* Read lists: chunks of arguments, and Long Calls. */
#include <string.h>

#include "../common/access.h"
#include "../common/tap.h"
#include "tests.h"

#define COUNT(array) (int)(sizeof(array) / sizeof((array)[0]))

#define BYTES 20000		/* of the data, and of the region that is read */
#define REGION (2 * BYTES)

static struct call call;
static struct connection c;
static struct region region;
static uint8_t data[BYTES];

/* Does the call, and checks that the file then has the data. */
static bool written(uint64_t offset, uint32_t length)
{
	return write_done(&c, &call, length) && sink_holds(&c, offset, data, length);
}

/* Starts a test: other data, and a WRITE of `length` bytes. */
static void fresh_write(uint32_t length)
{
	rng_fill(&rng, data, length);
	call_write(&call, 0, data, length);
}

static void one_chunk(void)
{
	static const uint32_t lengths[] = { 4, 1024, 4096, 8192, BYTES };

	for (int i = 0; i < COUNT(lengths); i++) {
		fresh_write(lengths[i]);
		call_move(&call, 0, &region, 100 * i);
		written(0, lengths[i]);
	}
	tap_point("a Read chunk is inserted at its position (RFC 8166, 3.4.5)");
}

static void segments(void)
{
	static const uint32_t sizes[] = { 1, 3, 4096, 1000, 1, 5000, 7 };
	const struct item *item;
	uint32_t done = 0;

	fresh_write(BYTES);
	item = call_reduce(&call, 0);
	/* The later a segment is in the list, the lower its address. */
	for (int i = 0; i <= COUNT(sizes); i++) {
		uint32_t size = i < COUNT(sizes) ? sizes[i] : BYTES - done;
		size_t at = REGION - done - size;

		region_store(&region, at, data + done, size);
		header_add_read(&call.header, item->position, segment_of(&region, at, size));
		done += size;
	}
	written(0, BYTES);
	tap_point("the segments of a Read chunk are joined in the order of the list (RFC 8166, 3.4.5)");
}

static void several_stags(void)
{
	struct region own[3];
	const struct item *item;

	fresh_write(3000);
	item = call_reduce(&call, 0);
	for (int i = 0; i < 3; i++) {
		region_open(&own[i], &c, 1000, IBV_ACCESS_REMOTE_READ);
		region_store(&own[i], 0, data + 1000 * i, 1000);
		header_add_read(&call.header, item->position, segment_of(&own[i], 0, 1000));
	}
	written(0, 3000);
	for (int i = 0; i < 3; i++)
		region_close(&own[i], "a region that was read");
	tap_point("the segments of a Read chunk may have different STags (RFC 8166, 3.4.3)");
}

static void roundup(void)
{
	static const uint32_t lengths[] = { 1, 2, 3, 5, 1021, 4095, 4097 };
	const struct item *item;

	for (int i = 0; i < COUNT(lengths); i++) {
		fresh_write(lengths[i]);
		call_move(&call, 0, &region, 0);
		written(0, lengths[i]);
	}
	tap_point("a Read chunk may leave out the roundup padding (RFC 8166, 3.4.5.2)");

	for (int i = 0; i < COUNT(lengths); i++) {
		fresh_write(lengths[i]);
		item = call_reduce(&call, 0);
		region_store(&region, 0, call.bytes + item->position, xdr_padded(lengths[i]));
		header_add_read(&call.header, item->position,
				segment_of(&region, 0, xdr_padded(lengths[i])));
		written(0, lengths[i]);
	}
	tap_point("the last segment of a Read chunk may include the roundup padding "
		  "(RFC 8166, 3.4.5.2)");

	for (int i = 0; i < COUNT(lengths); i++) {
		static const uint8_t zeros[WORD];
		uint32_t padding = xdr_padded(lengths[i]) - lengths[i];

		fresh_write(lengths[i]);
		item = call_reduce(&call, 0);
		region_store(&region, 0, data, lengths[i]);
		region_store(&region, BYTES, zeros, padding);
		header_add_read(&call.header, item->position, segment_of(&region, 0, lengths[i]));
		header_add_read(&call.header, item->position, segment_of(&region, BYTES, padding));
		written(0, lengths[i]);
	}
	tap_point("the roundup padding may be a segment of its own (RFC 8166, 3.4.5.2)");
}

/* Two WRITEs in a COMPOUND. */
static void fresh_writes(uint32_t first, uint32_t second)
{
	rng_fill(&rng, data, first + second);
	call_compound(&call, 0);
	op_file(&call, SINK);
	op_write(&call, 0, data, first);
	op_write(&call, first, data + first, second);
	op_type(&call);
}

static bool both_written(uint32_t first, uint32_t second)
{
	const uint32_t lengths[] = { first, second };
	struct reply reply;

	if (!call_do(&c, &call, &reply) || !file_results(&reply.body, 5))
		return false;
	for (int i = 0; i < 2; i++) {
		uint32_t count;

		if (!result_of(&reply.body, OP_WRITE))
			return false;
		count = xdr_get(&reply.body);
		xdr_get(&reply.body);
		xdr_get64(&reply.body);
		if (!tap_check(count == lengths[i], "WRITE %d wrote %u bytes, wanted %u", i, count,
			       lengths[i]))
			return false;
	}
	return result_type(&reply.body, TYPE_FILE) && sink_holds(&c, 0, data, first + second);
}

static void several_chunks(void)
{
	static const uint32_t lengths[][2] = {
		{ 4, 4 }, { 100, 4000 }, { 4096, 4096 }, { 5000, 5000 }, { 10000, 100 },
	};
	struct reply reply;

	for (int i = 0; i < COUNT(lengths); i++) {
		size_t at;

		fresh_writes(lengths[i][0], lengths[i][1]);
		at = call_move(&call, 0, &region, 0);
		call_move(&call, 1, &region, at);
		both_written(lengths[i][0], lengths[i][1]);
	}
	tap_point("Read chunks are inserted at their positions, with inline data between them "
		  "(RFC 8166, 3.4.5)");

	fresh_writes(3, 100);
	call_move(&call, 1, &region, call_move(&call, 0, &region, 0));
	if (call_do(&c, &call, &reply))
		compound_fails(&reply.body);
	works(&c);
	tap_point("the roundup padding may not be left out of the first of two Read chunks "
		  "(deviates from RFC 8166, 3.4.5.2)");

	fresh_writes(1000, 2000);
	call_move(&call, 1, &region, 0);
	both_written(1000, 2000);
	tap_point("one of two items may stay inline (RFC 8166, 3.5.2)");
}

/* Does a Long Call with further Read chunks, which fails because the last of them is not read. */
static void lost_chunks(int count)
{
	struct reply reply;
	uint32_t length;
	size_t at = 0;

	if (count == 1)
		fresh_write(1000);
	else
		fresh_writes(64, 512);
	call.header.procedure = RDMA_NOMSG;
	for (int i = 0; i < count; i++)
		call_reduce(&call, i);
	length = call_store(&call, &region, BYTES);
	header_add_read(&call.header, 0, segment_of(&region, BYTES, length));
	for (int i = 0; i < count; i++)
		at = call_move(&call, i, &region, at);
	if (call_do(&c, &call, &reply))
		compound_fails(&reply.body);
	works(&c);
}

static void long_calls(void)
{
	static const uint32_t lengths[] = { 3, 1000, 8000, BYTES };
	uint32_t length, third;

	for (int i = 0; i < COUNT(lengths); i++) {
		fresh_write(lengths[i]);
		call.header.procedure = RDMA_NOMSG;
		length = call_store(&call, &region, 0);
		header_add_read(&call.header, 0, segment_of(&region, 0, length));
		written(0, lengths[i]);
	}
	tap_point("a Position Zero Read chunk has the call of RDMA_NOMSG (RFC 8166, 3.5.3)");

	fresh_write(10000);
	call.header.procedure = RDMA_NOMSG;
	length = call_store(&call, &region, 0);
	third = length / 3;
	header_add_read(&call.header, 0, segment_of(&region, 0, third));
	header_add_read(&call.header, 0, segment_of(&region, third, 1));
	header_add_read(&call.header, 0, segment_of(&region, third + 1, length - third - 1));
	written(0, 10000);
	tap_point("a Position Zero Read chunk may have several segments (RFC 8166, 3.5.3)");

	lost_chunks(1);
	tap_point("the Read chunk of a Long Call is lost "
		  "(deviates from RFC 8166, 3.5.3: shall be inserted at its position)");
	lost_chunks(2);
	tap_point("the second Read chunk of a Long Call is lost "
		  "(deviates from RFC 8166, 3.5.3: shall be inserted at its position)");
}

static void symbolic_link(void)
{
	static char text[1001], name[] = "made link";
	struct reply reply;
	uint32_t length;

	memset(text, 'y', sizeof(text) - 1);
	call_compound(&call, 0);
	op_plain(&call, OP_PUTROOTFH);
	op_symlink(&call, name, text);
	call_move(&call, 0, &region, 0);
	if (call_do(&c, &call, &reply))
		compound_results(&reply.body, 2);

	call_compound(&call, 0);
	op_file(&call, name);
	op_plain(&call, OP_READLINK);
	if (call_do(&c, &call, &reply) && file_results(&reply.body, 3) &&
	    result_of(&reply.body, OP_READLINK)) {
		const uint8_t *got = xdr_get_opaque(&reply.body, &length);

		tap_check(got && length == sizeof(text) - 1 && !memcmp(got, text, length),
			  "the link has %u bytes of another text, wanted %zu", length,
			  sizeof(text) - 1);
	}
	call_compound(&call, 0);
	op_plain(&call, OP_PUTROOTFH);
	op_name(&call, OP_REMOVE, name);
	if (call_do(&c, &call, &reply))
		compound_results(&reply.body, 2);
	tap_point("the text of a symbolic link may be a Read chunk (RFC 8267)");
}

/* --- lists that are refused */

/* Sends a WRITE with a Read chunk of some position and segment, which the server shall refuse. */
static void refused_with(uint32_t position, struct segment segment)
{
	fresh_write(100);
	region_store(&region, 0, data, 100);
	call_reduce(&call, 0);
	header_add_read(&call.header, position, segment);
	if (call_send(&c, &call))
		refused(&c, call.header.xid, VERSION, ERR_CHUNK);
}

static void bad_positions(void)
{
	struct segment hundred = segment_of(&region, 0, 100);
	uint32_t position, end;

	fresh_write(100);
	position = call.items[0].position;
	end = call.body.at - 100;

	for (int i = 1; i < 4; i++)
		refused_with(position + i, hundred);
	works(&c);
	tap_point("a position that is no multiple of four is refused by ERR_CHUNK (RFC 8166, 3.4.5)");

	refused_with(end + 4, hundred);
	refused_with(1 << 20, hundred);
	refused_with(0xfffffffc, hundred);
	works(&c);
	tap_point("a position behind the end is refused by ERR_CHUNK (RFC 8166, 4.5.2)");

	fresh_writes(100, 100);
	call_reduce(&call, 0);
	call_reduce(&call, 1);
	header_add_read(&call.header, call.items[0].position, hundred);
	header_add_read(&call.header, call.items[0].position + 96, hundred);
	if (call_send(&c, &call))
		refused(&c, call.header.xid, VERSION, ERR_CHUNK);
	works(&c);
	tap_point("Read chunks that overlap are refused by ERR_CHUNK (RFC 8166, 4.5.2)");
}

static void long_chunks(void)
{
	struct segment segment = segment_of(&region, 0, 64 << 20);
	uint32_t position;

	fresh_write(100);
	position = call.items[0].position;
	refused_with(position, segment);
	segment.length = 0xffffffff;
	refused_with(position, segment);
	works(&c);
	tap_point("a Read segment of more bytes than a call can have is refused by ERR_CHUNK "
		  "(RFC 8166, 3.4.4)");


	fresh_write(100);
	call_reduce(&call, 0);
	segment.length = 1 << 19;
	for (int i = 0; i < MAX_READ_SEGMENTS; i++)
		header_add_read(&call.header, position, segment);
	if (call_send(&c, &call))
		refused(&c, call.header.xid, VERSION, ERR_CHUNK);
	works(&c);
	tap_point("a Read chunk of more bytes than a call can have is refused by ERR_CHUNK "
		  "(RFC 8166, 3.4.4)");
}

static void empty_segment(void)
{
	struct connection_opts opts = plain();
	struct region own;

	connection_open(&c, &opts);
	region_open(&own, &c, REGION, ALL);
	fresh_write(100);
	call_reduce(&call, 0);
	region_store(&own, 0, data, 100);
	header_add_read(&call.header, call.items[0].position, segment_of(&own, 0, 100));
	header_add_read(&call.header, call.items[0].position, segment_of(&own, 100, 0));
	if (call_send(&c, &call))
		connection_ends(&c);
	region_close(&own, "the region");
	connection_close(&c);
	tap_point("an empty segment in a Read chunk ends the connection "
		  "(deviates from RFC 8166, 3.4.3: it has no bytes)");
}

void test_read_chunks(void)
{
	struct connection_opts opts = plain();

	connection_open(&c, &opts);
	region_open(&region, &c, REGION, ALL);
	one_chunk();
	segments();
	several_stags();
	roundup();
	several_chunks();
	long_calls();
	symbolic_link();
	bad_positions();
	long_chunks();
	region_close(&region, "the region that was read");
	connection_close(&c);
	tap_point("what the server reads it does not change");
	empty_segment();
}
