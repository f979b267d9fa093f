// SPDX-License-Identifier: GPL-2.0
/* The fixed header fields, errors, and messages without chunks. */
#include <string.h>

#include "../common/tap.h"
#include "tests.h"

#define COUNT(array) (int)(sizeof(array) / sizeof((array)[0]))

static struct call call;
static struct reply reply;
static struct connection c;

/* Sends a call without chunks whose header has these fields. */
static bool send_fields(uint32_t version, uint32_t procedure)
{
	call_null(&call);
	call.header.version = version;
	call.header.procedure = procedure;
	return call_send(&c, &call);
}

/* Sends words. */
static bool send_words(const uint32_t *words, int count)
{
	uint8_t bytes[1024];
	struct xdr x = xdr_of(bytes, sizeof(bytes));

	for (int i = 0; i < count; i++)
		xdr_put(&x, words[i]);
	return connection_send(&c, bytes, x.at);
}

static void calls_without_chunks(void)
{
	static const uint32_t xids[] = { 0, 1, 0x80000000, 0xffffffff };
	static const uint32_t credits[] = { 1, 0, 128, 0xffffffff };

	works(&c);
	tap_point("a NULL call in RDMA_MSG is answered in RDMA_MSG (RFC 8166, 3.5.1)");

	call_compound(&call, 0);
	op_plain(&call, OP_PUTROOTFH);
	op_type(&call);
	if (call_do(&c, &call, &reply) && compound_results(&reply.body, 2) &&
	    result_of(&reply.body, OP_PUTROOTFH) && result_type(&reply.body, TYPE_FOLDER))
		tap_check(!xdr_left(&reply.body), "%zu bytes behind the results",
			  xdr_left(&reply.body));
	tap_point("a COMPOUND of NFS in RDMA_MSG is answered in RDMA_MSG (RFC 8166, 3.5.1)");

	for (int i = 0; i < COUNT(xids); i++) {
		call_null(&call);
		call_set_xid(&call, xids[i]);
		call_do(&c, &call, &reply);
	}
	tap_point("both XIDs of a reply are the call's (RFC 8166, 4.2.1)");

	for (int i = 0; i < COUNT(credits); i++) {
		call_null(&call);
		call.header.credit = credits[i];
		call_do(&c, &call, &reply);
	}
	tap_point("a reply grants credits, whatever number a call requests (RFC 8166, 3.3.1)");
}

static void versions(void)
{
	static const uint32_t versions[] = { 0, 2, 255, 0xffffffff };

	for (int i = 0; i < COUNT(versions); i++)
		if (send_fields(versions[i], RDMA_MSG))
			refused(&c, call.header.xid, versions[i], ERR_VERS);
	works(&c);
	tap_point("another version is refused by ERR_VERS for versions 1 to 1, with the call's XID and "
		  "version (RFC 8166, 4.5.1)");
}

static void procedures(void)
{
	static const uint32_t unknown[] = { 5, 6, 255, 0xffffffff };

	for (int i = 0; i < COUNT(unknown); i++)
		if (send_fields(VERSION, unknown[i]))
			refused(&c, call.header.xid, VERSION, ERR_CHUNK);
	works(&c);
	tap_point("an unknown procedure is refused by ERR_CHUNK (RFC 8166, 4.5.2)");

	if (send_fields(VERSION, RDMA_MSGP))
		refused(&c, call.header.xid, VERSION, ERR_CHUNK);
	works(&c);
	tap_point("RDMA_MSGP is refused by ERR_CHUNK (RFC 8166, 4.6.1)");

	if (send_fields(VERSION, RDMA_DONE))
		connection_silent(&c);
	works(&c);
	tap_point("RDMA_DONE is discarded (RFC 8166, 4.6.2)");

	if (send_fields(VERSION, RDMA_ERROR))
		connection_silent(&c);
	works(&c);
	tap_point("RDMA_ERROR is discarded (RFC 8166, 4.2.4)");
}

static void short_messages(void)
{
	static const int lengths[] = { 8, 12, 15, 16, 20, 24, 27 };
	uint8_t bytes[SHORTEST];

	for (int i = 0; i < COUNT(lengths); i++) {
		struct xdr x = xdr_of(bytes, sizeof(bytes));

		call_null(&call);
		header_put(&x, &call.header);
		if (connection_send(&c, bytes, lengths[i]))
			refused(&c, call.header.xid, VERSION, ERR_CHUNK);
	}
	works(&c);
	tap_point("a message of 8 to 27 bytes is refused by ERR_CHUNK "
		  "(deviates from RFC 8166, 4.5: shall be discarded)");

	if (connection_send(&c, bytes, 0) && reply_next(&c, &reply)) {
		tap_check(reply.header.procedure == RDMA_ERROR && reply.header.error == ERR_CHUNK,
			  "procedure %u, error %u, wanted RDMA_ERROR, ERR_CHUNK",
			  reply.header.procedure, reply.header.error);
		tap_note("the answer to an empty message has XID %#x, version %#x", reply.header.xid,
			 reply.header.version);
	}
	works(&c);
	tap_point("an empty message is refused by ERR_CHUNK, with an XID that was never received in it "
		  "(deviates from RFC 8166, 4.5: shall be discarded)");
}

static void unparsable_lists(void)
{
	static const uint32_t reads[][12] = {
		/* the entry ends */
		{ 7, 0, VERSION, 1, RDMA_MSG, 1, 4, 5 },
		{ 9, 0, VERSION, 1, RDMA_MSG, 1, 4, 5, 100, 0 },
		/* no word behind the entry */
		{ 10, 0, VERSION, 1, RDMA_MSG, 1, 4, 5, 100, 0, 0 },
	};
	static const uint32_t writes[][16] = {
		/* the number of segments, the chunk, or the list ends */
		{ 7, 0, VERSION, 1, RDMA_MSG, 0, 1, 1 },
		{ 11, 0, VERSION, 1, RDMA_MSG, 0, 1, 2, 5, 100, 0, 0 },
		{ 11, 0, VERSION, 1, RDMA_MSG, 0, 1, 1, 5, 100, 0, 0 },
		/* more segments than the message can have */
		{ 13, 0, VERSION, 1, RDMA_MSG, 0, 1, 0xffffffff, 5, 100, 0, 0, 0, 0 },
		{ 13, 0, VERSION, 1, RDMA_MSG, 0, 1, 0x10000001, 5, 100, 0, 0, 0, 0 },
	};
	static const uint32_t replies[][13] = {
		{ 7, 0, VERSION, 1, RDMA_MSG, 0, 0, 1 },
		{ 11, 0, VERSION, 1, RDMA_MSG, 0, 0, 1, 2, 5, 100, 0 },
		{ 12, 0, VERSION, 1, RDMA_MSG, 0, 0, 1, 0xffffffff, 5, 100, 0, 0 },
	};

	/* The XID of these messages is 0. */
	for (int i = 0; i < COUNT(reads); i++)
		if (send_words(reads[i] + 1, reads[i][0]))
			refused(&c, 0, VERSION, ERR_CHUNK);
	works(&c);
	tap_point("a Read list that does not end is refused by ERR_CHUNK (RFC 8166, 4.5.2)");

	for (int i = 0; i < COUNT(writes); i++)
		if (send_words(writes[i] + 1, writes[i][0]))
			refused(&c, 0, VERSION, ERR_CHUNK);
	works(&c);
	tap_point("a Write list that does not end is refused by ERR_CHUNK (RFC 8166, 4.5.2)");

	for (int i = 0; i < COUNT(replies); i++)
		if (send_words(replies[i] + 1, replies[i][0]))
			refused(&c, 0, VERSION, ERR_CHUNK);
	works(&c);
	tap_point("a Reply chunk that does not end is refused by ERR_CHUNK (RFC 8166, 4.5.2)");
}

static void no_payload(void)
{
	if (send_fields(VERSION, RDMA_NOMSG))
		connection_silent(&c);
	works(&c);
	tap_point("RDMA_NOMSG without a chunk is discarded "
		  "(deviates from RFC 8166, 4.5.2: shall be refused by ERR_CHUNK)");
}

static void two_xids(void)
{
	call_null(&call);
	call.header.xid ^= 0x00ff0000;
	if (call_send(&c, &call) && reply_next(&c, &reply) &&
	    tap_check(reply.header.procedure == RDMA_MSG, "procedure %u, wanted RDMA_MSG",
		      reply.header.procedure)) {
		tap_check(reply.header.xid == call.header.xid, "header with XID %#x, wanted %#x",
			  reply.header.xid, call.header.xid);
		rpc_reply(&reply.body, call.header.xid ^ 0x00ff0000, ACCEPT_SUCCESS);
	}
	works(&c);
	tap_point("a call whose header and RPC message have different XIDs is answered by both "
		  "(deviates from RFC 8166, 4.5.2: shall be refused by ERR_CHUNK)");
}

/* Errors of RPC behind a valid header. */
static void rpc_errors(void)
{
	call_rpc(&call, 100003, 4, 1);
	if (call_send(&c, &call) && reply_next(&c, &reply) &&
	    tap_check(reply.header.procedure == RDMA_MSG, "procedure %u, wanted RDMA_MSG",
		      reply.header.procedure))
		rpc_reply(&reply.body, call.header.xid, ACCEPT_GARBAGE_ARGS);
	works(&c);
	tap_point("arguments that cannot be parsed give GARBAGE_ARGS in RDMA_MSG (RFC 8166, 4.5.2)");

	call_rpc(&call, 200003, 4, 0);
	if (call_send(&c, &call) && reply_next(&c, &reply) &&
	    tap_check(reply.header.procedure == RDMA_MSG, "procedure %u, wanted RDMA_MSG",
		      reply.header.procedure))
		rpc_reply(&reply.body, call.header.xid, ACCEPT_PROG_UNAVAIL);
	works(&c);
	tap_point("an unknown RPC program gives PROG_UNAVAIL in RDMA_MSG (RFC 8166, 4.5.2)");
}

void test_headers(void)
{
	struct connection_opts opts = plain();

	connection_open(&c, &opts);
	calls_without_chunks();
	versions();
	procedures();
	short_messages();
	unparsable_lists();
	no_payload();
	two_xids();
	rpc_errors();
	connection_close(&c);
}
