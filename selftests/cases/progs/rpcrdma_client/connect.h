/* SPDX-License-Identifier: GPL-2.0 */
/* Connecting to the server. */
#ifndef CONNECT_H
#define CONNECT_H

#include <stdbool.h>
#include <stdint.h>

#include "../common/pair.h"
#include "../rpcrdma/connection.h"

#define READS 16

struct connection_opts {
	const char *server;	/* numeric address */
	const void *private;	/* data, or NULL */
	uint8_t private_length;
	uint32_t receive;	/* bytes of each Receive (RECEIVE_BYTES) */
	int reads;		/* Reads that the server may have outstanding, -1 for 0 (READS) */
};

/* The side of all connections. */
extern struct side client;

/*
 * Starts to connect. A connection is then established, unless connection_established() fails a
 * check. Ends the program if there is no way to the server.
 */
void connection_begin(struct connection *c, const struct connection_opts *opts);
bool connection_established(struct connection *c);

/* Connects. Ends the program on failure. */
void connection_open(struct connection *c, const struct connection_opts *opts);

#endif
