// SPDX-License-Identifier: GPL-2.0
/* What the client does with errors, and with replies that are wrong. */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>

#include "../common/clock.h"
#include "../common/tap.h"
#include "rpc.h"
#include "tests.h"

#define FILE_LENGTH 100000
#define BYTES 8000
#define RACES 20
#define OTHER_XID 0x00f00000	/* changes an XID to one that the client does not use */

static struct request request, again;
static struct payload payload;
static struct nfs_call call;
static struct region buffer;
static struct work work;
static struct file *file;
static int fd;

/* A message in the making. */
static uint8_t bytes[SEND_BYTES];
static struct xdr message;

static void start_message(uint32_t xid, uint32_t version, uint32_t procedure)
{
	message = xdr_of(bytes, sizeof(bytes));
	xdr_put(&message, xid);
	xdr_put(&message, version);
	xdr_put(&message, settings.credits);
	xdr_put(&message, procedure);
}

static void put_words(int count, const uint32_t *words)
{
	for (int i = 0; i < count; i++)
		xdr_put(&message, words[i]);
}

/* Appends empty chunk lists. */
static void put_no_chunks(void)
{
	put_words(3, (const uint32_t[]){ 0, 0, 0 });
}

/* Appends the RPC reply to `request`. */
static void put_payload(void)
{
	nfs_do(&request, &call, &payload);
	xdr_put_bytes(&message, payload.bytes, payload.body.at);
}

/* Starts to ask for attributes, and keeps the call in `request`. */
static bool start(void)
{
	start_stat(&work, fd);
	return call_of(&request, &work, NFS_GETATTR);
}

/* Sends `length` bytes of the message, and then the reply. The first shall be discarded. */
static void discarded(size_t length)
{
	session_send(bytes, length);
	if (no_call() && tap_check(!work_done(&work), "the call has ended with %ld", work.result) &&
	    tap_check(session.open, "the connection was lost"))
		nfs_serve(&request);
	ends_with(&work, 0);
}

/*
 * Sends the message, which shall end the call with an error, but not the connection.
 *
 * Linux forgets the error if the message arrives before the client's task sleeps, and sends the
 * call again, on another connection. Then it gets the message again.
 */
static void fails_with(long error)
{
	int before = session.accepted, races = 0;

	answer(bytes, message.at, 0);
	while (races < RACES && call_within(&again, &work, PATIENCE)) {
		if (again.header.xid != request.header.xid) {
			nfs_serve(&again);
			continue;
		}
		request = again;
		races++;
		answer(bytes, message.at, 0);
	}
	if (races)
		tap_note("the call was sent again %d times", races);
	ends_with(&work, error);
	client_works(fd);
	tap_check(session.accepted == before + races, "%d connections after %d errors",
		  session.accepted - before, races + 1);
}

static void errors(void)
{
	if (start()) {
		start_message(request.xid, VERSION, RDMA_ERROR);
		xdr_put(&message, ERR_CHUNK);
		fails_with(-EIO);
	}
	tap_point("ERR_CHUNK ends the call, and not the connection (RFC 8166, 4.5)");

	if (start()) {
		start_message(request.xid, VERSION, RDMA_ERROR);
		put_words(3, (const uint32_t[]){ ERR_VERS, 2, 3 });
		fails_with(-EIO);
	}
	tap_point("ERR_VERS ends the call, and not the connection (RFC 8166, 4.5.1)");

	buffer_open(&buffer, BYTES, 0);
	start_read(&work, fd, &buffer, 0);
	if (call_of(&request, &work, NFS_READ)) {
		start_message(request.xid, VERSION, RDMA_ERROR);
		xdr_put(&message, ERR_CHUNK);
		fails_with(-EIO);
	}
	if (request.header.writes)
		client_refuses(IBV_WR_RDMA_WRITE, &request.header.write[0].segments[0]);
	buffer_close(&buffer);
	client_works(fd);
	tap_point("an error ends the call and the life of its STags (RFC 8166, 4.4.1)");

	if (start()) {
		start_message(request.xid ^ OTHER_XID, VERSION, RDMA_ERROR);
		xdr_put(&message, ERR_CHUNK);
		discarded(message.at);
	}
	tap_point("an error for another XID is discarded (RFC 8166, 4.5)");
}

static void short_messages(void)
{
	static const int lengths[] = { 0, 1, 4, 8, 12, 15 };

	for (int i = 0; i < COUNT(lengths); i++)
		if (start()) {
			start_message(request.xid, VERSION, RDMA_MSG);
			discarded(lengths[i]);
		}
	tap_point("a message of 0 to 15 bytes is discarded (RFC 8166, 4.5)");

	for (int length = 16; length <= 24; length += 4)
		if (start()) {
			start_message(request.xid, VERSION, RDMA_MSG);
			put_no_chunks();
			message.at = length;
			fails_with(-EIO);
		}
	tap_point("a message of 16 to 27 bytes fails the call "
		  "(deviates from RFC 8166, 4.5: shall be discarded)");
}

static void wrong_headers(void)
{
	static const uint32_t versions[] = { 0, 2, 0xffffffff };
	static const uint32_t unknown[] = { 5, 6, 0xffffffff };
	int i;

	for (i = 0; i < COUNT(versions); i++)
		if (start()) {
			start_message(request.xid, versions[i], RDMA_MSG);
			put_no_chunks();
			put_payload();
			discarded(message.at);
		}
	tap_point("a reply of another version is discarded (RFC 8166, 4.5)");

	if (start()) {
		start_message(request.xid ^ OTHER_XID, VERSION, RDMA_MSG);
		put_no_chunks();
		put_payload();
		xdr_patch(&message, SHORTEST, request.xid ^ OTHER_XID);
		discarded(message.at);
	}
	tap_point("a reply with the XID of no call is discarded (RFC 8166, 4.5)");

	if (start()) {
		nfs_serve(&request);
		ends_with(&work, 0);
		start_message(request.xid, VERSION, RDMA_MSG);
		put_no_chunks();
		put_payload();
		session_send(bytes, message.at);
	}
	client_works(fd);
	tap_point("a second reply to a call is discarded (RFC 8166, 4.5)");

	if (start()) {
		start_message(request.xid, VERSION, RDMA_MSG);
		put_no_chunks();
		put_payload();
		xdr_patch(&message, SHORTEST, request.xid ^ OTHER_XID);
		answer(bytes, message.at, 0);
	}
	ends_with(&work, 0);
	tap_point("the client goes by the XID in the header alone (RFC 8166, 4.2.1)");

	for (i = 0; i < COUNT(unknown); i++)
		if (start()) {
			start_message(request.xid, VERSION, unknown[i]);
			put_no_chunks();
			put_payload();
			fails_with(-EIO);
		}
	tap_point("an unknown procedure fails the call (deviates from RFC 8166, 4.5: shall be discarded)");

	if (start()) {
		start_message(request.xid, VERSION, RDMA_MSGP);
		put_words(2, (const uint32_t[]){ 0, 0 });
		put_no_chunks();
		put_payload();
		fails_with(-EIO);
	}
	tap_point("RDMA_MSGP fails the call (deviates from RFC 8166, 4.6.1: shall be discarded)");

	if (start()) {
		start_message(request.xid, VERSION, RDMA_DONE);
		fails_with(-EIO);
	}
	tap_point("RDMA_DONE with the XID of a call fails it "
		  "(deviates from RFC 8166, 4.6.2: shall be discarded)");

	if (start()) {
		start_message(request.xid, VERSION, RDMA_ERROR);
		fails_with(-EIO);
	}
	if (start()) {
		start_message(request.xid, VERSION, RDMA_ERROR);
		xdr_put(&message, 17);
		fails_with(-EIO);
	}
	if (start()) {
		start_message(request.xid, VERSION, RDMA_ERROR);
		put_words(2, (const uint32_t[]){ ERR_VERS, 1 });
		fails_with(-EIO);
	}
	tap_point("an RDMA_ERROR that can not be decoded fails the call "
		  "(deviates from RFC 8166, 4.5: shall be discarded)");
}

/* Chunk lists in replies to GETATTR, each with the words of the lists. */
static void wrong_lists(void)
{
	static const struct {
		uint32_t procedure;
		int count;
		uint32_t words[20];
	} lists[] = {
		/* a Read list */
		{ RDMA_MSG, 9, { 1, 0, 1, 4, 0, 0, 0, 0, 0 } },
		/* two Write chunks */
		{ RDMA_MSG, 15, { 0, 1, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0 } },
		/* a Write chunk that does not end */
		{ RDMA_MSG, 5, { 0, 1, 0xffffffff, 1, 0 } },
		/* a Reply chunk with a length, and the message inline */
		{ RDMA_MSG, 8, { 0, 0, 1, 1, 1, 100, 0, 0 } },
		/* no Reply chunk, an empty one, one that does not end, a Write chunk */
		{ RDMA_NOMSG, 3, { 0, 0, 0 } },
		{ RDMA_NOMSG, 4, { 0, 0, 1, 0 } },
		{ RDMA_NOMSG, 7, { 0, 0, 1, 3, 1, 100, 0 } },
		{ RDMA_NOMSG, 9, { 0, 1, 1, 1, 100, 0, 0, 0, 0 } },
	};

	for (int i = 0; i < COUNT(lists); i++)
		if (start()) {
			start_message(request.xid, VERSION, lists[i].procedure);
			put_words(lists[i].count, lists[i].words);
			/* Behind a list that does not end, there is no RPC message. */
			if (lists[i].procedure == RDMA_MSG && i != 2)
				put_payload();
			fails_with(-EIO);
		}
	tap_point("a reply with chunk lists that it can not have, or that do not end, fails the "
		  "call (deviates from RFC 8166, 4.5: shall be discarded)");
}

/* A reply to READ that says that the chunk has more bytes than there is room for. */
static void too_many_bytes(void)
{
	struct header header;

	buffer_open(&buffer, BYTES, 0);
	start_read(&work, fd, &buffer, 0);
	if (call_of(&request, &work, NFS_READ) && nfs_do(&request, &call, &payload)) {
		reply_header(&header, &request);
		chunk_fill(&request.header.write[0], &header.write[0], payload.bytes + payload.item,
			   BYTES);
		header.write[0].segments[0].length = 10 * BYTES;
		xdr_patch(&payload.body, payload.item - 3 * WORD, 10 * BYTES);
		xdr_patch(&payload.body, payload.item - WORD, 10 * BYTES);
		message = xdr_of(bytes, sizeof(bytes));
		header_put(&message, &header);
		xdr_put_bytes(&message, payload.bytes, payload.item);
		answer(bytes, message.at, 0);
	}
	work_serve(&work);
	tap_note("a READ of %d bytes with a result of %d: %ld", BYTES, 10 * BYTES, work.result);
	tap_check(work.result <= BYTES, "%ld bytes were read", work.result);
	buffer_expect(&buffer, file, 0, BYTES);
	buffer_close(&buffer);
	client_works(fd);
	tap_point("a reply with a larger Write chunk than was offered does the client no harm "
		  "(RFC 8166, 3.4.6)");
}

/* The client posts Receives of the size that its private data say. */
static void long_reply(void)
{
	struct connection *c = &session.connection;
	uint64_t before;

	if (start()) {
		start_message(request.xid, VERSION, RDMA_MSG);
		put_no_chunks();
		put_payload();
		memset(bytes + message.at, 0, sizeof(bytes) - message.at);
		before = terminates(c, RECEIVED);
		connection_send(c, bytes, size_decoded(session.private.receive) + WORD);
		if (connection_ends(c))
			terminated(c, RECEIVED, before);
		session_disconnect();
	}
	ends_with(&work, 0);
	tap_point("a reply that is longer than the client's receive size ends the connection by a "
		  "Terminate; the client calls again (RFC 8166, 3.3.2; RFC 8797, 4.2)");

	if (start()) {
		start_message(request.xid, VERSION, RDMA_MSG);
		put_no_chunks();
		put_payload();
		memset(bytes + message.at, 0, sizeof(bytes) - message.at);
		message.at = size_decoded(session.private.receive);
		answer(bytes, message.at, 0);
	}
	ends_with(&work, 0);
	tap_point("a reply of the client's receive size is taken (RFC 8797, 4.2)");
}

static void rpc_errors(void)
{
	int before = session.accepted;

	start_stat(&work, fd);
	for (int i = 0; i < 3 && call_of(&request, &work, NFS_GETATTR); i++) {
		start_message(request.xid, VERSION, RDMA_MSG);
		put_no_chunks();
		rpc_put_accepted(&message, request.xid, ACCEPT_GARBAGE_ARGS);
		answer(bytes, message.at, 0);
	}
	ends_with(&work, -EIO);
	client_works(fd);
	tap_check(session.accepted == before + 2, "%d connections, wanted 2", session.accepted - before);
	tap_point("a call with GARBAGE_ARGS as reply is sent again, each time on another "
		  "connection: none has an XID twice (RFC 8166, 3.3.1)");
}

void test_replies(void)
{
	file = file_make("data", FILE_LENGTH);
	client_mount(NULL);
	fd = client_open("data", O_RDONLY | O_DIRECT);
	errors();
	short_messages();
	wrong_headers();
	wrong_lists();
	too_many_bytes();
	long_reply();
	rpc_errors();
	client_close(fd);
	client_unmount();
}
