/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A connected pair of QPs with both ends in this process: the active end connects to the passive
 * end through the RDMA CM. Each end may be in its own network namespace.
 */
#ifndef PAIR_H
#define PAIR_H

#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * The time-out for resolving an address: ib_core may miss a fast answer, and then retries only
 * after the time-out.
 */
#define RESOLVE_MS 1000

/* The place of an end: a numeric address, and the name of a namespace or NULL. */
struct side {
	const char *addr;
	const char *netns;
};

/* Parses `ADDRESS` or `ADDRESS%NAMESPACE`. */
struct side side_parse(char *text);

struct pair_opts {
	struct side active, passive;
	/* Capacities of each QP; 0 selects the default in parentheses. */
	uint32_t sq, rq;		/* (64) */
	uint32_t send_sge, recv_sge;	/* (the device's) */
	uint32_t inline_data;
	uint32_t cqe;			/* of each CQ (sq, rq) */
	uint32_t srq;			/* entries of the passive end's SRQ (none) */
	const struct end *share;	/* end with the PD and SRQ for the passive end (its own) */
	bool sig_all;
	uint8_t depth;			/* outstanding reads, both ways (16) */
	bool notify;			/* CQs with completion channels */
	uint64_t wc_flags;		/* of extended CQs (none are) */
	uint64_t send_ops;		/* of extended QPs (none are) */
};

struct end {
	const char *name;
	struct side side;
	struct rdma_event_channel *events;
	struct rdma_cm_id *id;
	struct ibv_context *ctx;
	struct ibv_device_attr attr;
	struct ibv_pd *pd;
	struct ibv_cq *scq, *rcq;
	struct ibv_comp_channel *schannel, *rchannel;
	struct ibv_srq *srq;
	bool shares;			/* its PD and SRQ belong to another end */
	struct ibv_qp *qp;
};

struct pair {
	struct end active, passive;
	struct rdma_cm_id *listener;
	struct rdma_event_channel *listen_events;
	uint16_t port;
};

/* Connects a pair. Ends the program on failure. */
void pair_open(struct pair *pair, const struct pair_opts *opts);

/* Disconnects and destroys a pair. Returns false if an object could not be destroyed. */
bool pair_close(struct pair *pair);

/* Enters a namespace (NULL: stays), and returns to the program's own. */
void netns_enter(const char *name);
void netns_leave(void);

/* Each ends the program on failure. */
struct rdma_event_channel *cm_new_channel(void);
/* Listens at a port that is free. */
struct rdma_cm_id *cm_listen(const struct side *side, struct rdma_event_channel *events, int backlog);
/* Returns an ID at `side` that has resolved the address of `to`, and the route. */
struct rdma_cm_id *cm_resolve(const struct side *side, struct rdma_event_channel *events,
			      const struct side *to, uint16_t port);
/* Sends the request of a connection, from the current namespace. Returns the listener's new ID. */
struct rdma_cm_id *cm_request(struct rdma_cm_id *id, struct rdma_event_channel *listen_events,
			      struct rdma_conn_param *param);
/* Accepts the request of `active`, and waits until both ends are connected. */
void cm_accept(struct rdma_cm_id *id, struct rdma_cm_id *active, struct rdma_conn_param *param);

/*
 * Waits for an event of the RDMA CM and acknowledges it. Returns whether it is the `wanted` event.
 * Copies its private data to `data` (up to *length bytes) if given.
 */
bool cm_expect(struct rdma_event_channel *events, enum rdma_cm_event_type wanted,
	       struct rdma_cm_id **id, void *data, uint8_t *length);

/* Returns the QP's state as the driver reports it. */
enum ibv_qp_state qp_state(struct ibv_qp *qp);
bool qp_reaches(struct ibv_qp *qp, enum ibv_qp_state state, int ms);
bool qp_to_error(struct ibv_qp *qp);

#endif
