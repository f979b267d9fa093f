// SPDX-License-Identifier: GPL-2.0
#include "call.h"

#include <string.h>

#include "../common/tap.h"

#define RPC_CALL 0
#define RPC_REPLY 1
#define RPC_VERSION 2
#define MSG_ACCEPTED 0
#define AUTH_NONE 0
#define AUTH_SYS 1

#define NFS_PROGRAM 100003
#define NFS_VERSION 4
#define PROC_NULL 0
#define PROC_COMPOUND 1

#define FILE_SYNC 2
#define TYPE_LINK 5
#define ATTRIBUTE_TYPE (1 << 1)

#define CREDITS 32		/* that calls request */

/* --- calls */

static uint32_t last_xid = 0x52490000;

void call_rpc(struct call *call, uint32_t program, uint32_t version, uint32_t procedure)
{
	call->header = (struct header){
		.xid = ++last_xid,
		.version = VERSION,
		.credit = CREDITS,
		.procedure = RDMA_MSG,
	};
	call->body = xdr_of(call->bytes, sizeof(call->bytes));
	call->operations = 0;
	call->count = 0;
	xdr_put(&call->body, call->header.xid);
	xdr_put(&call->body, RPC_CALL);
	xdr_put(&call->body, RPC_VERSION);
	xdr_put(&call->body, program);
	xdr_put(&call->body, version);
	xdr_put(&call->body, procedure);
	/* The credentials of root: time stamp, machine, user, group, other groups. */
	xdr_put(&call->body, AUTH_SYS);
	xdr_put(&call->body, 7 * WORD);
	xdr_put(&call->body, 0);
	xdr_put_text(&call->body, "client");
	xdr_put(&call->body, 0);
	xdr_put(&call->body, 0);
	xdr_put(&call->body, 0);
	xdr_put(&call->body, AUTH_NONE);
	xdr_put(&call->body, 0);
}

void call_null(struct call *call)
{
	call_rpc(call, NFS_PROGRAM, NFS_VERSION, PROC_NULL);
}

void call_compound(struct call *call, uint32_t minor)
{
	call_rpc(call, NFS_PROGRAM, NFS_VERSION, PROC_COMPOUND);
	xdr_put_text(&call->body, "");
	xdr_put(&call->body, minor);
	call->count_at = call->body.at;
	xdr_put(&call->body, 0);
}

void call_set_xid(struct call *call, uint32_t xid)
{
	call->header.xid = xid;
	xdr_patch(&call->body, 0, xid);
}

void op_plain(struct call *call, enum operation op)
{
	xdr_put(&call->body, op);
	xdr_patch(&call->body, call->count_at, ++call->operations);
}

void op_name(struct call *call, enum operation op, const char *name)
{
	op_plain(call, op);
	xdr_put_text(&call->body, name);
}

void op_type(struct call *call)
{
	op_plain(call, OP_GETATTR);
	xdr_put(&call->body, 1);
	xdr_put(&call->body, ATTRIBUTE_TYPE);
}

void op_file(struct call *call, const char *name)
{
	op_plain(call, OP_PUTROOTFH);
	op_name(call, OP_LOOKUP, name);
}

/* The stateid of all zeros: no open file. */
static void put_stateid(struct xdr *x)
{
	for (int i = 0; i < 4; i++)
		xdr_put(x, 0);
}

void op_read(struct call *call, uint64_t offset, uint32_t count)
{
	op_plain(call, OP_READ);
	put_stateid(&call->body);
	xdr_put64(&call->body, offset);
	xdr_put(&call->body, count);
}

/* Appends an opaque that may be reduced. */
static void put_item(struct call *call, const void *bytes, uint32_t length)
{
	if (call->count == MAX_ITEMS)
		tap_bail("more than %d items", MAX_ITEMS);
	call->items[call->count++] = (struct item){
		.position = call->body.at + WORD,
		.length = length,
	};
	xdr_put_opaque(&call->body, bytes, length);
}

void op_write(struct call *call, uint64_t offset, const void *bytes, uint32_t length)
{
	op_plain(call, OP_WRITE);
	put_stateid(&call->body);
	xdr_put64(&call->body, offset);
	xdr_put(&call->body, FILE_SYNC);
	put_item(call, bytes, length);
}

void op_symlink(struct call *call, const char *name, const char *text)
{
	op_plain(call, OP_CREATE);
	xdr_put(&call->body, TYPE_LINK);
	put_item(call, text, strlen(text));
	xdr_put_text(&call->body, name);
	/* no attributes */
	xdr_put(&call->body, 0);
	xdr_put(&call->body, 0);
}

/* --- chunks */

void region_store(struct region *region, size_t at, const void *bytes, size_t length)
{
	if (at + length > region->length)
		tap_bail("%zu bytes at %zu in a region of %zu", length, at, region->length);
	memcpy(region->bytes + at, bytes, length);
	memcpy(region_wanted(region, region->bytes + at), bytes, length);
}

const struct item *call_reduce(struct call *call, int item)
{
	call->items[item].reduced = true;
	return &call->items[item];
}

size_t call_move(struct call *call, int item, struct region *region, size_t at)
{
	const struct item *moved = call_reduce(call, item);

	region_store(region, at, call->bytes + moved->position, moved->length);
	header_add_read(&call->header, moved->position, segment_of(region, at, moved->length));
	return at + moved->length;
}

void call_put_body(struct xdr *x, const struct call *call)
{
	size_t from = 0;

	for (int i = 0; i < call->count; i++) {
		const struct item *item = &call->items[i];

		if (!item->reduced)
			continue;
		xdr_put_bytes(x, call->bytes + from, item->position - from);
		from = item->position + xdr_padded(item->length);
	}
	xdr_put_bytes(x, call->bytes + from, call->body.at - from);
}

uint32_t call_store(const struct call *call, struct region *region, size_t at)
{
	static uint8_t bytes[CALL_BYTES];
	struct xdr x = xdr_of(bytes, sizeof(bytes));

	call_put_body(&x, call);
	region_store(region, at, bytes, x.at);
	return x.at;
}

/* --- messages */

bool call_send(struct connection *c, const struct call *call)
{
	uint8_t bytes[SEND_BYTES];
	struct xdr x = xdr_of(bytes, sizeof(bytes));

	header_put(&x, &call->header);
	if (call->header.procedure == RDMA_MSG)
		call_put_body(&x, call);
	return connection_send(c, bytes, x.at);
}

bool reply_next(struct connection *c, struct reply *reply)
{
	struct xdr x;

	if (!connection_receive(c, &reply->message))
		return false;
	x = xdr_of(reply->message.bytes, reply->message.length);
	if (!header_get(&x, &reply->header))
		return false;
	reply->body = xdr_of(x.bytes + x.at, xdr_left(&x));
	return tap_check(reply->header.credit > 0, "an answer grants no credits") &&
	       tap_check(!reply->header.reads, "an answer has a Read list");
}

bool rpc_reply(struct xdr *body, uint32_t xid, enum accept accept)
{
	uint32_t own = xdr_get(body), direction = xdr_get(body), status = xdr_get(body);
	uint32_t length, accepted;

	xdr_get(body);
	xdr_get_opaque(body, &length);
	accepted = xdr_get(body);
	return tap_check(!body->failed, "an RPC reply of %zu bytes does not end", body->size) &&
	       tap_check(own == xid, "RPC reply with XID %#x, wanted %#x", own, xid) &&
	       tap_check(direction == RPC_REPLY, "RPC message type %u, wanted %u", direction,
			 RPC_REPLY) &&
	       tap_check(status == MSG_ACCEPTED, "the RPC call is denied") &&
	       tap_check(accepted == accept, "RPC accept status %u, wanted %u", accepted, accept);
}

/* Checks the header of a reply. */
static bool replied(const struct reply *reply, const struct call *call)
{
	const struct header *got = &reply->header;
	uint32_t wanted = call->header.has_reply ? RDMA_NOMSG : RDMA_MSG;

	return tap_check(got->xid == call->header.xid, "reply with XID %#x, wanted %#x", got->xid,
			 call->header.xid) &&
	       tap_check(got->version == VERSION, "reply of version %u", got->version) &&
	       tap_check(got->procedure == wanted, "reply with procedure %u (error %u), wanted %u",
			 got->procedure, got->error, wanted) &&
	       tap_check(wanted == RDMA_MSG || !reply->body.size,
			 "%zu bytes behind the header of RDMA_NOMSG", reply->body.size) &&
	       tap_check(got->writes == call->header.writes, "%d Write chunks came back, wanted %d",
			 got->writes, call->header.writes) &&
	       tap_check(got->has_reply == call->header.has_reply,
			 "the Reply chunk of the call does not come back, or another one does");
}

bool call_do(struct connection *c, const struct call *call, struct reply *reply)
{
	return call_send(c, call) && reply_next(c, reply) && replied(reply, call) &&
	       (call->header.has_reply || rpc_reply(&reply->body, call->header.xid, ACCEPT_SUCCESS));
}

bool compound_results(struct xdr *body, uint32_t operations)
{
	uint32_t status = xdr_get(body), length, count;

	xdr_get_opaque(body, &length);
	count = xdr_get(body);
	return tap_check(!body->failed, "a COMPOUND result of %zu bytes does not end", body->size) &&
	       tap_check(!status, "NFS status %u after %u operations", status, count) &&
	       tap_check(count == operations, "%u operations were done, wanted %u", count,
			 operations);
}

bool compound_fails(struct xdr *body)
{
	uint32_t status = xdr_get(body);

	return tap_check(!body->failed && status, "all operations succeed");
}

bool result_of(struct xdr *body, enum operation op)
{
	uint32_t number = xdr_get(body), status = xdr_get(body);

	return tap_check(!body->failed, "no result of operation %d", op) &&
	       tap_check(number == op, "result of operation %u, wanted %d", number, op) &&
	       tap_check(!status, "operation %d: NFS status %u", op, status);
}

bool result_type(struct xdr *body, uint32_t type)
{
	uint32_t words, bits, length, found;

	if (!result_of(body, OP_GETATTR))
		return false;
	words = xdr_get(body);
	bits = xdr_get(body);
	length = xdr_get(body);
	found = xdr_get(body);
	return tap_check(!body->failed && words == 1 && bits == ATTRIBUTE_TYPE && length == WORD,
			 "attributes %u:%#x of %u bytes, wanted 1:%#x of %u", words, bits, length,
			 ATTRIBUTE_TYPE, WORD) &&
	       tap_check(found == type, "file type %u, wanted %u", found, type);
}

bool refused(struct connection *c, uint32_t xid, uint32_t version, enum rdma_error error)
{
	struct reply reply;
	const struct header *got = &reply.header;

	return reply_next(c, &reply) &&
	       tap_check(got->procedure == RDMA_ERROR, "procedure %u, wanted RDMA_ERROR",
			 got->procedure) &&
	       tap_check(got->error == error, "error %u, wanted %d", got->error, error) &&
	       tap_check(got->xid == xid, "error for XID %#x, wanted %#x", got->xid, xid) &&
	       tap_check(got->version == version, "error of version %u, wanted %u", got->version,
			 version) &&
	       tap_check(!reply.body.size, "%zu bytes behind an error", reply.body.size) &&
	       tap_check(!reply.message.invalidated, "an error invalidates STag %#x",
			 reply.message.invalidated) &&
	       (error != ERR_VERS ||
		tap_check(got->low == VERSION && got->high == VERSION,
			  "versions %u to %u, wanted %d", got->low, got->high, VERSION));
}

bool works(struct connection *c)
{
	static struct call call;
	struct reply reply;

	call_null(&call);
	return call_do(c, &call, &reply);
}
