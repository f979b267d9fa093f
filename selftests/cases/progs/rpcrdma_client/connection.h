/* SPDX-License-Identifier: GPL-2.0 */
/* A connection to the server, with Receives of one size, and the messages on it. */
#ifndef CONNECTION_H
#define CONNECTION_H

#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../common/pair.h"

struct siw_cqe;

#define PORT "20049"		/* RFC 8166, section 5 */

#define RECEIVES 160		/* posted on each connection */
#define RECEIVE_BYTES 16384
#define SENDS 64		/* slots for messages that are being sent */
#define SEND_BYTES 8192
#define READS 16

struct connection_opts {
	const char *server;	/* numeric address */
	const void *private;	/* data, or NULL */
	uint8_t private_length;
	uint32_t receive;	/* bytes of each Receive (RECEIVE_BYTES) */
	int reads;		/* Reads that the server may have outstanding, -1 for 0 (READS) */
};

struct connection {
	struct rdma_event_channel *events;
	struct rdma_cm_id *id;
	struct ibv_qp *qp;
	struct ibv_pd *pd;
	struct ibv_cq *scq, *rcq;
	struct ibv_mr *receive_mr, *send_mr;
	uint8_t *receives, *sends;
	uint32_t receive;
	uint64_t sent, completed;
	const struct siw_cqe *received;	/* the ring of `rcq` */
	uint64_t receives_done;
	uint8_t private[64];	/* of the server's answer */
	uint8_t private_length;
};

/* A message of the server. */
struct message {
	uint8_t bytes[RECEIVE_BYTES];
	uint32_t length;
	uint32_t invalidated;	/* the STag that it invalidated, or 0 */
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

/* Disconnects, and destroys everything. Fails a check if an object cannot be destroyed. */
void connection_close(struct connection *c);

/* Sends a message of up to SEND_BYTES bytes. Fails a check if that is not possible. */
bool connection_send(struct connection *c, const void *bytes, size_t length);

/* Takes the next message. Fails a check if none arrives. */
bool connection_receive(struct connection *c, struct message *message);

/* Checks that the server sends nothing for SILENCE. */
bool connection_silent(struct connection *c);

/* Checks that the connection ends, and that no message arrives before. */
bool connection_ends(struct connection *c);

/* Checks that the connection ends, and that the next Receive fails with a status. */
bool connection_fails(struct connection *c, enum ibv_wc_status status);

enum way { SENT, RECEIVED };

/* Returns the number of Terminates that the client's device has sent or received. */
uint64_t terminates(const struct connection *c, enum way way);

/* Checks that it has sent one more since there were `before`. */
bool terminated(const struct connection *c, enum way way, uint64_t before);

#endif
