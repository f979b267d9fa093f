// SPDX-License-Identifier: GPL-2.0
/*
 * Connections that are opened at once, many more than the backlog of the listener. All are accepted.
 *
 *     cm_backlog COUNT BACKLOG ACTIVE PASSIVE [collect]
 *
 * The passive end accepts each request when it reads it; with `collect`, it reads all of them first.
 */
#include <endian.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/pair.h"
#include "common/tap.h"

/* The objects that the queue pairs of an end share. */
struct shared {
	struct rdma_event_channel *events;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
};

static struct shared client, server;
static struct rdma_cm_id **ids, **children;
static int count, requests;
static bool collects;

static void make_qp(struct shared *end, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};

	if (!end->pd) {
		end->pd = ibv_alloc_pd(id->verbs);
		end->cq = ibv_create_cq(id->verbs, 2, NULL, NULL, 0);
		if (!end->pd || !end->cq)
			tap_bail("a PD and a CQ: %m");
	}
	attr.send_cq = attr.recv_cq = end->cq;
	if (rdma_create_qp(id, end->pd, &attr))
		tap_bail("rdma_create_qp: %m");
}

static void accept_one(struct rdma_cm_id *id)
{
	struct rdma_conn_param param = { .initiator_depth = 1, .responder_resources = 1 };

	make_qp(&server, id);
	/* The client has given up, and says so. */
	if (rdma_accept(id, &param))
		tap_note("rdma_accept: %m");
}

/* Accepts connections, until `count` of them are established. */
static void *serve(void *)
{
	struct rdma_cm_event *event;
	int established = 0;

	while (established < count) {
		if (rdma_get_cm_event(server.events, &event))
			tap_bail("rdma_get_cm_event: %m");
		if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
			children[requests++] = event->id;
			if (!collects)
				accept_one(event->id);
			else if (requests == count)
				for (int i = 0; i < count; i++)
					accept_one(children[i]);
		} else if (event->event == RDMA_CM_EVENT_ESTABLISHED) {
			established++;
		}
		rdma_ack_cm_event(event);
	}
	return NULL;
}

/* Counts the connections of the client that are established, until all are or nothing more happens. */
static int wait_for_all(void)
{
	int64_t begin = now_ms();
	int established = 0, failed = 0;

	while (established + failed < count && readable_within(client.events->fd, PATIENCE)) {
		struct rdma_cm_event *event;

		if (rdma_get_cm_event(client.events, &event))
			tap_bail("rdma_get_cm_event: %m");
		if (event->event == RDMA_CM_EVENT_ESTABLISHED)
			established++;
		else if (!failed++)
			tap_note("%s, status %d", rdma_event_str(event->event), event->status);
		rdma_ack_cm_event(event);
	}
	tap_note("%d established, %d failed, %.1f s", established, failed, (now_ms() - begin) / 1e3);
	return established;
}

static void close_all(struct rdma_cm_id **all, int number)
{
	for (int i = 0; i < number; i++) {
		rdma_destroy_qp(all[i]);
		if (rdma_destroy_id(all[i]))
			tap_bail("rdma_destroy_id: %m");
	}
}

int main(int argc, char **argv)
{
	struct rdma_conn_param param = { .initiator_depth = 1, .responder_resources = 1 };
	struct side active, passive;
	struct rdma_cm_id *listener;
	pthread_t thread;

	if (argc < 5)
		tap_bail("usage: cm_backlog COUNT BACKLOG ACTIVE PASSIVE [collect]");
	count = atoi(argv[1]);
	active = side_parse(argv[3]);
	passive = side_parse(argv[4]);
	collects = argc > 5;
	ids = calloc(count, sizeof(*ids));
	children = calloc(count, sizeof(*children));
	client.events = cm_new_channel();
	server.events = cm_new_channel();
	listener = cm_listen(&passive, server.events, atoi(argv[2]));
	for (int i = 0; i < count; i++) {
		ids[i] = cm_resolve(&active, client.events, &passive,
				    be16toh(rdma_get_src_port(listener)));
		make_qp(&client, ids[i]);
	}
	if (pthread_create(&thread, NULL, serve, NULL))
		tap_bail("pthread_create");

	for (int i = 0; i < count; i++)
		if (rdma_connect(ids[i], &param))
			tap_bail("rdma_connect: %m");
	if (!tap_check(wait_for_all() == count, "not all are established"))
		pthread_cancel(thread);
	pthread_join(thread, NULL);
	close_all(ids, count);
	close_all(children, requests);
	if (rdma_destroy_id(listener))
		tap_bail("rdma_destroy_id: %m");
	tap_point("%d connections at once, backlog %s%s", count, argv[2],
		  collects ? ", read before the first is accepted" : "");
	return tap_done();
}
