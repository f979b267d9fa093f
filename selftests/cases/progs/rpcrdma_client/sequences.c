// SPDX-License-Identifier: GPL-2.0
/* Many calls at once, many connections at once, and how connections begin. */
#include <string.h>

#include "../common/access.h"
#include "../common/clock.h"
#include "../common/tap.h"
#include "tests.h"

#define BYTES 5000		/* of each READ and WRITE */
#define MOST 128		/* calls at once, if the server grants as many */
#define TOO_MANY 150		/* more calls than the server has receives */
#define BURSTS 10
#define CONNECTIONS 24		/* more than the server's backlog of 10 */

static struct call call;
static struct reply reply;
static struct connection c;

/* What a call in flight expects. */
struct pending {
	struct call call;
	bool answered;
};

static struct pending pending[TOO_MANY];

/* Returns the number of calls that may be in flight. */
static int credits(void)
{
	call_null(&call);
	if (!call_do(&c, &call, &reply))
		return 1;
	return reply.header.credit < MOST ? reply.header.credit : MOST;
}

/* Takes the reply to one of the first `count` calls. Returns its index, or -1. */
static int answered(int count)
{
	uint32_t first = pending[0].call.header.xid;
	int i;

	if (!reply_next(&c, &reply))
		return -1;
	i = reply.header.xid - first;
	if (!tap_check(i >= 0 && i < count, "a reply to no call in flight: XID %#x", reply.header.xid) ||
	    !tap_check(!pending[i].answered, "a second reply to call %d", i) ||
	    !tap_check(reply.header.procedure == RDMA_MSG, "call %d: procedure %u, error %u", i,
		       reply.header.procedure, reply.header.error) ||
	    !rpc_reply(&reply.body, reply.header.xid, ACCEPT_SUCCESS))
		return -1;
	pending[i].answered = true;
	return i;
}

static void pipelined_nulls(void)
{
	int count, in_order = 0;

	connection_open(&c, &(struct connection_opts){ .server = server });
	count = credits();
	for (int i = 0; i < count; i++) {
		call_null(&pending[i].call);
		pending[i].answered = false;
		if (!call_send(&c, &pending[i].call))
			break;
	}
	for (int i = 0; i < count; i++) {
		int got = answered(count);

		if (got < 0)
			break;
		in_order += got == i;
	}
	connection_silent(&c);
	works(&c);
	connection_close(&c);
	tap_note("%d calls, %d answered in their place", count, in_order);
	tap_point("as many calls as credits were granted are answered, each once (RFC 8166, 3.3.1)");
}

/*
 * A client may not do this (RFC 8166, 3.3.1). The server's device holds what the server has no receives
 * for, until it has posted more.
 */
static void beyond_credits(void)
{
	connection_open(&c, &(struct connection_opts){ .server = server });
	for (int burst = 0; burst < BURSTS && !tap_failing(); burst++) {
		for (int i = 0; i < TOO_MANY; i++) {
			call_null(&pending[i].call);
			pending[i].answered = false;
			if (!call_send(&c, &pending[i].call))
				break;
		}
		for (int i = 0; i < TOO_MANY; i++)
			if (answered(TOO_MANY) < 0)
				break;
	}
	works(&c);
	connection_close(&c);
	tap_point("calls for which the server has no receives yet wait, and are answered");
}

/* NULLs, READs by Write chunks and WRITEs by Read chunks, in turn. */
static void pipelined_chunks(void)
{
	struct region sources, sinks;
	int count, i, got;
	uint8_t *data;

	connection_open(&c, &(struct connection_opts){ .server = server });
	count = credits();
	region_open(&sources, &c, MOST * BYTES, IBV_ACCESS_REMOTE_READ);
	region_open(&sinks, &c, MOST * BYTES, ALL);
	for (i = 0; i < count; i++) {
		struct call *own = &pending[i].call;
		struct segment segment = segment_of(&sinks, i * BYTES, BYTES);

		pending[i].answered = false;
		data = sources.bytes + i * BYTES;
		switch (i % 3) {
		case 0:
			call_null(own);
			break;
		case 1:
			call_read(own, DATA, i, BYTES);
			header_add_write(&own->header, &segment, 1);
			data_copy(region_wanted(&sinks, sinks.bytes + i * BYTES), i, BYTES);
			break;
		default:
			call_write(own, i * BYTES, data, BYTES);
			call_reduce(own, 0);
			header_add_read(&own->header, own->items[0].position,
					segment_of(&sources, i * BYTES, BYTES));
		}
		if (!call_send(&c, own))
			break;
	}
	for (i = 0; i < count; i++) {
		got = answered(count);
		if (got < 0)
			break;
		if (got % 3 == 1 && file_results(&reply.body, 4) && read_result(&reply.body, BYTES))
			chunk_filled(&reply.header.write[0], &pending[got].call.header.write[0], BYTES);
		else if (got % 3 == 2)
			write_results(&reply.body, BYTES);
	}
	for (i = 2; i < count && !tap_failing(); i += 3)
		sink_holds(&c, i * BYTES, sources.bytes + i * BYTES, BYTES);
	region_close(&sinks, "the Write chunks");
	region_close(&sources, "the Read chunks");
	connection_close(&c);
	tap_point("calls with chunks are answered while others are in flight; replies have the XIDs "
		  "of their calls (RFC 8166, 3.3.1)");
}

/* More Reads than the client allows at once. The client's device refuses each beyond that. */
static void read_depth(int reads)
{
	struct connection_opts opts = plain();
	struct region sources;
	int count, i;

	opts.reads = reads;
	connection_open(&c, &opts);
	count = credits();
	region_open(&sources, &c, MOST * BYTES, IBV_ACCESS_REMOTE_READ);
	for (i = 0; i < count; i++) {
		struct call *own = &pending[i].call;

		pending[i].answered = false;
		call_write(own, i * BYTES, sources.bytes + i * BYTES, BYTES);
		call_reduce(own, 0);
		/* The server has three MRs per credit. */
		for (int part = 0; part < 2; part++)
			header_add_read(&own->header, own->items[0].position,
					segment_of(&sources, i * BYTES + part * BYTES / 2, BYTES / 2));
		if (!call_send(&c, own))
			break;
	}
	for (i = 0; i < count; i++)
		if (answered(count) < 0 || !write_results(&reply.body, BYTES))
			break;
	for (i = 0; i < count && !tap_failing(); i++)
		sink_holds(&c, i * BYTES, sources.bytes + i * BYTES, BYTES);
	region_close(&sources, "the Read chunks");
	connection_close(&c);
	tap_point("the server has no more than %d Reads outstanding if the client allows %d "
		  "(RFC 8166, 3.3.1)", reads, reads);
}

static void no_reads(void)
{
	struct connection_opts opts = plain();

	opts.reads = -1;
	connection_begin(&c, &opts);
	cm_expect(c.events, RDMA_CM_EVENT_REJECTED, NULL, NULL, NULL);
	connection_close(&c);
	tap_point("the server rejects a client that allows no Reads");
}

static void many_connections(void)
{
	static struct connection many[CONNECTIONS];
	struct connection_opts opts = plain();
	int i;

	for (i = 0; i < CONNECTIONS; i++)
		connection_begin(&many[i], &opts);
	for (i = 0; i < CONNECTIONS; i++)
		if (connection_established(&many[i]))
			works(&many[i]);
	for (i = 0; i < CONNECTIONS; i++)
		connection_close(&many[i]);
	tap_point("%d connections at once are accepted", CONNECTIONS);
}

static void other_family(void)
{
	struct connection_opts opts = { .server = server6 };

	connection_open(&c, &opts);
	works(&c);
	connection_close(&c);
	tap_point("the server answers over IPv6, netid rdma6 (RFC 8166, 5, 9)");
}

void test_sequences(void)
{
	pipelined_nulls();
	beyond_credits();
	pipelined_chunks();
	read_depth(1);
	read_depth(3);
	no_reads();
	many_connections();
	other_family();
}
