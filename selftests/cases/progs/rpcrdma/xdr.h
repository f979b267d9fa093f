/* SPDX-License-Identifier: GPL-2.0 */
/* XDR (RFC 4506): big-endian words, and bytes that are padded to words. */
#ifndef XDR_H
#define XDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WORD 4u

/* A stream in a buffer, at a position. */
struct xdr {
	uint8_t *bytes;
	size_t at, size;
	bool failed;		/* a read went past the end */
};

struct xdr xdr_of(void *bytes, size_t size);

/* Rounds up to words. */
size_t xdr_padded(size_t length);

/* These append. They end the program if the buffer is full: its size is the program's own choice. */
void xdr_put(struct xdr *x, uint32_t value);
void xdr_put64(struct xdr *x, uint64_t value);
void xdr_put_bytes(struct xdr *x, const void *bytes, size_t length);
void xdr_put_opaque(struct xdr *x, const void *bytes, size_t length);
void xdr_put_text(struct xdr *x, const char *text);

/* Overwrites a word. */
void xdr_patch(struct xdr *x, size_t at, uint32_t value);

/*
 * These take the next item, and skip its padding. Past the end they return 0 or NULL and set
 * `failed`.
 */
uint32_t xdr_get(struct xdr *x);
uint64_t xdr_get64(struct xdr *x);
const uint8_t *xdr_get_bytes(struct xdr *x, size_t length);
const uint8_t *xdr_get_opaque(struct xdr *x, uint32_t *length);

/* Returns the number of bytes behind the position. */
size_t xdr_left(const struct xdr *x);

#endif
