/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The server's side of RPC-over-RDMA version 1: one connection at a time, the calls that arrive on
 * it, and their replies. Each call is checked against the rules that all calls have in common.
 */
#ifndef SESSION_H
#define SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "../common/pair.h"
#include "../common/region.h"
#include "../rpcrdma/connection.h"
#include "../rpcrdma/header.h"
#include "../rpcrdma/private.h"
#include "../rpcrdma/suite.h"
#include "../rpcrdma/xdr.h"

struct work;

#define STREAM_BYTES ((1 << 20) + (64 << 10))	/* of the longest Payload stream */
#define INLINE_DEFAULT 1024			/* RFC 8166, section 3.3.3 */

/* Which STag of its call a reply invalidates. */
enum invalidate { INVALIDATE_NONE, INVALIDATE_FIRST, INVALIDATE_LAST };

/* How the server behaves. */
struct settings {
	const uint8_t *private;	/* of the answer to a connection request */
	uint8_t private_length;
	uint32_t call_limit;	/* the inline threshold of calls that `private` sets */
	uint32_t reply_limit;	/* that of replies */
	uint32_t credits;	/* that replies grant */
	enum invalidate invalidate;
	bool short_replies;	/* if possible, in spite of a Reply chunk */
	uint32_t piece;		/* longest RDMA Write into a chunk (no limit) */
	int rejects;		/* connection requests to be rejected */
};

extern struct settings settings;

/* Sets RFC 8797's private data: sizes in bytes, and the flags. Sets the thresholds, too. */
void settings_private(uint32_t send, uint32_t receive, uint8_t flags);

/* Sets no private data. */
void settings_no_private(void);

/* Sets all other settings to their defaults. */
void settings_reset(void);

/* The state of the server. */
struct session {
	bool open;			/* there is a connection */
	struct connection connection;
	struct region arena;		/* registered with it, for RDMA operations */
	int accepted, ended;		/* connections so far */

	/* What the client gave with its last connection request. */
	struct private private;
	uint8_t private_length;
	uint8_t reads, own_reads;	/* Reads that the client allows, and that it wants to do */

	/* On this connection: calls without a reply, and the most that were granted. */
	uint32_t in_flight, granted;
};

extern struct session session;

/* Listens on PORT of an address. Ends the program on failure. */
void session_listen(const struct side *side);

/* Ends the connection, if there is one, and ceases to listen. */
void session_close(void);

/* Ends the connection. */
void session_disconnect(void);

/* Serves until the client has ended the connection. Fails a check if it does not. */
bool session_ended(void);

/* --- calls */

/* A call: its message, and what that says without its Read chunks. */
struct request {
	struct message message;
	struct header header;
	int connection;			/* `session.accepted` when it arrived */
	uint32_t xid, program, version, procedure;	/* of the RPC message */
};

/*
 * Accepts connections and takes a call. Returns false without a call when `work` (if not NULL) is
 * done, or after `ms`.
 */
bool call_within(struct request *request, const struct work *work, int ms);

/* Makes the call's whole Payload stream, by RDMA Reads, and positions it at the arguments. */
bool call_pull(const struct request *request, struct xdr *arguments);

/* Appends the start of a reply that accepts a call: up to the results. */
void reply_begin(struct xdr *body, const struct request *request);

/* --- replies */

/* A reply: its Payload stream, with at most one data item that may be reduced. */
struct payload {
	struct xdr body;
	bool has_item;
	size_t item;			/* its position */
	uint32_t item_length;
	uint8_t bytes[STREAM_BYTES];
};

void payload_begin(struct payload *payload);

/*
 * Sends a reply as the settings say: the data item goes into the first Write chunk, a long Payload
 * stream into the Reply chunk.
 */
bool reply(const struct request *request, const struct payload *payload);

/* Begins the header of such a reply: no chunk is used. */
void reply_header(struct header *header, const struct request *request);

/* Writes into a chunk of the call, and sets the lengths of the one in the reply. */
bool chunk_fill(const struct chunk *offered, struct chunk *back, const uint8_t *bytes,
		uint32_t length);

/* Sends a message that completes a call. `stag`: to be invalidated, or 0. */
bool answer(const void *bytes, size_t length, uint32_t stag);

/* Sends a message that completes none. */
bool session_send(const void *bytes, size_t length);

/*
 * Returns an STag of the call: the first or the last in its chunk lists, 0 if there is none. Not
 * that of the segment for roundup, which other calls have, too.
 */
uint32_t first_stag(const struct request *request);
uint32_t last_stag(const struct request *request);

/* --- the client's memory. These fail a check if the client does not permit it. */

bool client_read(const struct segment *segment, uint8_t *to);
bool client_write(const struct segment *segment, const uint8_t *bytes, uint32_t length);

/*
 * Reads or writes a segment that the client must protect. Checks that the client ends the
 * connection by a Terminate.
 */
bool client_refuses(enum ibv_wr_opcode opcode, const struct segment *segment);

#endif
