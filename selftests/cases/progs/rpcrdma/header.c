// SPDX-License-Identifier: GPL-2.0
#include "header.h"

#include <inttypes.h>
#include <string.h>

#include "../common/tap.h"

static void put_segment(struct xdr *x, const struct segment *segment)
{
	xdr_put(x, segment->handle);
	xdr_put(x, segment->length);
	xdr_put64(x, segment->offset);
}

static void get_segment(struct xdr *x, struct segment *segment)
{
	segment->handle = xdr_get(x);
	segment->length = xdr_get(x);
	segment->offset = xdr_get64(x);
}

static void put_chunk(struct xdr *x, const struct chunk *chunk)
{
	xdr_put(x, true);
	xdr_put(x, chunk->count);
	for (uint32_t i = 0; i < chunk->count; i++)
		put_segment(x, &chunk->segments[i]);
}

static bool get_chunk(struct xdr *x, struct chunk *chunk)
{
	chunk->count = xdr_get(x);
	if (!tap_check(chunk->count <= MAX_SEGMENTS, "a chunk of %u segments", chunk->count))
		return false;
	for (uint32_t i = 0; i < chunk->count; i++)
		get_segment(x, &chunk->segments[i]);
	return true;
}

void header_put(struct xdr *x, const struct header *header)
{
	xdr_put(x, header->xid);
	xdr_put(x, header->version);
	xdr_put(x, header->credit);
	xdr_put(x, header->procedure);
	for (int i = 0; i < header->reads; i++) {
		xdr_put(x, true);
		xdr_put(x, header->read[i].position);
		put_segment(x, &header->read[i].segment);
	}
	xdr_put(x, false);
	for (int i = 0; i < header->writes; i++)
		put_chunk(x, &header->write[i]);
	xdr_put(x, false);
	if (header->has_reply)
		put_chunk(x, &header->reply);
	else
		xdr_put(x, false);
}

/* Takes the word in front of an entry of a list: whether there is one. */
static bool get_present(struct xdr *x)
{
	uint32_t present = xdr_get(x);

	if (present > 1) {
		x->failed = true;
		return false;
	}
	return present;
}

static bool get_lists(struct xdr *x, struct header *header)
{
	while (get_present(x)) {
		int i = header->reads++;

		if (!tap_check(i < MAX_READ_SEGMENTS, "more than %d Read segments", i))
			return false;
		header->read[i].position = xdr_get(x);
		get_segment(x, &header->read[i].segment);
	}
	while (get_present(x)) {
		int i = header->writes++;

		if (!tap_check(i < MAX_WRITE_CHUNKS, "more than %d Write chunks", i) ||
		    !get_chunk(x, &header->write[i]))
			return false;
	}
	header->has_reply = get_present(x);
	return !header->has_reply || get_chunk(x, &header->reply);
}

static void get_error(struct xdr *x, struct header *header)
{
	header->error = xdr_get(x);
	if (header->error == ERR_VERS) {
		header->low = xdr_get(x);
		header->high = xdr_get(x);
	}
}

bool header_get(struct xdr *x, struct header *header)
{
	memset(header, 0, sizeof(*header));
	header->xid = xdr_get(x);
	header->version = xdr_get(x);
	header->credit = xdr_get(x);
	header->procedure = xdr_get(x);
	if (header->procedure == RDMA_ERROR)
		get_error(x, header);
	else if (!tap_check(header->procedure <= RDMA_NOMSG, "procedure %u in a message",
			    header->procedure) ||
		 !get_lists(x, header))
		return false;
	return tap_check(!x->failed, "the header of a message of %zu bytes does not end", x->size);
}

struct segment segment_of(const struct region *region, size_t at, uint32_t length)
{
	return (struct segment){
		.handle = region->mr->rkey,
		.length = length,
		.offset = (uintptr_t)region->bytes + at,
	};
}

void header_add_read(struct header *header, uint32_t position, struct segment segment)
{
	if (header->reads == MAX_READ_SEGMENTS)
		tap_bail("more than %d Read segments", MAX_READ_SEGMENTS);
	header->read[header->reads].position = position;
	header->read[header->reads++].segment = segment;
}

static struct chunk chunk_of(const struct segment *segments, int count)
{
	struct chunk chunk = { .count = count };

	if (count > MAX_SEGMENTS)
		tap_bail("more than %d segments", MAX_SEGMENTS);
	for (int i = 0; i < count; i++)
		chunk.segments[i] = segments[i];
	return chunk;
}

void header_add_write(struct header *header, const struct segment *segments, int count)
{
	if (header->writes == MAX_WRITE_CHUNKS)
		tap_bail("more than %d Write chunks", MAX_WRITE_CHUNKS);
	header->write[header->writes++] = chunk_of(segments, count);
}

void header_set_reply(struct header *header, const struct segment *segments, int count)
{
	header->has_reply = true;
	header->reply = chunk_of(segments, count);
}

uint32_t chunk_length(const struct chunk *chunk)
{
	uint32_t length = 0;

	for (uint32_t i = 0; i < chunk->count; i++)
		length += chunk->segments[i].length;
	return length;
}

bool chunk_filled(const struct chunk *back, const struct chunk *offered, uint32_t length)
{
	uint32_t left = length;

	if (!tap_check(back->count == offered->count, "%u segments came back, wanted %u", back->count,
		       offered->count))
		return false;
	for (uint32_t i = 0; i < back->count; i++) {
		const struct segment *got = &back->segments[i], *gave = &offered->segments[i];
		uint32_t part = left < gave->length ? left : gave->length;

		if (!tap_check(got->handle == gave->handle && got->offset == gave->offset,
			       "segment %u came back with handle %#x, offset %#" PRIx64
			       ", wanted %#x, %#" PRIx64, i, got->handle, got->offset, gave->handle,
			       gave->offset) ||
		    !tap_check(got->length == part, "segment %u of %u bytes came back with length %u,"
			       " wanted %u", i, gave->length, got->length, part))
			return false;
		left -= part;
	}
	return tap_check(!left, "%u of %u bytes do not fit into the chunk", left, length);
}
