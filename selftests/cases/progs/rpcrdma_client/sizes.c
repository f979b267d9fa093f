// SPDX-License-Identifier: GPL-2.0
/* Inline thresholds, and the private data that announce them (RFC 8797). */
#include <string.h>

#include "../common/tap.h"
#include "../rpcrdma/private.h"
#include "tests.h"

#define THRESHOLD 4096		/* of the server: its default */

static struct call call;
static struct connection c;
static uint8_t data[THRESHOLD];

/* Makes a WRITE that is a message of `length` bytes. */
static uint32_t message_of(uint32_t length)
{
	uint32_t without;

	call_write(&call, 0, data, 0);
	without = SHORTEST + call.body.at;
	rng_fill(&rng, data, length - without);
	call_write(&call, 0, data, length - without);
	return length - without;
}

static void servers_private_data(void)
{
	struct private got = {};
	struct connection_opts opts = plain();
	uint8_t own[PRIVATE_BYTES];

	private_put(own, (struct private){ .magic = MAGIC, .version = 1, .send = 3, .receive = 3 });
	opts.private = own;
	opts.private_length = sizeof(own);
	connection_open(&c, &opts);
	if (tap_check(c.private_length >= PRIVATE_BYTES, "%u bytes of private data, wanted %d",
		      c.private_length, PRIVATE_BYTES)) {
		got = private_get(c.private);
		tap_check(got.magic == MAGIC && got.version == 1, "magic %#x, version %u", got.magic,
			  got.version);
		tap_check(!(got.flags & ~R), "flags %#x: reserved bits are set", got.flags);
		tap_check(size_decoded(got.send) == THRESHOLD && size_decoded(got.receive) == THRESHOLD,
			  "sizes %u and %u, wanted %d", size_decoded(got.send),
			  size_decoded(got.receive), THRESHOLD);
	}
	tap_point("the server's private data have its sizes (RFC 8797, 4)");
	tap_check(!(got.flags & R), "flags %#x", got.flags);
	tap_point("the server's private data have no R (RFC 8797, 4.1)");
}

static void long_calls(void)
{
	uint8_t bytes[THRESHOLD + WORD];
	uint64_t before;
	uint32_t length;
	struct xdr x;

	length = message_of(THRESHOLD);
	if (write_done(&c, &call, length))
		sink_holds(&c, 0, data, length);
	tap_point("a call of the server's Receive Size is accepted (RFC 8797, 4.2)");

	message_of(THRESHOLD);
	x = xdr_of(bytes, sizeof(bytes));
	header_put(&x, &call.header);
	call_put_body(&x, &call);
	xdr_put(&x, 0);
	before = terminates(&c, RECEIVED);
	if (connection_send(&c, bytes, THRESHOLD + 1) && connection_ends(&c))
		terminated(&c, RECEIVED, before);
	connection_close(&c);
	tap_point("a call of one byte more ends the connection by a Terminate of the server "
		  "(RFC 8166, 3.3)");
}

/* Reads inline, and expects a message of more than `limit` bytes. */
static void reads_more_than(uint32_t limit)
{
	struct reply reply;
	uint8_t wanted[3000];

	data_copy(wanted, 0, sizeof(wanted));
	call_read(&call, DATA, 0, sizeof(wanted));
	if (call_do(&c, &call, &reply) && file_results(&reply.body, 4) &&
	    read_result(&reply.body, sizeof(wanted))) {
		const uint8_t *got = xdr_get_bytes(&reply.body, sizeof(wanted));

		tap_check(got && !memcmp(got, wanted, sizeof(wanted)), "the data differ");
		tap_check(reply.message.length > limit, "a reply of %u bytes", reply.message.length);
	}
}

static void long_replies(void)
{
	struct connection_opts opts = plain();
	uint8_t own[PRIVATE_BYTES];
	uint64_t before;

	private_put(own, (struct private){ .magic = MAGIC, .version = 1 });
	opts.private = own;
	opts.private_length = sizeof(own);
	connection_open(&c, &opts);
	reads_more_than(1024);
	connection_close(&c);
	tap_point("a reply is longer than the client's Receive Size "
		  "(deviates from RFC 8797, 4.2, and RFC 8166, 3.3.2)");

	opts = plain();
	connection_open(&c, &opts);
	works(&c);
	message_of(1024);
	write_done(&c, &call, call.items[0].length);
	tap_point("without private data, calls of 1024 bytes are accepted (RFC 8166, 3.3.3)");
	reads_more_than(1024);
	connection_close(&c);
	tap_point("without private data, a reply is longer than 1024 bytes "
		  "(deviates from RFC 8166, 3.3.3, and RFC 8797, 5.1)");

	opts.receive = 1024;
	connection_open(&c, &opts);
	works(&c);
	call_read(&call, DATA, 0, 3000);
	before = terminates(&c, SENT);
	if (call_send(&c, &call) && connection_fails(&c, IBV_WC_LOC_LEN_ERR))
		terminated(&c, SENT, before);
	connection_close(&c);
	tap_point("a reply that is longer than the Receive ends the connection by a Terminate of the "
		  "client (RFC 8166, 4.5.3)");
}

void test_sizes(void)
{
	servers_private_data();
	long_calls();
	long_replies();
}
