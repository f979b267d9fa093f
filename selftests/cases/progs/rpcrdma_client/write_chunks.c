// SPDX-License-Identifier: GPL-2.0
/* Write lists and Reply chunks. */
#include <string.h>

#include "../common/access.h"
#include "../common/tap.h"
#include "tests.h"

#define COUNT(array) (int)(sizeof(array) / sizeof((array)[0]))

#define REGION 65536

/*
 * The first of two READs has this length: with the start of the next result, 16 bytes, it ends a page.
 * If the second result begins within a page, nfsd takes it from wrong pages.
 */
#define FIRST (4096 - 16)

static struct call call;
static struct reply reply;
static struct connection c;
static struct region region;

/* Expects a part of DATA at `at` in the region. */
static void expect_data(size_t at, size_t offset, size_t length)
{
	data_copy(region_wanted(&region, region.bytes + at), offset, length);
}

/* Fills the region with other bytes. */
static void fresh_region(void)
{
	rng_fill(&rng, region.bytes, region.length);
	memcpy(region_wanted(&region, region.bytes), region.bytes, region.length);
}

/* Checks Write chunk `i` of the reply, which shall have `length` bytes. */
static bool filled(int i, uint32_t length)
{
	return chunk_filled(&reply.header.write[i], &call.header.write[i], length);
}

/* Does a READ of DATA with one Write chunk, and checks the reply and the region. */
static bool read_into(const struct segment *segments, int count, uint32_t offset, uint32_t length)
{
	uint32_t done = 0;

	fresh_region();
	call_read(&call, DATA, offset, length);
	header_add_write(&call.header, segments, count);
	for (int i = 0; i < count; i++) {
		uint32_t part = length - done < segments[i].length ? length - done
								   : segments[i].length;

		expect_data(segments[i].offset - (uintptr_t)region.bytes, offset + done, part);
		done += part;
	}
	/* GETATTR follows at once: its result is where it should be only without data and padding. */
	return call_do(&c, &call, &reply) && file_results(&reply.body, 4) &&
	       read_result(&reply.body, length) && result_type(&reply.body, TYPE_FILE) &&
	       tap_check(!xdr_left(&reply.body), "%zu bytes behind the results",
			 xdr_left(&reply.body)) &&
	       filled(0, length) && region_intact(&region, "the Write chunk");
}

static void one_chunk(void)
{
	static const uint32_t lengths[] = { 4, 1000, 4096, 20000, 65536 };
	static const uint32_t odd[] = { 1, 2, 3, 1001, 4097, 65535 };
	struct segment segments[5];

	for (int i = 0; i < COUNT(lengths); i++) {
		segments[0] = segment_of(&region, 0, lengths[i]);
		read_into(segments, 1, 0, lengths[i]);
	}
	tap_point("the result of READ is in the Write chunk, and not in the message "
		  "(RFC 8166, 3.4.6, 4.3.2)");

	for (int i = 0; i < COUNT(odd); i++) {
		segments[0] = segment_of(&region, 0, xdr_padded(odd[i]));
		read_into(segments, 1, 0, odd[i]);
	}
	tap_point("no roundup padding is written into a Write chunk, nor left in the message "
		  "(RFC 8166, 3.4.6.2)");

	segments[0] = segment_of(&region, 30000, 5000);
	segments[1] = segment_of(&region, 20001, 1);
	segments[2] = segment_of(&region, 10003, 4093);
	segments[3] = segment_of(&region, 1, 3000);
	segments[4] = segment_of(&region, 40000, 100);
	read_into(segments, 5, 7, 5000 + 1 + 4093 + 1000);
	tap_point("a Write chunk is filled segment after segment; segments come back with the lengths "
		  "written, unused ones with 0 (RFC 8166, 3.4.6)");

	read_into(segments, 5, 3, 5000);
	tap_point("a result that ends with a segment leaves the next ones unused (RFC 8166, 3.4.6)");
}

static void several_chunks(void)
{
	struct segment segments[3];
	int i;

	fresh_region();
	segments[0] = segment_of(&region, 0, 5000);
	segments[1] = segment_of(&region, 8000, 5000);
	segments[2] = segment_of(&region, 16000, 5000);
	call_compound(&call, 0);
	op_file(&call, DATA);
	for (i = 0; i < 2; i++) {
		op_read(&call, 1000 * i, FIRST - i);
		header_add_write(&call.header, &segments[i], 1);
		expect_data(8000 * i, 1000 * i, FIRST - i);
	}
	header_add_write(&call.header, &segments[2], 1);
	op_type(&call);
	if (call_do(&c, &call, &reply) && file_results(&reply.body, 5) &&
	    read_result(&reply.body, FIRST) && read_result(&reply.body, FIRST - 1) &&
	    result_type(&reply.body, TYPE_FILE) && filled(0, FIRST) && filled(1, FIRST - 1))
		filled(2, 0);
	region_intact(&region, "the Write chunks");
	tap_point("each result fills the next Write chunk (RFC 8166, 4.3.2.1)");

	fresh_region();
	call_compound(&call, 0);
	op_file(&call, DATA);
	op_read(&call, 0, FIRST);
	op_read(&call, 5, 301);
	header_add_write(&call.header, segments, 1);
	expect_data(0, 0, FIRST);
	if (call_do(&c, &call, &reply) && file_results(&reply.body, 4) &&
	    read_result(&reply.body, FIRST) && filled(0, FIRST) && read_result(&reply.body, 301)) {
		const uint8_t *got = xdr_get_bytes(&reply.body, 301);
		uint8_t wanted[301];

		data_copy(wanted, 5, 301);
		tap_check(got && !memcmp(got, wanted, 301), "the inline bytes differ");
	}
	region_intact(&region, "the Write chunk");
	tap_point("a result without a Write chunk is inline (RFC 8166, 4.3.2.1)");
}

static void unused_chunks(void)
{
	struct segment segments[2];

	fresh_region();
	segments[0] = segment_of(&region, 0, 5000);
	segments[1] = segment_of(&region, 8000, 5000);
	call_null(&call);
	header_add_write(&call.header, segments, 2);
	header_add_write(&call.header, segments + 1, 1);
	if (call_do(&c, &call, &reply) && filled(0, 0))
		filled(1, 0);
	region_intact(&region, "the Write chunks");
	tap_point("unused Write chunks come back with all segments, empty (RFC 8166, 4.3.2.2)");

	fresh_region();
	call_read(&call, "missing", 0, 100);
	header_add_write(&call.header, segments, 2);
	if (call_do(&c, &call, &reply))
		filled(0, 0);
	region_intact(&region, "the Write chunk");
	tap_point("an operation that fails leaves its Write chunk unused (RFC 8166, 4.3.2.2)");

	call_null(&call);
	header_add_write(&call.header, NULL, 0);
	if (call_send(&c, &call))
		refused(&c, call.header.xid, VERSION, ERR_CHUNK);
	works(&c);
	tap_point("an empty Write chunk is refused by ERR_CHUNK "
		  "(deviates from RFC 8166, 4.3.2.3: the result shall be inline)");
}

static void small_chunk(void)
{
	struct segment segment = segment_of(&region, 0, 999);
	uint32_t status, length, count, op, result;

	fresh_region();
	call_compound(&call, 0);
	op_file(&call, DATA);
	op_read(&call, 0, 1000);
	/*
	 * The second READ is not done, but makes nfsd copy the data. If it has lent pages of the file
	 * to the reply when it fails, later replies overwrite the file.
	 */
	op_read(&call, 0, 1000);
	header_add_write(&call.header, &segment, 1);
	if (call_do(&c, &call, &reply)) {
		status = xdr_get(&reply.body);
		xdr_get_opaque(&reply.body, &length);
		count = xdr_get(&reply.body);
		if (result_of(&reply.body, OP_PUTROOTFH) && result_of(&reply.body, OP_LOOKUP)) {
			op = xdr_get(&reply.body);
			result = xdr_get(&reply.body);
			tap_check(status == NFS4ERR_IO && count == 3 && op == OP_READ &&
				  result == NFS4ERR_IO,
				  "status %u, result %u of %u for operation %u, wanted %d for READ",
				  status, result, count, op, NFS4ERR_IO);
		}
		filled(0, 0);
	}
	region_intact(&region, "the Write chunk");
	works(&c);
	tap_point("a READ of more bytes than its Write chunk has fails, and writes nothing "
		  "(RFC 8166, 3.4.6)");
}

/* READLINK has a text as result. */
static void link_text(void)
{
	struct segment segment = segment_of(&region, 0, 4096);
	uint8_t wanted[WORD + LINK_BYTES];
	struct xdr x = xdr_of(wanted, sizeof(wanted));

	fresh_region();
	xdr_put(&x, LINK_BYTES);
	memset(wanted + WORD, 'x', LINK_BYTES);
	call_compound(&call, 0);
	op_file(&call, LINK);
	op_plain(&call, OP_READLINK);
	header_add_write(&call.header, &segment, 1);
	memcpy(region_wanted(&region, region.bytes), wanted, LINK_BYTES);
	if (call_do(&c, &call, &reply) && file_results(&reply.body, 3) &&
	    result_of(&reply.body, OP_READLINK))
		filled(0, LINK_BYTES);
	region_intact(&region, "the Write chunk");
	tap_point("the Write chunk of READLINK begins with the count, and lacks the end of the text "
		  "(deviates from RFC 8166, 3.4.4.1: the count stays in the message)");
}

static void reply_chunks(void)
{
	struct segment segments[3];
	struct xdr body;
	uint32_t length;

	fresh_region();
	segments[0] = segment_of(&region, 0, REGION);
	call_null(&call);
	header_set_reply(&call.header, segments, 1);
	if (call_do(&c, &call, &reply)) {
		length = chunk_length(&reply.header.reply);
		body = xdr_of(region.bytes, length);
		chunk_filled(&reply.header.reply, &call.header.reply, length);
		rpc_reply(&body, call.header.xid, ACCEPT_SUCCESS);
		tap_check(!xdr_left(&body), "%zu bytes behind the RPC reply", xdr_left(&body));
		memcpy(region_wanted(&region, region.bytes), region.bytes, length);
	}
	region_intact(&region, "the rest of the Reply chunk");
	tap_point("a short reply is in the Reply chunk if the call has one (RFC 8166, 4.3.3)");

	fresh_region();
	segments[0] = segment_of(&region, 0, 5001);
	segments[1] = segment_of(&region, 5001, 9000);
	segments[2] = segment_of(&region, 14001, 30000);
	call_read(&call, DATA, 0, 20001);
	header_set_reply(&call.header, segments, 3);
	if (call_do(&c, &call, &reply)) {
		length = chunk_length(&reply.header.reply);
		body = xdr_of(region.bytes, length);
		chunk_filled(&reply.header.reply, &call.header.reply, length);
		if (rpc_reply(&body, call.header.xid, ACCEPT_SUCCESS) && file_results(&body, 4) &&
		    read_result(&body, 20001)) {
			expect_data(body.at, 0, 20001);
			tap_check(!memcmp(body.bytes + body.at,
					  region_wanted(&region, body.bytes + body.at), 20001),
				  "the data in the Reply chunk differ");
			xdr_get_bytes(&body, 20001);
			result_type(&body, TYPE_FILE);
			tap_check(!xdr_left(&body), "%zu bytes behind the results", xdr_left(&body));
		}
		memcpy(region_wanted(&region, region.bytes), region.bytes, length);
	}
	region_intact(&region, "the rest of the Reply chunk");
	tap_point("a Long Reply fills the segments of the Reply chunk in their order, padding included "
		  "(RFC 8166, 3.5.3)");

	fresh_region();
	segments[0] = segment_of(&region, 0, 600);
	segments[1] = segment_of(&region, 1000, 400);
	call_read(&call, DATA, 0, 1000);
	header_set_reply(&call.header, segments, 2);
	if (call_send(&c, &call))
		refused(&c, call.header.xid, VERSION, ERR_CHUNK);
	region_intact(&region, "the Reply chunk");
	works(&c);
	tap_point("a Reply chunk that is too small gives ERR_CHUNK, and nothing is written "
		  "(RFC 8166, 4.5.3)");

	call_read(&call, DATA, 0, 60000);
	if (call_send(&c, &call))
		refused(&c, call.header.xid, VERSION, ERR_CHUNK);
	works(&c);
	tap_point("a long reply without a Reply chunk gives ERR_CHUNK (RFC 8166, 4.5.3)");
}

/* A Write chunk for the data, and a Reply chunk for the rest. */
static void both_chunks(void)
{
	struct segment write = segment_of(&region, 0, 5000);
	struct segment back = segment_of(&region, 8192, 5000);
	uint32_t length, body_length = 0;
	struct xdr body;

	fresh_region();
	call_read(&call, DATA, 0, 3001);
	header_add_write(&call.header, &write, 1);
	header_set_reply(&call.header, &back, 1);
	expect_data(0, 0, 3001);
	if (call_do(&c, &call, &reply)) {
		filled(0, 3001);
		length = chunk_length(&reply.header.reply);
		body = xdr_of(region.bytes + 8192, back.length);
		if (rpc_reply(&body, call.header.xid, ACCEPT_SUCCESS) && file_results(&body, 4) &&
		    read_result(&body, 3001) && result_type(&body, TYPE_FILE))
			body_length = body.at;
		memcpy(region_wanted(&region, body.bytes), body.bytes, body_length);
		tap_check(length == body_length + xdr_padded(3001),
			  "the Reply chunk came back with length %u; %u bytes were written, and with "
			  "the data these are %zu", length, body_length,
			  body_length + xdr_padded(3001));
	}
	region_intact(&region, "the chunks");
	tap_point("with a Write chunk, the length of the Reply chunk includes the data that are in the "
		  "Write chunk (deviates from RFC 8166, 4.3.3: shall be what was written)");
}

static void refused_with_the_connection(void)
{
	struct connection_opts opts = plain();
	struct segment segments[3];

	connection_open(&c, &opts);
	region_open(&region, &c, REGION, ALL);
	segments[0] = segment_of(&region, 0, 500);
	segments[1] = segment_of(&region, 1000, 0);
	segments[2] = segment_of(&region, 2000, 5000);
	call_read(&call, DATA, 0, 1000);
	header_add_write(&call.header, segments, 3);
	if (call_send(&c, &call))
		connection_ends(&c);
	region_close(&region, "the Write chunk");
	connection_close(&c);
	tap_point("an empty segment in a Write chunk ends the connection, and nothing is written "
		  "(deviates from RFC 8166, 3.4.3: it has no bytes)");
}

void test_write_chunks(void)
{
	struct connection_opts opts = plain();

	connection_open(&c, &opts);
	region_open(&region, &c, REGION, ALL);
	one_chunk();
	several_chunks();
	unused_chunks();
	small_chunk();
	link_text();
	reply_chunks();
	both_chunks();
	region_close(&region, "the region");
	connection_close(&c);
	refused_with_the_connection();
}
