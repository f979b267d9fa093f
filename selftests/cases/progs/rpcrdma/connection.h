/* SPDX-License-Identifier: GPL-2.0 */
/* A connection with Receives of one size, and the messages on it. */
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

struct connection {
	struct rdma_event_channel *events;
	struct rdma_cm_id *id;
	struct ibv_qp *qp;
	struct ibv_pd *pd;
	struct ibv_cq *scq, *rcq;
	struct ibv_comp_channel *arrivals;	/* of `rcq` */
	struct ibv_mr *receive_mr, *send_mr;
	uint8_t *receives, *sends;
	uint32_t receive;
	uint64_t posted, completed;		/* work requests of the send queue */
	const struct siw_cqe *received;		/* the ring of `rcq` */
	uint64_t receives_done;
	uint8_t private[64];			/* of the peer */
	uint8_t private_length;
};

/* A message of the peer. */
struct message {
	uint8_t bytes[RECEIVE_BYTES];
	uint32_t length;
	uint32_t invalidated;	/* the STag that it invalidated, or 0 */
};

/*
 * Makes the objects of a connection whose `id` has a device, and posts Receives of `receive` bytes
 * (0 for RECEIVE_BYTES). Ends the program on failure.
 */
void connection_prepare(struct connection *c, uint32_t receive);

/* Disconnects, and destroys everything. Fails a check if an object cannot be destroyed. */
void connection_close(struct connection *c);

/* Sends a message of up to SEND_BYTES bytes. Fails a check if that is not possible. */
bool connection_send(struct connection *c, const void *bytes, size_t length);

/* Likewise, and invalidates an STag of the peer. */
bool connection_send_invalidating(struct connection *c, const void *bytes, size_t length,
				  uint32_t stag);

/* Posts an RDMA Read or Write, and waits for its completion. Fails a check if it does not succeed. */
bool connection_rdma(struct connection *c, enum ibv_wr_opcode opcode, struct ibv_sge *sge,
		     uint64_t remote_addr, uint32_t stag);

/* Posts one, and waits for its completion, whatever its status is. */
bool connection_try_rdma(struct connection *c, enum ibv_wr_opcode opcode, struct ibv_sge *sge,
			 uint64_t remote_addr, uint32_t stag, enum ibv_wc_status *status);

/* Takes the next message. Fails a check if none arrives. */
bool connection_receive(struct connection *c, struct message *message);

/* Takes the next message if it has arrived. */
bool connection_poll(struct connection *c, struct message *message);

/* Checks that the peer sends nothing for SILENCE. */
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
