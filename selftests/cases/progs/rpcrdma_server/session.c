// SPDX-License-Identifier: GPL-2.0
#include "session.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "../common/access.h"
#include "../common/clock.h"
#include "../common/tap.h"
#include "nfs.h"
#include "rpc.h"
#include "work.h"

#define READS 16		/* that the server does at once */
#define ARENA_BYTES (1 << 20)
#define CREDITS 64
#define BACKLOG 4
#define DEFAULT_SIZE 4096	/* of a message, as Linux has it */

struct settings settings;
struct session session;

/* --- settings */

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

void settings_private(uint32_t send, uint32_t receive, uint8_t flags)
{
	static uint8_t bytes[PRIVATE_BYTES];

	private_put(bytes, (struct private){ .magic = MAGIC, .version = 1, .flags = flags,
					     .send = send / 1024 - 1, .receive = receive / 1024 - 1 });
	settings.private = bytes;
	settings.private_length = sizeof(bytes);
	settings.call_limit = smaller(receive, DEFAULT_SIZE);
	settings.reply_limit = smaller(send, DEFAULT_SIZE);
}

void settings_no_private(void)
{
	settings.private = NULL;
	settings.private_length = 0;
	settings.call_limit = INLINE_DEFAULT;
	settings.reply_limit = INLINE_DEFAULT;
}

void settings_reset(void)
{
	settings = (struct settings){ .credits = CREDITS };
	settings_private(DEFAULT_SIZE, DEFAULT_SIZE, R);
}

/* --- connections */

static struct rdma_event_channel *listen_events;
static struct rdma_cm_id *listener;
static bool armed;		/* the CQ of the Receives */

/* The XIDs that have arrived on the connection. */
#define MAX_XIDS 65536
static uint32_t xids[MAX_XIDS];
static int xid_count;

void session_listen(const struct side *side)
{
	struct rdma_addrinfo hints = {
		.ai_flags = RAI_NUMERICHOST | RAI_PASSIVE,
		.ai_port_space = RDMA_PS_TCP,
	};
	struct rdma_addrinfo *info;

	listen_events = rdma_create_event_channel();
	if (!listen_events)
		tap_bail("rdma_create_event_channel");
	if (rdma_getaddrinfo(side->addr, PORT, &hints, &info))
		tap_bail("rdma_getaddrinfo %s", side->addr);
	netns_enter(side->netns);
	if (rdma_create_id(listen_events, &listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(listener, info->ai_src_addr) || rdma_listen(listener, BACKLOG))
		tap_bail("rdma_listen on %s", side->addr);
	netns_leave();
	rdma_freeaddrinfo(info);
}

/* Destroys the connection. */
static void drop(void)
{
	if (!session.open)
		return;
	session.open = false;
	session.ended++;
	region_free(&session.arena);
	connection_close(&session.connection);
}

void session_disconnect(void)
{
	if (session.open)
		rdma_disconnect(session.connection.id);
	drop();
}

void session_close(void)
{
	session_disconnect();
	tap_check(!rdma_destroy_id(listener), "the listener cannot be destroyed");
	rdma_destroy_event_channel(listen_events);
}

bool session_ended(void)
{
	static struct request request;
	int64_t end = now_ms() + PATIENCE;

	while (session.open && now_ms() < end)
		if (call_within(&request, NULL, 10))
			nfs_serve(&request);
	return tap_check(!session.open, "the client does not end the connection");
}

/* Keeps what the client has given. */
static void note_request(const struct rdma_conn_param *given)
{
	uint8_t bytes[PRIVATE_BYTES] = {};

	session.private_length = given->private_data_len;
	if (given->private_data_len >= PRIVATE_BYTES)
		memcpy(bytes, given->private_data, PRIVATE_BYTES);
	session.private = private_get(bytes);
	/* The CM has swapped the two. */
	session.reads = given->initiator_depth;
	session.own_reads = given->responder_resources;
}

static void accept_request(struct rdma_cm_id *id)
{
	struct connection *c = &session.connection;
	struct rdma_conn_param param = {
		.private_data = settings.private,
		.private_data_len = settings.private_length,
		.initiator_depth = smaller(READS, session.reads),
	};

	memset(c, 0, sizeof(*c));
	c->id = id;
	c->events = rdma_create_event_channel();
	if (!c->events || rdma_migrate_id(id, c->events))
		tap_bail("an event channel");
	connection_prepare(c, 0);
	region_make(&session.arena, &rng, ARENA_BYTES, 0);
	/* The sink of an RDMA Read of iWARP has remote rights. */
	region_register(&session.arena, c->pd, ALL);
	session.open = true;
	session.accepted++;
	session.in_flight = 0;
	session.granted = 1;
	xid_count = 0;
	armed = false;
	if (rdma_accept(id, &param))
		tap_bail("rdma_accept");
	cm_expect(c->events, RDMA_CM_EVENT_ESTABLISHED, NULL, NULL, NULL);
}

/* Takes an event of the listener. */
static void take_request(void)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;
	bool wanted;

	if (rdma_get_cm_event(listen_events, &event))
		tap_bail("rdma_get_cm_event");
	id = event->id;
	wanted = tap_check(event->event == RDMA_CM_EVENT_CONNECT_REQUEST, "CM event %s at the listener",
			   rdma_event_str(event->event));
	if (wanted)
		note_request(&event->param.conn);
	rdma_ack_cm_event(event);
	if (!wanted)
		return;
	if (settings.rejects) {
		settings.rejects--;
		rdma_reject(id, NULL, 0);
		rdma_destroy_id(id);
		return;
	}
	/* The client has given up the old one. */
	if (session.open) {
		cm_expect(session.connection.events, RDMA_CM_EVENT_DISCONNECTED, NULL, NULL, NULL);
		drop();
	}
	accept_request(id);
}

/* Takes an event of the connection. */
static void take_disconnect(void)
{
	cm_expect(session.connection.events, RDMA_CM_EVENT_DISCONNECTED, NULL, NULL, NULL);
	drop();
}

/* --- calls */

static bool is_open(void)
{
	return tap_check(session.open, "the connection was lost");
}

static bool xid_is_new(uint32_t xid)
{
	for (int i = 0; i < xid_count; i++)
		if (xids[i] == xid)
			return false;
	if (xid_count < MAX_XIDS)
		xids[xid_count++] = xid;
	return true;
}

static bool has_no_empty_segment(const struct chunk *chunk)
{
	for (uint32_t i = 0; i < chunk->count; i++)
		if (!chunk->segments[i].length)
			return false;
	return chunk->count > 0;
}

/* Checks what all calls have in common. */
static void check_header(const struct request *r)
{
	const struct header *h = &r->header;

	tap_check(r->message.length >= SHORTEST, "a call of %u bytes", r->message.length);
	tap_check(h->version == VERSION, "a call of version %u", h->version);
	tap_check(h->procedure == RDMA_MSG || h->procedure == RDMA_NOMSG, "a call with procedure %u",
		  h->procedure);
	tap_check(h->credit > 0, "a call requests no credits");
	tap_check(r->message.length <= settings.call_limit,
		  "a call of %u bytes, the inline threshold is %u", r->message.length,
		  settings.call_limit);
	tap_check(!r->message.invalidated, "a call invalidates STag %#x", r->message.invalidated);
	tap_check(session.in_flight <= smaller(session.granted, h->credit),
		  "%u calls without reply, %u were granted, %u requested", session.in_flight,
		  session.granted, h->credit);
	tap_check(xid_is_new(h->xid), "XID %#x came twice on one connection", h->xid);
	for (int i = 0; i < h->reads; i++) {
		tap_check(h->read[i].position % WORD == 0, "a Read chunk at position %u",
			  h->read[i].position);
		tap_check(h->read[i].segment.length, "an empty Read segment");
	}
	for (int i = 0; i < h->writes; i++)
		tap_check(has_no_empty_segment(&h->write[i]), "an empty Write chunk or segment");
	tap_check(!h->has_reply || has_no_empty_segment(&h->reply), "an empty Reply chunk or segment");
	if (h->procedure == RDMA_NOMSG)
		tap_check(h->reads && !h->read[0].position,
			  "RDMA_NOMSG without a Position Zero Read chunk");
}

/* Takes the start of the RPC message. */
static bool take_rpc(struct request *r, struct xdr *x)
{
	uint32_t direction, rpc;

	r->xid = xdr_get(x);
	direction = xdr_get(x);
	rpc = xdr_get(x);
	r->program = xdr_get(x);
	r->version = xdr_get(x);
	r->procedure = xdr_get(x);
	return tap_check(!x->failed, "an RPC call of %zu bytes does not end", x->size) &&
	       tap_check(direction == RPC_CALL && rpc == RPC_VERSION,
			 "RPC message type %u, RPC version %u", direction, rpc) &&
	       tap_check(r->xid == r->header.xid, "XID %#x in the header, %#x in the RPC message",
			 r->header.xid, r->xid);
}

/* Takes the message that has arrived. */
static bool take_call(struct request *r)
{
	struct xdr x = xdr_of(r->message.bytes, r->message.length);

	r->connection = session.accepted;
	session.in_flight++;
	if (!header_get(&x, &r->header))
		return false;
	check_header(r);
	if (r->header.procedure == RDMA_NOMSG && !call_pull(r, &x))
		return false;
	if (r->header.procedure == RDMA_NOMSG)
		x.at = 0;
	return take_rpc(r, &x);
}

/* Sleeps until something may have happened, `ms` at most. */
static void sleep_until_event(int ms)
{
	struct pollfd fds[] = {
		{ .fd = listen_events->fd, .events = POLLIN },
		{ .fd = work_events, .events = POLLIN },
		{ .fd = session.open ? session.connection.events->fd : -1, .events = POLLIN },
		{ .fd = session.open ? session.connection.arrivals->fd : -1, .events = POLLIN },
	};
	struct ibv_cq *cq;
	uint64_t count;
	void *context;

	if (poll(fds, 4, ms) <= 0)
		return;
	if (fds[1].revents & POLLIN && read(work_events, &count, sizeof(count)) < 0)
		tap_bail("eventfd");
	if (fds[3].revents & POLLIN) {
		if (ibv_get_cq_event(session.connection.arrivals, &cq, &context))
			tap_bail("ibv_get_cq_event");
		ibv_ack_cq_events(cq, 1);
		armed = false;
	}
}

bool call_within(struct request *r, const struct work *work, int ms)
{
	int64_t end = now_ms() + ms, left;

	for (;;) {
		if (session.open && connection_poll(&session.connection, &r->message)) {
			if (take_call(r))
				return true;
		} else if (work && work_done(work)) {
			return false;
		} else if (session.open && readable_within(session.connection.events->fd, 0)) {
			take_disconnect();
		} else if (readable_within(listen_events->fd, 0)) {
			take_request();
		} else if (session.open && !armed) {
			/* A message may have arrived before. */
			if (ibv_req_notify_cq(session.connection.rcq, 0))
				tap_bail("ibv_req_notify_cq");
			armed = true;
		} else {
			left = end - now_ms();
			if (left <= 0)
				return false;
			sleep_until_event(left);
		}
	}
}

/* Moves bytes of the message into the Payload stream. */
static bool take_inline(struct xdr *stream, struct xdr *from, size_t length)
{
	const uint8_t *bytes;

	if (!tap_check(length <= xdr_left(from), "the message ends before a Read chunk") ||
	    !tap_check(length <= xdr_left(stream), "a call that is too long"))
		return false;
	bytes = xdr_get_bytes(from, length);
	if (!tap_check(bytes, "%zu bytes in a message, no multiple of %u", length, WORD))
		return false;
	xdr_put_bytes(stream, bytes, length);
	return true;
}

bool call_pull(const struct request *r, struct xdr *arguments)
{
	static uint8_t bytes[STREAM_BYTES], copy[RECEIVE_BYTES];
	const struct header *h = &r->header;
	struct xdr stream = xdr_of(bytes, sizeof(bytes)), from;
	struct header again;
	struct request ignored;
	uint32_t length, position;
	int i = 0;

	memcpy(copy, r->message.bytes, r->message.length);
	from = xdr_of(copy, r->message.length);
	header_get(&from, &again);
	while (i < h->reads) {
		position = h->read[i].position;
		if (!tap_check(position >= stream.at, "Read chunks out of order: %u after %zu",
			       position, stream.at) ||
		    !take_inline(&stream, &from, position - stream.at))
			return false;
		for (length = 0; i < h->reads && h->read[i].position == position; i++) {
			const struct segment *segment = &h->read[i].segment;

			if (!tap_check(segment->length < xdr_left(&stream) - length,
				       "a Read segment of %u bytes", segment->length) ||
			    !client_read(segment, stream.bytes + stream.at + length))
				return false;
			length += segment->length;
		}
		memset(stream.bytes + stream.at + length, 0, xdr_padded(length) - length);
		stream.at += xdr_padded(length);
	}
	if (!take_inline(&stream, &from, xdr_left(&from)))
		return false;
	*arguments = xdr_of(bytes, stream.at);
	ignored.header.xid = h->xid;
	return take_rpc(&ignored, arguments) && rpc_take_credentials(arguments);
}

/* --- replies */

void payload_begin(struct payload *payload)
{
	payload->body = xdr_of(payload->bytes, sizeof(payload->bytes));
	payload->has_item = false;
}

void reply_begin(struct xdr *body, const struct request *r)
{
	rpc_put_accepted(body, r->xid, ACCEPT_SUCCESS);
}

uint32_t first_stag(const struct request *r)
{
	const struct header *h = &r->header;

	if (h->reads)
		return h->read[0].segment.handle;
	if (h->writes)
		return h->write[0].segments[0].handle;
	return h->has_reply ? h->reply.segments[0].handle : 0;
}

uint32_t last_stag(const struct request *r)
{
	const struct header *h = &r->header;
	const struct chunk *write;
	uint32_t last;

	if (h->has_reply)
		return h->reply.segments[h->reply.count - 1].handle;
	if (!h->writes)
		return h->reads ? h->read[h->reads - 1].segment.handle : 0;
	write = &h->write[h->writes - 1];
	last = write->count - 1;
	if (last && write->segments[last].length == WORD)
		last--;
	return write->segments[last].handle;
}

static struct chunk emptied(const struct chunk *offered)
{
	struct chunk chunk = *offered;

	for (uint32_t i = 0; i < chunk.count; i++)
		chunk.segments[i].length = 0;
	return chunk;
}

bool chunk_fill(const struct chunk *offered, struct chunk *back, const uint8_t *bytes,
		uint32_t length)
{
	*back = emptied(offered);
	for (uint32_t i = 0; i < offered->count && length; i++) {
		const struct segment *segment = &offered->segments[i];
		uint32_t part = smaller(length, segment->length);

		if (!client_write(segment, bytes, part))
			return false;
		back->segments[i].length = part;
		bytes += part;
		length -= part;
	}
	return tap_check(!length, "a chunk is %u bytes too short", length);
}

void reply_header(struct header *header, const struct request *r)
{
	*header = (struct header){
		.xid = r->header.xid,
		.version = VERSION,
		.credit = settings.credits,
		.procedure = RDMA_MSG,
		.writes = r->header.writes,
		.has_reply = r->header.has_reply,
	};
	for (int i = 0; i < header->writes; i++)
		header->write[i] = emptied(&r->header.write[i]);
	if (header->has_reply)
		header->reply = emptied(&r->header.reply);
}

/* Appends a Payload stream without its data item. */
static void put_reduced(struct xdr *x, const struct payload *p)
{
	size_t behind = p->item + xdr_padded(p->item_length);

	xdr_put_bytes(x, p->bytes, p->item);
	xdr_put_bytes(x, p->bytes + behind, p->body.at - behind);
}

bool session_send(const void *bytes, size_t length)
{
	return is_open() && connection_send(&session.connection, bytes, length);
}

bool answer(const void *bytes, size_t length, uint32_t stag)
{
	/* A client takes a grant of 0 for 1. */
	uint32_t credits = settings.credits ? settings.credits : 1;

	if (!is_open())
		return false;
	if (credits > session.granted)
		session.granted = credits;
	session.in_flight--;
	return stag ? connection_send_invalidating(&session.connection, bytes, length, stag)
		    : connection_send(&session.connection, bytes, length);
}

bool reply(const struct request *r, const struct payload *p)
{
	static uint8_t body_bytes[STREAM_BYTES];
	struct xdr body = xdr_of(body_bytes, sizeof(body_bytes));
	uint8_t bytes[SEND_BYTES];
	struct xdr x = xdr_of(bytes, sizeof(bytes));
	struct header header;
	uint32_t stag = 0;

	reply_header(&header, r);
	if (p->has_item && header.writes) {
		if (!chunk_fill(&r->header.write[0], &header.write[0], p->bytes + p->item,
				p->item_length))
			return false;
		put_reduced(&body, p);
	} else {
		xdr_put_bytes(&body, p->bytes, p->body.at);
	}

	header_put(&x, &header);
	if (header.has_reply &&
	    (!settings.short_replies || x.at + body.at > settings.reply_limit)) {
		header.procedure = RDMA_NOMSG;
		if (!chunk_fill(&r->header.reply, &header.reply, body.bytes, body.at))
			return false;
		x.at = 0;
		header_put(&x, &header);
	} else {
		if (!tap_check(x.at + body.at <= settings.reply_limit,
			       "procedure %u: a reply of %zu bytes without a Reply chunk", r->procedure,
			       x.at + body.at))
			return false;
		xdr_put_bytes(&x, body.bytes, body.at);
	}
	if (settings.invalidate != INVALIDATE_NONE)
		stag = settings.invalidate == INVALIDATE_FIRST ? first_stag(r) : last_stag(r);
	return answer(bytes, x.at, stag);
}

/* --- the client's memory */

bool client_read(const struct segment *segment, uint8_t *to)
{
	uint32_t done = 0, part;
	struct ibv_sge sge;

	if (!is_open())
		return false;
	while (done < segment->length) {
		part = smaller(segment->length - done, session.arena.length);
		sge = region_sge(&session.arena, 0, part);
		if (!connection_rdma(&session.connection, IBV_WR_RDMA_READ, &sge,
				     segment->offset + done, segment->handle))
			return false;
		memcpy(to + done, session.arena.bytes, part);
		done += part;
	}
	return true;
}

bool client_write(const struct segment *segment, const uint8_t *bytes, uint32_t length)
{
	uint32_t done = 0, part, most = session.arena.length;
	struct ibv_sge sge;

	if (!is_open())
		return false;
	while (done < length) {
		if (settings.piece)
			most = 1 + rng_below(&rng, settings.piece);
		part = smaller(length - done, most);
		memcpy(session.arena.bytes, bytes + done, part);
		sge = region_sge(&session.arena, 0, part);
		if (!connection_rdma(&session.connection, IBV_WR_RDMA_WRITE, &sge,
				     segment->offset + done, segment->handle))
			return false;
		done += part;
	}
	return true;
}

bool client_refuses(enum ibv_wr_opcode opcode, const struct segment *segment)
{
	struct connection *c = &session.connection;
	enum ibv_wc_status status;
	struct ibv_sge sge;
	uint64_t before;
	bool refused;

	if (!is_open())
		return false;
	sge = region_sge(&session.arena, 0, segment->length);
	before = terminates(c, RECEIVED);
	refused = connection_try_rdma(c, opcode, &sge, segment->offset, segment->handle, &status) &&
		  /* A Write is complete when it is sent. */
		  tap_check(opcode == IBV_WR_RDMA_WRITE || status != IBV_WC_SUCCESS,
			    "an RDMA Read of STag %#x succeeds", segment->handle) &&
		  connection_ends(c) && terminated(c, RECEIVED, before);
	drop();
	return refused;
}
