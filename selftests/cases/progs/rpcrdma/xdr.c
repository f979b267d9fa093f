// SPDX-License-Identifier: GPL-2.0
#include "xdr.h"

#include <endian.h>
#include <string.h>

#include "../common/tap.h"

struct xdr xdr_of(void *bytes, size_t size)
{
	return (struct xdr){ .bytes = bytes, .size = size };
}

size_t xdr_padded(size_t length)
{
	return (length + WORD - 1) & ~(size_t)(WORD - 1);
}

size_t xdr_left(const struct xdr *x)
{
	return x->size - x->at;
}

/* Returns the next `length` bytes, to be written. */
static uint8_t *room(struct xdr *x, size_t length)
{
	uint8_t *here = x->bytes + x->at;

	if (length > xdr_left(x))
		tap_bail("XDR of more than %zu bytes", x->size);
	x->at += length;
	return here;
}

void xdr_patch(struct xdr *x, size_t at, uint32_t value)
{
	value = htobe32(value);
	memcpy(x->bytes + at, &value, sizeof(value));
}

void xdr_put(struct xdr *x, uint32_t value)
{
	room(x, WORD);
	xdr_patch(x, x->at - WORD, value);
}

void xdr_put64(struct xdr *x, uint64_t value)
{
	xdr_put(x, value >> 32);
	xdr_put(x, value);
}

void xdr_put_bytes(struct xdr *x, const void *bytes, size_t length)
{
	uint8_t *to = room(x, xdr_padded(length));

	memset(to, 0, xdr_padded(length));
	if (length)
		memcpy(to, bytes, length);
}

void xdr_put_opaque(struct xdr *x, const void *bytes, size_t length)
{
	xdr_put(x, length);
	xdr_put_bytes(x, bytes, length);
}

void xdr_put_text(struct xdr *x, const char *text)
{
	xdr_put_opaque(x, text, strlen(text));
}

const uint8_t *xdr_get_bytes(struct xdr *x, size_t length)
{
	const uint8_t *here = x->bytes + x->at;

	if (length > xdr_left(x) || xdr_padded(length) > xdr_left(x)) {
		x->failed = true;
		return NULL;
	}
	x->at += xdr_padded(length);
	return here;
}

uint32_t xdr_get(struct xdr *x)
{
	const uint8_t *here = xdr_get_bytes(x, WORD);
	uint32_t value;

	if (!here)
		return 0;
	memcpy(&value, here, sizeof(value));
	return be32toh(value);
}

uint64_t xdr_get64(struct xdr *x)
{
	uint64_t high = xdr_get(x);

	return high << 32 | xdr_get(x);
}

const uint8_t *xdr_get_opaque(struct xdr *x, uint32_t *length)
{
	*length = xdr_get(x);
	return xdr_get_bytes(x, *length);
}
