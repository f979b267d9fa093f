// SPDX-License-Identifier: GPL-2.0
#include "message.h"

#include <string.h>

enum { QID_FOLDER = 0x80, QID_LINK = 0x02, QID_FILE = 0 };

static uint8_t *take(struct message *m, size_t length)
{
	uint8_t *at = m->at;

	if (m->overrun || (size_t)(m->end - m->at) < length) {
		m->overrun = true;
		return NULL;
	}
	m->at += length;
	return at;
}

static uint64_t get(struct message *m, size_t length)
{
	const uint8_t *at = take(m, length);
	uint64_t value = 0;

	for (size_t i = 0; at && i < length; i++)
		value |= (uint64_t)at[i] << 8 * i;
	return value;
}

uint8_t get8(struct message *m)
{
	return get(m, 1);
}

uint16_t get16(struct message *m)
{
	return get(m, 2);
}

uint32_t get32(struct message *m)
{
	return get(m, 4);
}

uint64_t get64(struct message *m)
{
	return get(m, 8);
}

const uint8_t *get_bytes(struct message *m, size_t length)
{
	return take(m, length);
}

void get_string(struct message *m, char *to, size_t size)
{
	size_t length = get16(m);
	const uint8_t *at = take(m, length);

	to[0] = 0;
	if (!at)
		return;
	if (length >= size || memchr(at, 0, length)) {
		m->overrun = true;
		return;
	}
	memcpy(to, at, length);
	to[length] = 0;
}

static void put(struct message *m, uint64_t value, size_t length)
{
	uint8_t *at = take(m, length);

	for (size_t i = 0; at && i < length; i++)
		at[i] = value >> 8 * i;
}

void put8(struct message *m, uint8_t value)
{
	put(m, value, 1);
}

void put16(struct message *m, uint16_t value)
{
	put(m, value, 2);
}

void put32(struct message *m, uint32_t value)
{
	put(m, value, 4);
}

void put64(struct message *m, uint64_t value)
{
	put(m, value, 8);
}

void put_string(struct message *m, const char *text)
{
	size_t length = strlen(text);
	uint8_t *at;

	put16(m, length);
	at = take(m, length);
	if (at)
		memcpy(at, text, length);
}

uint8_t *put_room(struct message *m, size_t length)
{
	return take(m, length);
}

void put_qid(struct message *m, const struct stat *st)
{
	put8(m, S_ISDIR(st->st_mode) ? QID_FOLDER : S_ISLNK(st->st_mode) ? QID_LINK : QID_FILE);
	put32(m, 0);
	put64(m, st->st_ino);
}
