// SPDX-License-Identifier: GPL-2.0
/*
 * What the client offers for results: Write chunks and Reply chunks; and how it takes results. That
 * there is room for the longest result is checked where the calls are done.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "../common/tap.h"
#include "tests.h"

#define MIB (1 << 20)
#define BYTES (2 * MIB)
#define PAD WORD	/* bytes of the segment for roundup */

static struct request request;
static struct payload payload;
static struct nfs_call call;
static struct region buffer;
static struct work work;
static struct file *file;
static int fd;

static void begin(void)
{
	file = file_make("data", BYTES);
	client_mount(NULL);
	fd = client_open("data", O_RDONLY | O_DIRECT);
}

static void end(void)
{
	client_close(fd);
	client_unmount();
}

/* Starts to read into a buffer at an offset into a page. Keeps the READ in `request`. */
static bool start(size_t length, size_t page_offset, uint64_t offset)
{
	buffer_open(&buffer, length, page_offset);
	start_read(&work, fd, &buffer, offset);
	return call_of(&request, &work, NFS_READ);
}

/* Ends it, and expects the bytes that are in the file. */
static void finish(uint64_t offset, size_t length)
{
	if (ends_with(&work, length))
		buffer_expect(&buffer, file, offset, length);
	buffer_close(&buffer);
}

/* Does a READ. */
static void read_call(size_t length, size_t page_offset, uint64_t offset)
{
	if (start(length, page_offset, offset))
		nfs_serve(&request);
	finish(offset, length);
}

/* Returns the number of segments for the data, without the one for roundup. */
static uint32_t data_segments(uint32_t length)
{
	return request.header.write[0].count - (length % WORD != 0);
}

/* Checks that the call has one Write chunk, with as many bytes for the data, and no Reply chunk. */
static bool has_write_chunk(uint32_t length)
{
	const struct header *h = &request.header;
	uint32_t room = 0;

	if (!tap_check(h->writes == 1 && !h->has_reply, "%u bytes: %d Write chunks, a Reply chunk: %d",
		       length, h->writes, h->has_reply))
		return false;
	for (uint32_t i = 0; i < data_segments(length); i++)
		room += h->write[0].segments[i].length;
	return tap_check(room == length, "segments of %u bytes for a READ of %u", room, length);
}

static const struct {
	uint32_t length, page_offset;
} whole[] = { { 4096, 0 }, { 8192, 0 }, { 65536, 0 }, { 6000, 100 }, { 100000, 2004 }, { MIB, 0 },
	      { MIB, 512 } },
odd[] = { { 4097, 0 }, { 4098, 0 }, { 4099, 1 }, { 10001, 4095 }, { MIB - 1, 3 } };

static void write_chunks(void)
{
	const struct chunk *chunk = &request.header.write[0];
	const struct segment *last;
	int i;

	read_call(1000, 10, 5);
	tap_check(!request.header.writes && !request.header.has_reply, "the call has chunks");
	tap_point("a READ whose result fits into a message offers no chunk (RFC 8166, 4.3.2.3, 4.3.3)");

	for (i = 0; i < COUNT(whole); i++) {
		read_call(whole[i].length, whole[i].page_offset, i);
		has_write_chunk(whole[i].length);
	}
	tap_point("a long READ offers one Write chunk of its length, and takes the data from there "
		  "(RFC 8166, 3.4.6)");

	for (i = 0; i < COUNT(odd); i++) {
		read_call(odd[i].length, odd[i].page_offset, i);
		if (!has_write_chunk(odd[i].length))
			break;
		last = &chunk->segments[chunk->count - 1];
		tap_check(chunk->count > 1 && last->length == PAD, "%u segments, the last of %u bytes",
			  chunk->count, last->length);
	}
	tap_point("a Write chunk has 4 more bytes if the READ is no multiple of 4 "
		  "(deviates from RFC 8166, 3.4.6.2: no space for roundup should be there)");

	settings.piece = 3000;
	for (i = 0; i < 4; i++)
		read_call(20000 + i, 10 * i, 7);
	settings.piece = 0;
	tap_point("a Write chunk may be written in any number of RDMA Writes (RFC 8166, 3.4.6)");
}

static void short_results(void)
{
	static const uint32_t lengths[] = { 0, 1, 2, 3, 4, 4095, 8191 };

	for (int i = 0; i < COUNT(lengths); i++) {
		if (start(8192, 100, BYTES - lengths[i]))
			nfs_serve(&request);
		finish(BYTES - lengths[i], lengths[i]);
	}
	tap_point("a Write chunk need not be filled, or used (RFC 8166, 3.4.6, 4.3.2.2)");

	/* The client asks again for the rest. */
	if (start(20000, 0, 0) && nfs_do(&request, &call, &payload)) {
		struct header header;
		uint8_t bytes[SEND_BYTES];
		struct xdr x = xdr_of(bytes, sizeof(bytes));

		reply_header(&header, &request);
		/* The start of the results up to the count, no end of file, and the count again. */
		xdr_patch(&payload.body, payload.item - 3 * WORD, 12000);
		xdr_patch(&payload.body, payload.item - 2 * WORD, false);
		xdr_patch(&payload.body, payload.item - WORD, 12000);
		if (chunk_fill(&request.header.write[0], &header.write[0],
			       payload.bytes + payload.item, 12000)) {
			header_put(&x, &header);
			xdr_put_bytes(&x, payload.bytes, payload.item);
			answer(bytes, x.at, 0);
		}
	}
	if (call_of(&request, &work, NFS_READ)) {
		nfs_do(&request, &call, &payload);
		tap_check(call.offset == 12000 && call.length == 8000, "a READ of %u bytes",
			  call.length);
		reply(&request, &payload);
	}
	finish(0, 20000);
	tap_point("after a short result the client reads the rest");
}

/* Makes a reply in RDMA_MSG with the data inline, and the Write chunk unused. */
static void inline_data(void)
{
	uint8_t bytes[SEND_BYTES];
	struct xdr x = xdr_of(bytes, sizeof(bytes));
	struct header header;

	/* The end of the file, so that the reply is short. Padding would go into the buffer, too. */
	if (start(8192, 0, BYTES - 2000) && nfs_do(&request, &call, &payload)) {
		reply_header(&header, &request);
		header_put(&x, &header);
		xdr_put_bytes(&x, payload.bytes, payload.body.at);
		answer(bytes, x.at, 0);
	}
	finish(BYTES - 2000, 2000);
	tap_point("a result that is inline although there is a Write chunk is taken "
		  "(deviates from RFC 8166, 6.1: the call shall fail)");
}

static void offsets(void)
{
	const struct chunk *chunk = &request.header.write[0];

	read_call(20000, 100, 0);
	for (uint32_t i = 0; i < data_segments(20000); i++)
		tap_check(chunk->segments[i].offset >> 32 == request.header.xid,
			  "offset %#llx of XID %#x", (unsigned long long)chunk->segments[i].offset,
			  request.header.xid);
	tap_point("the offset of a segment has the call's XID in its upper half (Linux)");
}

/* --- Reply chunks */

#define TEXT_BYTES 3001

static char text[TEXT_BYTES + 1], got[TEXT_BYTES + 100];

/* Reads a new symbolic link. Keeps the READLINK in `request`. */
static void read_text(void)
{
	static int links;
	char name[NAME_BYTES];

	snprintf(name, sizeof(name), "link%d", links++);
	memset(text, 'x', TEXT_BYTES);
	text[TEXT_BYTES - 1] = 'y';
	link_make(name, text, TEXT_BYTES);
	memset(got, 0, sizeof(got));
	work = (struct work){ .run = run_readlink, .path = path_of(name), .bytes = got,
			      .length = sizeof(got) };
	work_start(&work);
	if (call_of(&request, &work, NFS_READLINK)) {
		tap_check(request.header.has_reply && !request.header.writes,
			  "%d Write chunks, a Reply chunk: %d", request.header.writes,
			  request.header.has_reply);
		nfs_serve(&request);
	}
	if (ends_with(&work, TEXT_BYTES))
		tap_check(!strcmp(got, text), "another text arrived");
}

static void reply_chunks(void)
{
	char name[NAME_BYTES];

	read_text();
	tap_point("a READLINK offers a Reply chunk, and takes a Long Reply (RFC 8166, 3.5.3, 4.3.3)");

	settings.short_replies = true;
	read_text();
	settings.short_replies = false;
	tap_point("a Reply chunk need not be used (RFC 8166, 4.3.3)");

	settings.piece = 700;
	read_text();
	settings.piece = 0;
	tap_point("a Reply chunk may be written in any number of RDMA Writes (RFC 8166, 3.5.3)");

	for (int i = 0; i < 400; i++) {
		snprintf(name, sizeof(name), "a file with a name of some length %d", i);
		file_make(name, 0);
	}
	work = (struct work){ .run = run_list, .path = folder };
	work_start(&work);
	ends_with(&work, files_listed());
	tap_point("READDIR offers a Reply chunk for the longest result (RFC 8166, 4.3.3)");
}

static void small_thresholds(void)
{
	settings_no_private();
	begin();
	read_call(600, 0, 0);
	tap_check(!request.header.writes && !request.header.has_reply, "600 bytes: a chunk");
	read_call(1000, 0, 0);
	has_write_chunk(1000);
	read_text();
	end();
	settings_private(1024, 4096, R);
	begin();
	read_call(1000, 0, 0);
	has_write_chunk(1000);
	end();
	settings_reset();
	tap_point("the client offers chunks for results that are longer than the server's send "
		  "size, 1024 if it gives none (RFC 8166, 3.3.3; RFC 8797, 4.2)");
}

void test_results(void)
{
	begin();
	write_chunks();
	short_results();
	inline_data();
	offsets();
	reply_chunks();
	end();
	small_thresholds();
}
