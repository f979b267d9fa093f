/* SPDX-License-Identifier: GPL-2.0 */
/* The private data of RFC 8797. */
#ifndef PRIVATE_H
#define PRIVATE_H

#include <stdint.h>
#include <string.h>

#include "xdr.h"

#define PRIVATE_BYTES 8
#define MAGIC 0xf6ab0e18
#define R 1			/* the flag: remote invalidation is supported */

struct private {
	uint32_t magic;
	uint8_t version, flags, send, receive;
};

static inline void private_put(uint8_t *to, struct private private)
{
	struct xdr x = xdr_of(to, PRIVATE_BYTES);

	xdr_put(&x, private.magic);
	to[4] = private.version;
	to[5] = private.flags;
	to[6] = private.send;
	to[7] = private.receive;
}

static inline struct private private_get(uint8_t *from)
{
	struct xdr x = xdr_of(from, PRIVATE_BYTES);

	return (struct private){
		.magic = xdr_get(&x),
		.version = from[4],
		.flags = from[5],
		.send = from[6],
		.receive = from[7],
	};
}

/* Returns the number of bytes that a size stands for. */
static inline uint32_t size_decoded(uint8_t size)
{
	return (size + 1u) * 1024;
}

#endif
