/* SPDX-License-Identifier: GPL-2.0 */
/* Calls of RPC (RFC 5531) and NFS version 4 (RFC 7530, RFC 8881), with chunks, and their replies. */
#ifndef CALL_H
#define CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "../common/region.h"
#include "../rpcrdma/connection.h"
#include "../rpcrdma/header.h"
#include "../rpcrdma/xdr.h"

#define CALL_BYTES (64 << 10)
#define MAX_ITEMS 4

enum operation {
	OP_CREATE = 6, OP_GETATTR = 9, OP_LOOKUP = 15, OP_PUTROOTFH = 24, OP_READ = 25,
	OP_READLINK = 27, OP_REMOVE = 28, OP_SAVEFH = 32, OP_WRITE = 38, OP_EXCHANGE_ID = 42,
	OP_CREATE_SESSION = 43, OP_SEQUENCE = 53, OP_COPY = 60,
};

#define NFS4ERR_IO 5

enum accept { ACCEPT_SUCCESS, ACCEPT_PROG_UNAVAIL, ACCEPT_GARBAGE_ARGS = 4 };

/* A data item of a call that may be reduced. */
struct item {
	uint32_t position, length;	/* in the unreduced Payload stream, without padding */
	bool reduced;
};

struct call {
	struct header header;
	struct xdr body;		/* the unreduced Payload stream */
	uint8_t bytes[CALL_BYTES];
	size_t count_at;		/* in `body`: the number of operations */
	uint32_t operations;
	struct item items[MAX_ITEMS];
	int count;
};

/* --- making calls. Each starts with a new XID and no chunks. */

void call_null(struct call *call);
void call_compound(struct call *call, uint32_t minor);

/* Starts a call of any RPC program: the header, to be followed by the arguments. */
void call_rpc(struct call *call, uint32_t program, uint32_t version, uint32_t procedure);

/* Gives a call another XID. */
void call_set_xid(struct call *call, uint32_t xid);

/* Append operations to a COMPOUND. */
void op_plain(struct call *call, enum operation op);
void op_name(struct call *call, enum operation op, const char *name);
void op_type(struct call *call);			/* GETATTR of the type */
void op_read(struct call *call, uint64_t offset, uint32_t count);
void op_write(struct call *call, uint64_t offset, const void *bytes, uint32_t length);
void op_symlink(struct call *call, const char *name, const char *text);

/* PUTROOTFH, LOOKUP */
void op_file(struct call *call, const char *name);

/* Stores bytes into a region, where they are then expected. */
void region_store(struct region *region, size_t at, const void *bytes, size_t length);

/* Takes an item out of the Payload stream, with its padding. Returns it. */
const struct item *call_reduce(struct call *call, int item);

/*
 * Moves an item into a Read chunk of one segment at `at` in the region, without padding. Returns
 * the end of that segment.
 */
size_t call_move(struct call *call, int item, struct region *region, size_t at);

/* Stores the Payload stream without what is reduced into a region. Returns its length. */
uint32_t call_store(const struct call *call, struct region *region, size_t at);

/* Appends what RDMA_MSG has behind the header. */
void call_put_body(struct xdr *x, const struct call *call);

/* --- sending and receiving. These fail a check and return false if not all is as it should be. */

struct reply {
	struct message message;
	struct header header;
	struct xdr body;		/* the Payload stream in the message */
};

bool call_send(struct connection *c, const struct call *call);

/*
 * Takes an answer, and checks what all answers have in common: it grants credits, and has no Read
 * list (RFC 8166, sections 3.3.1 and 4.3.1).
 */
bool reply_next(struct connection *c, struct reply *reply);

/*
 * Sends a call and takes the reply: RDMA_NOMSG if the call has a Reply chunk, otherwise RDMA_MSG
 * that accepts the call.
 */
bool call_do(struct connection *c, const struct call *call, struct reply *reply);

/* Takes an RPC reply up to the results. */
bool rpc_reply(struct xdr *body, uint32_t xid, enum accept accept);

/* Takes the start of the results of a COMPOUND with a number of operations, all successful. */
bool compound_results(struct xdr *body, uint32_t operations);

/* Checks that a COMPOUND has failed. */
bool compound_fails(struct xdr *body);

/* Takes the start of the result of an operation. */
bool result_of(struct xdr *body, enum operation op);

/* Takes the whole result of GETATTR of the type. */
bool result_type(struct xdr *body, uint32_t type);

#define TYPE_FILE 1
#define TYPE_FOLDER 2

/* Takes an answer and checks that it is RDMA_ERROR. */
bool refused(struct connection *c, uint32_t xid, uint32_t version, enum rdma_error error);

/* Checks that the connection still works. */
bool works(struct connection *c);

#endif
