/* SPDX-License-Identifier: GPL-2.0 */
/* Messages of 9P2000.L: little-endian numbers, and strings with a length of two bytes. */
#ifndef P9_MESSAGE_H
#define P9_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* Types of requests. Each reply has the next number. */
enum {
	RLERROR = 7,
	TSTATFS = 8,
	TLOPEN = 12,
	TLCREATE = 14,
	TSYMLINK = 16,
	TREADLINK = 22,
	TGETATTR = 24,
	TSETATTR = 26,
	TREADDIR = 40,
	TFSYNC = 50,
	TMKDIR = 72,
	TRENAMEAT = 74,
	TUNLINKAT = 76,
	TVERSION = 100,
	TATTACH = 104,
	TFLUSH = 108,
	TWALK = 110,
	TREAD = 116,
	TWRITE = 118,
	TCLUNK = 120,
};

/* Bytes of a header: length, type, tag. */
#define P9_HEADER 7
/* Bytes of a name, with its end. */
#define P9_NAME 256

/* Part of a message that is read or written front to back. */
struct message {
	uint8_t *at, *end;
	bool overrun;
};

/* Reading: 0, NULL or "" behind the end, which sets `overrun`. */
uint8_t get8(struct message *m);
uint16_t get16(struct message *m);
uint32_t get32(struct message *m);
uint64_t get64(struct message *m);
const uint8_t *get_bytes(struct message *m, size_t length);
/* Copies a string of at most `size` - 1 bytes; a longer one, or one with a 0, sets `overrun`. */
void get_string(struct message *m, char *to, size_t size);

/* Writing. Behind the end nothing is written, and `overrun` is set. */
void put8(struct message *m, uint8_t value);
void put16(struct message *m, uint16_t value);
void put32(struct message *m, uint32_t value);
void put64(struct message *m, uint64_t value);
void put_string(struct message *m, const char *text);
/* Returns the place of `length` bytes for the caller to fill, or NULL. */
uint8_t *put_room(struct message *m, size_t length);
/* Writes what identifies a file. */
void put_qid(struct message *m, const struct stat *st);

#endif
