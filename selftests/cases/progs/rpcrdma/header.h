/* SPDX-License-Identifier: GPL-2.0 */
/* The headers of RPC-over-RDMA version 1 (RFC 8166, section 4). */
#ifndef HEADER_H
#define HEADER_H

#include <stdbool.h>
#include <stdint.h>

#include "../common/region.h"
#include "xdr.h"

enum procedure { RDMA_MSG, RDMA_NOMSG, RDMA_MSGP, RDMA_DONE, RDMA_ERROR };
enum rdma_error { ERR_VERS = 1, ERR_CHUNK = 2 };

#define VERSION 1
#define SHORTEST 28		/* a header without chunks */

#define MAX_READ_SEGMENTS 32
#define MAX_WRITE_CHUNKS 4
#define MAX_SEGMENTS 8

struct segment {
	uint32_t handle, length;
	uint64_t offset;
};

/* Of a Write chunk, or the Reply chunk. */
struct chunk {
	uint32_t count;
	struct segment segments[MAX_SEGMENTS];
};

struct header {
	uint32_t xid, version, credit, procedure;

	/* RDMA_MSG, RDMA_NOMSG */
	int reads, writes;
	struct {
		uint32_t position;
		struct segment segment;
	} read[MAX_READ_SEGMENTS];
	struct chunk write[MAX_WRITE_CHUNKS];
	bool has_reply;
	struct chunk reply;

	/* RDMA_ERROR */
	uint32_t error, low, high;
};

void header_put(struct xdr *x, const struct header *header);

/* Takes a header. Returns false, and fails a check, if it cannot be parsed. */
bool header_get(struct xdr *x, struct header *header);

/* Returns the segment for a part of a region. */
struct segment segment_of(const struct region *region, size_t at, uint32_t length);

/* These append to the chunk lists. */
void header_add_read(struct header *header, uint32_t position, struct segment segment);
void header_add_write(struct header *header, const struct segment *segments, int count);
void header_set_reply(struct header *header, const struct segment *segments, int count);

/* Returns the number of bytes in all segments of a chunk. */
uint32_t chunk_length(const struct chunk *chunk);

/*
 * Checks that a chunk has come back as it was offered, with `length` bytes in it: segment after
 * segment filled, the rest empty (RFC 8166, section 3.4.6).
 */
bool chunk_filled(const struct chunk *back, const struct chunk *offered, uint32_t length);

#endif
