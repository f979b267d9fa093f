// SPDX-License-Identifier: GPL-2.0
#include "connections.h"

#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <string.h>

#include "common/access.h"
#include "common/clock.h"
#include "common/completion.h"
#include "common/listen.h"
#include "common/post.h"
#include "common/tap.h"
#include "inject.h"
#include "link.h"

#define BYTES (256 << 10)

static const char *address;

void connections_init(const char *own_address)
{
	address = own_address;
}

/* One end, as far as it is set up. */
struct end {
	struct rdma_event_channel *events;
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
};

static struct end active, passive, listener;
static uint8_t bytes[BYTES];

static void fill(struct sockaddr_storage *at, int port)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_NUMERICHOST | RAI_PASSIVE,
				       .ai_port_space = RDMA_PS_TCP };
	struct rdma_addrinfo *info;
	char service[8];

	snprintf(service, sizeof(service), "%d", port);
	if (rdma_getaddrinfo(address, service, &hints, &info))
		tap_bail("rdma_getaddrinfo %s", address);
	memcpy(at, info->ai_src_addr, info->ai_src_len);
	rdma_freeaddrinfo(info);
}

static void make_events(struct end *end)
{
	end->events = rdma_create_event_channel();
	if (!end->events)
		tap_bail("rdma_create_event_channel: %m");
}

static void make_id(struct end *end)
{
	make_events(end);
	if (rdma_create_id(end->events, &end->id, NULL, RDMA_PS_TCP))
		tap_bail("rdma_create_id: %m");
}

void want_bound(void)
{
	struct sockaddr_storage at;

	link_must_be();
	make_id(&listener);
	fill(&at, 0);
	if (rdma_bind_addr(listener.id, (struct sockaddr *)&at))
		tap_bail("rdma_bind_addr: %m");
}

int do_listen(void)
{
	return rdma_listen(listener.id, 4) ? -errno : 0;
}

void want_listener(void)
{
	struct sockaddr_storage at;

	link_must_be();
	make_events(&listener);
	fill(&at, 0);
	listener.id = listen_anywhere(listener.events, (struct sockaddr *)&at, 4);
	if (!listener.id)
		tap_bail("rdma_listen: %m");
}

static bool event(struct end *end, enum rdma_cm_event_type wanted, struct rdma_cm_id **id)
{
	struct rdma_cm_event *got;
	bool right;

	if (!readable_within(end->events->fd, PATIENCE) || rdma_get_cm_event(end->events, &got))
		return false;
	right = got->event == wanted;
	if (id && right)
		*id = got->id;
	rdma_ack_cm_event(got);
	return right;
}

/* Creates the objects that a QP needs. */
static void equip(struct end *end)
{
	end->pd = ibv_alloc_pd(end->id->verbs);
	end->cq = end->pd ? ibv_create_cq(end->id->verbs, 100, NULL, NULL, 0) : NULL;
	end->mr = end->cq ? ibv_reg_mr(end->pd, bytes, BYTES, ALL) : NULL;
	if (!end->mr)
		tap_bail("what a QP needs: %m");
}

static int make_qp(struct end *end)
{
	struct ibv_qp_init_attr init = {
		.send_cq = end->cq, .recv_cq = end->cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 2, .max_recv_sge = 2 },
	};

	return rdma_create_qp(end->id, end->pd, &init) ? -errno : 0;
}

void want_route(void)
{
	struct sockaddr_storage at;

	want_listener();
	make_id(&active);
	fill(&at, ntohs(rdma_get_src_port(listener.id)));
	if (rdma_resolve_addr(active.id, NULL, (struct sockaddr *)&at, 2000) ||
	    !event(&active, RDMA_CM_EVENT_ADDR_RESOLVED, NULL) ||
	    rdma_resolve_route(active.id, 2000) ||
	    !event(&active, RDMA_CM_EVENT_ROUTE_RESOLVED, NULL))
		tap_bail("resolving: %m");
	equip(&active);
}

int do_qp(void)
{
	return make_qp(&active);
}

void want_qp(void)
{
	want_route();
	if (do_qp())
		tap_bail("rdma_create_qp: %m");
}

int do_destroy_qp(void)
{
	int status = ibv_destroy_qp(active.id->qp);

	if (!status)
		active.id->qp = NULL;
	return -status;
}

int do_query_qp(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	return -ibv_query_qp(active.id->qp, &attr, IBV_QP_STATE, &init);
}

int do_modify_qp(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	return -ibv_modify_qp(active.id->qp, &attr, IBV_QP_STATE);
}

static int number;

void want_unbound(void)
{
	want_qp();
	number = link_number();
}

int do_bind(void)
{
	return link_bind_counter(number, active.id->qp->qp_num);
}

static struct rdma_conn_param param = { .initiator_depth = 4, .responder_resources = 4 };

int do_connect(void)
{
	return rdma_connect(active.id, &param) ? -errno : 0;
}

void want_request(void)
{
	want_qp();
	if (do_connect() || !event(&listener, RDMA_CM_EVENT_CONNECT_REQUEST, &passive.id))
		tap_bail("rdma_connect: %m");
	equip(&passive);
	if (make_qp(&passive))
		tap_bail("rdma_create_qp: %m");
}

int do_accept(void)
{
	return rdma_accept(passive.id, &param) ? -errno : 0;
}

int do_reject(void)
{
	return rdma_reject(passive.id, "no", 2) ? -errno : 0;
}

void want_connection(void)
{
	want_request();
	if (do_accept() || !event(&active, RDMA_CM_EVENT_ESTABLISHED, NULL) ||
	    !event(&listener, RDMA_CM_EVENT_ESTABLISHED, NULL))
		tap_bail("rdma_accept: %m");
}

static struct ibv_sge sge(struct end *end, uint32_t length)
{
	return (struct ibv_sge){ (uintptr_t)bytes, length, end->mr->lkey };
}

void want_receive(void)
{
	struct ibv_sge to;

	want_connection();
	to = sge(&passive, BYTES);
	if (post_recv(passive.id->qp, 1, &to, 1))
		tap_bail("post_recv: %m");
}

static uint32_t send_bytes;
static enum ibv_wr_opcode opcode;

static int do_post(void)
{
	struct ibv_sge from = sge(&active, send_bytes);

	if (opcode == IBV_WR_SEND)
		return -post_send(active.id->qp, 2, opcode, &from, 1, IBV_SEND_SIGNALED, 0);
	return -post_rdma(active.id->qp, 2, opcode, &from, 1, IBV_SEND_SIGNALED,
			  (uintptr_t)bytes, passive.mr->rkey);
}

int do_post_small(void)
{
	send_bytes = 100;
	opcode = IBV_WR_SEND;
	return do_post();
}

int do_post_large(void)
{
	send_bytes = BYTES;
	opcode = IBV_WR_SEND;
	return do_post();
}

int do_post_read(void)
{
	send_bytes = BYTES;
	opcode = IBV_WR_RDMA_READ;
	return do_post();
}

/* In every case the posted requests complete. */
void completes(int status)
{
	struct ibv_wc wc;

	if (!status)
		tap_check(cq_next(active.cq, &wc, PATIENCE), "what was posted does not complete");
}

int do_post_recv(void)
{
	struct ibv_sge to = sge(&passive, BYTES);

	return -post_recv(passive.id->qp, 3, &to, 1);
}

int do_disconnect(void)
{
	return rdma_disconnect(active.id) ? -errno : 0;
}

int do_drop(void)
{
	int status = rdma_destroy_id(listener.id);

	if (!status)
		listener.id = NULL;
	return status ? -errno : 0;
}

static void drop(struct end *end)
{
	bool all = true;

	if (end->id && end->id->qp)
		rdma_destroy_qp(end->id);
	all &= !end->mr || !ibv_dereg_mr(end->mr);
	all &= !end->cq || !ibv_destroy_cq(end->cq);
	all &= !end->pd || !ibv_dealloc_pd(end->pd);
	all &= !end->id || is_destroyed(rdma_destroy_id(end->id) ? errno : 0);
	if (end->events)
		rdma_destroy_event_channel(end->events);
	tap_check(all, "something could not be destroyed: %m");
	memset(end, 0, sizeof(*end));
}

/* Drops a connection request that was not accepted. */
static void drop_request(void)
{
	struct rdma_cm_event *got;

	while (listener.id && readable_within(listener.events->fd, 0) &&
	       !rdma_get_cm_event(listener.events, &got)) {
		struct rdma_cm_id *id = got->event == RDMA_CM_EVENT_CONNECT_REQUEST ? got->id : NULL;

		rdma_ack_cm_event(got);
		if (id)
			rdma_destroy_id(id);
	}
}

void connections_drop(void)
{
	drop(&active);
	drop(&passive);
	drop_request();
	drop(&listener);
}
