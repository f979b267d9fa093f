/* SPDX-License-Identifier: GPL-2.0 */
/* What the tests share: the server, its files, and calls on them. Each test writes its points. */
#ifndef TESTS_H
#define TESTS_H

#include "../common/region.h"
#include "../rpcrdma/suite.h"
#include "call.h"
#include "connect.h"

extern const char *server, *server6;

/* The options of a connection without private data. */
struct connection_opts plain(void);

/* The server's files: the constant content of DATA, SINK to write to, a link with a text of x. */
#define DATA "data"
#define DATA_BYTES 65536
#define SINK "sink"
#define LINK "link"
#define LINK_BYTES 1001

void data_copy(uint8_t *to, size_t offset, size_t length);

/* Makes a region that is registered with a connection's PD. */
void region_open(struct region *region, struct connection *c, size_t length, int access);

/* Checks a region and frees it. */
void region_close(struct region *region, const char *name);

/* Makes a COMPOUND: PUTROOTFH, LOOKUP of SINK, WRITE, GETATTR. */
void call_write(struct call *call, uint64_t offset, const void *bytes, uint32_t length);

/* Does such a call, and checks the reply, but not the file. */
bool write_done(struct connection *c, const struct call *call, uint32_t length);

/* Takes its results. */
bool write_results(struct xdr *body, uint32_t length);

/* Makes a COMPOUND: PUTROOTFH, LOOKUP, READ, GETATTR. */
void call_read(struct call *call, const char *file, uint64_t offset, uint32_t count);

/* Takes the results of PUTROOTFH and LOOKUP in a COMPOUND with a number of operations. */
bool file_results(struct xdr *body, uint32_t operations);

/* Takes the result of a READ up to the data, which are `count` bytes. */
bool read_result(struct xdr *body, uint32_t count);

/* Reads from SINK by a Write chunk, and checks the bytes. */
bool sink_holds(struct connection *c, uint64_t offset, const void *bytes, uint32_t length);

void test_headers(void);
void test_read_chunks(void);
void test_write_chunks(void);
void test_protection(void);
void test_sizes(void);
void test_invalidation(void);
void test_sequences(void);
void test_back_channel(void);

#endif
