// SPDX-License-Identifier: GPL-2.0
/* Calls of the server on the client's connection (RFC 8167). */
#include <string.h>

#include "../common/tap.h"
#include "tests.h"

#define CALLBACK_PROGRAM 0x40000000
#define SESSION_BYTES 16
#define CONN_BACK_CHAN 2
#define CHANNEL_BYTES 4000	/* largest message of a session */
#define MINOR 2
#define RPC_CALL 0
#define RPC_REPLY 1
#define RPC_VERSION 2
#define CB_VERSION 1
#define CB_COMPOUND 1
#define CB_SEQUENCE 11
#define CB_OFFLOAD 15

static struct call call;
static struct reply reply, cb;
static struct connection c;

static struct {
	uint8_t id[SESSION_BYTES];
	uint32_t sequence;		/* of slot 0 */
} session;

/* What CB_SEQUENCE has. */
struct callback {
	uint8_t id[SESSION_BYTES];
	uint32_t sequence, slot, highest;
};

static void put_channel(struct xdr *x)
{
	/* padding; requests, replies, cached replies; operations, slots; no RDMA attributes */
	xdr_put(x, 0);
	xdr_put(x, CHANNEL_BYTES);
	xdr_put(x, CHANNEL_BYTES);
	xdr_put(x, CHANNEL_BYTES);
	xdr_put(x, 8);
	xdr_put(x, 1);
	xdr_put(x, 0);
}

/* Creates a session whose back channel is this connection. */
static bool open_session(void)
{
	static const uint8_t verifier[8] = "riwtest";
	uint32_t sequence, flags;
	const uint8_t *id;
	uint64_t owner;

	call_compound(&call, MINOR);
	op_plain(&call, OP_EXCHANGE_ID);
	xdr_put_bytes(&call.body, verifier, sizeof(verifier));
	xdr_put_text(&call.body, "rpcrdma_client");
	/* no flags, no protection of the state, no name of the implementation */
	xdr_put(&call.body, 0);
	xdr_put(&call.body, 0);
	xdr_put(&call.body, 0);
	if (!call_do(&c, &call, &reply) || !compound_results(&reply.body, 1) ||
	    !result_of(&reply.body, OP_EXCHANGE_ID))
		return false;
	owner = xdr_get64(&reply.body);
	sequence = xdr_get(&reply.body);

	call_compound(&call, MINOR);
	op_plain(&call, OP_CREATE_SESSION);
	xdr_put64(&call.body, owner);
	xdr_put(&call.body, sequence);
	xdr_put(&call.body, CONN_BACK_CHAN);
	put_channel(&call.body);
	put_channel(&call.body);
	xdr_put(&call.body, CALLBACK_PROGRAM);
	/* one flavor: AUTH_NONE */
	xdr_put(&call.body, 1);
	xdr_put(&call.body, 0);
	if (!call_do(&c, &call, &reply) || !compound_results(&reply.body, 1) ||
	    !result_of(&reply.body, OP_CREATE_SESSION))
		return false;
	id = xdr_get_bytes(&reply.body, SESSION_BYTES);
	xdr_get(&reply.body);
	flags = xdr_get(&reply.body);
	if (!tap_check(!reply.body.failed, "the result of CREATE_SESSION does not end") ||
	    !tap_check(flags & CONN_BACK_CHAN, "flags %#x: no back channel", flags))
		return false;
	memcpy(session.id, id, SESSION_BYTES);
	return true;
}

static void put_stateid(struct xdr *x)
{
	for (int i = 0; i < 4; i++)
		xdr_put(x, 0);
}

/*
 * Copies DATA to SINK in the background, of whose end the server tells by a call. Takes the reply and
 * that call, into `cb`, in the order in which they come.
 */
static bool copy(void)
{
	struct reply *first = &reply, *second = &cb;

	call_compound(&call, MINOR);
	op_plain(&call, OP_SEQUENCE);
	xdr_put_bytes(&call.body, session.id, SESSION_BYTES);
	xdr_put(&call.body, ++session.sequence);
	/* slot, highest slot, not to be cached */
	xdr_put(&call.body, 0);
	xdr_put(&call.body, 0);
	xdr_put(&call.body, false);
	op_file(&call, DATA);
	op_plain(&call, OP_SAVEFH);
	op_file(&call, SINK);
	op_plain(&call, OP_COPY);
	put_stateid(&call.body);
	put_stateid(&call.body);
	xdr_put64(&call.body, 0);
	xdr_put64(&call.body, 0);
	xdr_put64(&call.body, DATA_BYTES);
	/* in order, in the background, on this server */
	xdr_put(&call.body, true);
	xdr_put(&call.body, false);
	xdr_put(&call.body, 0);
	if (!call_send(&c, &call) || !reply_next(&c, &reply))
		return false;
	if (reply.header.xid != call.header.xid) {
		cb = reply;
		cb.body.bytes += cb.message.bytes - reply.message.bytes;
		second = first;
	}
	return reply_next(&c, second) &&
	       tap_check(reply.header.xid == call.header.xid, "reply with XID %#x, wanted %#x",
			 reply.header.xid, call.header.xid) &&
	       tap_check(reply.header.procedure == RDMA_MSG, "procedure %u, wanted RDMA_MSG",
			 reply.header.procedure) &&
	       rpc_reply(&reply.body, call.header.xid, ACCEPT_SUCCESS) &&
	       compound_results(&reply.body, 7);
}

/* Checks the server's call up to CB_SEQUENCE, and takes that. */
static bool check_call(struct callback *got)
{
	static const struct {
		const char *name;
		uint32_t wanted;
	} fields[] = {
		{ "message type", RPC_CALL }, { "RPC version", RPC_VERSION },
		{ "program", CALLBACK_PROGRAM }, { "version", CB_VERSION },
		{ "procedure", CB_COMPOUND },
	};
	uint32_t xid = xdr_get(&cb.body), value, length, minor, count, op;
	const uint8_t *id;

	tap_check(cb.header.procedure == RDMA_MSG && cb.header.version == VERSION,
		  "procedure %u, version %u", cb.header.procedure, cb.header.version);
	tap_check(!cb.header.reads && !cb.header.writes && !cb.header.has_reply,
		  "the server's call has chunks");
	tap_check(xid == cb.header.xid, "XID %#x in a message with XID %#x", xid, cb.header.xid);
	for (int i = 0; i < 5; i++) {
		value = xdr_get(&cb.body);
		tap_check(value == fields[i].wanted, "%s %u of the call, wanted %u", fields[i].name,
			  value, fields[i].wanted);
	}
	/* credentials, verifier, tag */
	xdr_get(&cb.body);
	xdr_get_opaque(&cb.body, &length);
	xdr_get(&cb.body);
	xdr_get_opaque(&cb.body, &length);
	xdr_get_opaque(&cb.body, &length);
	minor = xdr_get(&cb.body);
	xdr_get(&cb.body);
	count = xdr_get(&cb.body);
	op = xdr_get(&cb.body);
	id = xdr_get_bytes(&cb.body, SESSION_BYTES);
	got->sequence = xdr_get(&cb.body);
	got->slot = xdr_get(&cb.body);
	got->highest = xdr_get(&cb.body);
	if (!tap_check(!cb.body.failed, "a call of %zu bytes", cb.body.size))
		return false;
	memcpy(got->id, id, SESSION_BYTES);
	return tap_check(minor == MINOR && count == 2 && op == CB_SEQUENCE,
			 "minor version %u, %u operations, the first is %u; wanted %d, 2, %d", minor,
			 count, op, MINOR, CB_SEQUENCE) &&
	       tap_check(!memcmp(id, session.id, SESSION_BYTES), "another session");
}

/* Answers the server's call: both operations succeed. */
static void answer(const struct callback *got)
{
	uint8_t bytes[256];
	struct xdr x = xdr_of(bytes, sizeof(bytes));
	struct header header = { .xid = cb.header.xid, .version = VERSION, .credit = 2 };

	header_put(&x, &header);
	xdr_put(&x, cb.header.xid);
	xdr_put(&x, RPC_REPLY);
	/* accepted; verifier AUTH_NONE, empty */
	xdr_put(&x, 0);
	xdr_put(&x, 0);
	xdr_put(&x, 0);
	xdr_put(&x, ACCEPT_SUCCESS);
	/* status, tag, results */
	xdr_put(&x, 0);
	xdr_put_text(&x, "");
	xdr_put(&x, 2);
	xdr_put(&x, CB_SEQUENCE);
	xdr_put(&x, 0);
	xdr_put_bytes(&x, got->id, SESSION_BYTES);
	xdr_put(&x, got->sequence);
	xdr_put(&x, got->slot);
	xdr_put(&x, got->highest);
	xdr_put(&x, got->highest);
	xdr_put(&x, CB_OFFLOAD);
	xdr_put(&x, 0);
	connection_send(&c, bytes, x.at);
}

void test_back_channel(void)
{
	struct connection_opts opts = plain();
	struct callback first, second;

	connection_open(&c, &opts);
	if (open_session() && copy())
		check_call(&first);
	works(&c);
	if (!tap_point("the server calls the client by RDMA_MSG without chunks; both XIDs are equal, "
		       "and calls of the client are answered meanwhile (RFC 8167, 5.1)"))
		goto close;

	answer(&first);
	if (copy() && check_call(&second) &&
	    tap_check(second.slot == first.slot && second.sequence == first.sequence + 1,
		      "sequence %u of slot %u, wanted %u of %u", second.sequence, second.slot,
		      first.sequence + 1, first.slot))
		answer(&second);
	works(&c);
	tap_point("the server takes the client's reply: its next call has the next number "
		  "(RFC 8167, 5.2)");
close:
	connection_close(&c);
}
