// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include "pair.h"

#include <fcntl.h>
#include <netdb.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "listen.h"
#include "tap.h"

struct side side_parse(char *text)
{
	struct side side = { .addr = text };
	char *sign = strchr(text, '%');

	if (sign) {
		*sign = '\0';
		side.netns = sign + 1;
	}
	return side;
}

static int own_netns = -1;

static void netns_set(int fd)
{
	if (fd < 0 || setns(fd, CLONE_NEWNET))
		tap_bail("setns");
}

void netns_enter(const char *name)
{
	char path[256];
	int fd;

	if (!name)
		return;
	if (own_netns < 0)
		own_netns = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	snprintf(path, sizeof(path), "/run/netns/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	netns_set(fd);
	close(fd);
}

void netns_leave(void)
{
	if (own_netns >= 0)
		netns_set(own_netns);
}

bool cm_expect(struct rdma_event_channel *events, enum rdma_cm_event_type wanted,
	       struct rdma_cm_id **id, void *data, uint8_t *length)
{
	struct rdma_cm_event *event;
	bool got;

	if (!readable_within(events->fd, PATIENCE))
		return tap_check(false, "no CM event, waiting for %s", rdma_event_str(wanted));
	if (rdma_get_cm_event(events, &event))
		return tap_check(false, "rdma_get_cm_event: %m");
	got = event->event == wanted;
	tap_check(got, "CM event %s (status %d), wanted %s", rdma_event_str(event->event),
		  event->status, rdma_event_str(wanted));
	if (id)
		*id = event->id;
	if (data && length) {
		if (*length > event->param.conn.private_data_len)
			*length = event->param.conn.private_data_len;
		memcpy(data, event->param.conn.private_data, *length);
	}
	rdma_ack_cm_event(event);
	return got;
}

static struct rdma_cm_id *new_id(const struct side *side, struct rdma_event_channel *events)
{
	struct rdma_cm_id *id;
	int status;

	netns_enter(side->netns);
	status = rdma_create_id(events, &id, NULL, RDMA_PS_TCP);
	netns_leave();
	if (status)
		tap_bail("rdma_create_id");
	return id;
}

struct rdma_event_channel *cm_new_channel(void)
{
	struct rdma_event_channel *events = rdma_create_event_channel();

	if (!events)
		tap_bail("rdma_create_event_channel");
	return events;
}

static struct rdma_addrinfo *resolve(const struct side *side, const char *port, bool passive)
{
	struct rdma_addrinfo hints = {
		.ai_flags = RAI_NUMERICHOST | (passive ? RAI_PASSIVE : 0),
		.ai_port_space = RDMA_PS_TCP,
	};
	struct rdma_addrinfo *info;

	if (rdma_getaddrinfo(side->addr, port, &hints, &info))
		tap_bail("rdma_getaddrinfo %s", side->addr);
	return info;
}

struct rdma_cm_id *cm_listen(const struct side *side, struct rdma_event_channel *events, int backlog)
{
	struct rdma_addrinfo *info = resolve(side, NULL, true);
	struct rdma_cm_id *id;

	netns_enter(side->netns);
	id = listen_anywhere(events, info->ai_src_addr, backlog);
	if (!id)
		tap_bail("rdma_listen on %s", side->addr);
	netns_leave();
	rdma_freeaddrinfo(info);
	return id;
}

struct rdma_cm_id *cm_resolve(const struct side *side, struct rdma_event_channel *events,
			      const struct side *to, uint16_t port)
{
	struct rdma_cm_id *id = new_id(side, events);
	struct rdma_addrinfo *info;
	char text[8];

	snprintf(text, sizeof(text), "%u", port);
	info = resolve(to, text, false);
	if (rdma_resolve_addr(id, NULL, info->ai_dst_addr, RESOLVE_MS) ||
	    !cm_expect(events, RDMA_CM_EVENT_ADDR_RESOLVED, NULL, NULL, NULL) ||
	    rdma_resolve_route(id, RESOLVE_MS) ||
	    !cm_expect(events, RDMA_CM_EVENT_ROUTE_RESOLVED, NULL, NULL, NULL))
		tap_bail("resolving %s", to->addr);
	rdma_freeaddrinfo(info);
	return id;
}

struct rdma_cm_id *cm_request(struct rdma_cm_id *id, struct rdma_event_channel *listen_events,
			      struct rdma_conn_param *param)
{
	struct rdma_cm_id *passive;

	if (rdma_connect(id, param) ||
	    !cm_expect(listen_events, RDMA_CM_EVENT_CONNECT_REQUEST, &passive, NULL, NULL))
		tap_bail("rdma_connect: %m");
	return passive;
}

void cm_accept(struct rdma_cm_id *id, struct rdma_cm_id *active, struct rdma_conn_param *param)
{
	if (rdma_accept(id, param) ||
	    !cm_expect(active->channel, RDMA_CM_EVENT_ESTABLISHED, NULL, NULL, NULL) ||
	    !cm_expect(id->channel, RDMA_CM_EVENT_ESTABLISHED, NULL, NULL, NULL))
		tap_bail("rdma_accept: %m");
}

static struct ibv_cq *make_cq(struct end *end, const struct pair_opts *opts, uint32_t cqe,
			      struct ibv_comp_channel *channel)
{
	struct ibv_cq_init_attr_ex init = {
		.cqe = cqe, .cq_context = end, .channel = channel, .wc_flags = opts->wc_flags,
	};
	struct ibv_cq_ex *cq;

	if (!opts->wc_flags)
		return ibv_create_cq(end->ctx, cqe, end, channel, 0);
	cq = ibv_create_cq_ex(end->ctx, &init);
	return cq ? ibv_cq_ex_to_cq(cq) : NULL;
}

static void end_make_cqs(struct end *end, const struct pair_opts *opts)
{
	uint32_t cqe = opts->cqe;

	if (opts->notify) {
		end->schannel = ibv_create_comp_channel(end->ctx);
		end->rchannel = ibv_create_comp_channel(end->ctx);
		if (!end->schannel || !end->rchannel)
			tap_bail("ibv_create_comp_channel");
	}
	end->scq = make_cq(end, opts, cqe ? cqe : opts->sq + 1, end->schannel);
	end->rcq = make_cq(end, opts, cqe ? cqe : (opts->srq ? opts->srq : opts->rq) + 1,
			   end->rchannel);
	if (!end->scq || !end->rcq)
		tap_bail("ibv_create_cq");
}

static uint32_t or_else(uint32_t value, uint32_t otherwise)
{
	return value ? value : otherwise;
}

static void end_make_pd(struct end *end, const struct pair_opts *opts, const struct end *share, bool srq)
{
	struct ibv_srq_init_attr init = { .attr.max_wr = opts->srq };

	if (share) {
		end->pd = share->pd;
		end->srq = share->srq;
		end->shares = true;
		return;
	}
	end->pd = ibv_alloc_pd(end->ctx);
	if (!end->pd)
		tap_bail("ibv_alloc_pd");
	if (!srq)
		return;
	init.attr.max_sge = or_else(opts->recv_sge, end->attr.max_srq_sge);
	end->srq = ibv_create_srq(end->pd, &init);
	if (!end->srq)
		tap_bail("ibv_create_srq");
}

static void end_make_qp(struct end *end, const struct pair_opts *opts, const struct end *share, bool srq)
{
	struct ibv_qp_init_attr_ex init = {};

	end->ctx = end->id->verbs;
	if (ibv_query_device(end->ctx, &end->attr))
		tap_bail("ibv_query_device");
	end_make_pd(end, opts, share, srq);
	end_make_cqs(end, opts);
	init.qp_context = end;
	init.send_cq = end->scq;
	init.recv_cq = end->rcq;
	init.srq = end->srq;
	init.cap.max_send_wr = opts->sq;
	init.cap.max_recv_wr = opts->rq;
	init.cap.max_send_sge = or_else(opts->send_sge, end->attr.max_sge);
	init.cap.max_recv_sge = or_else(opts->recv_sge, end->attr.max_sge);
	init.cap.max_inline_data = opts->inline_data;
	init.qp_type = IBV_QPT_RC;
	init.sq_sig_all = opts->sig_all;
	init.comp_mask = IBV_QP_INIT_ATTR_PD;
	init.pd = end->pd;
	if (opts->send_ops) {
		init.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		init.send_ops_flags = opts->send_ops;
	}
	if (rdma_create_qp_ex(end->id, &init))
		tap_bail("rdma_create_qp_ex");
	end->qp = end->id->qp;
}

void pair_open(struct pair *pair, const struct pair_opts *given)
{
	struct pair_opts filled = *given, *opts = &filled;
	struct end *active = &pair->active, *passive = &pair->passive;
	struct rdma_conn_param param = {};

	if (!opts->sq)
		opts->sq = 64;
	if (!opts->rq)
		opts->rq = 64;
	if (!opts->depth)
		opts->depth = 16;
	memset(pair, 0, sizeof(*pair));
	*active = (struct end){ .name = "active", .side = opts->active };
	*passive = (struct end){ .name = "passive", .side = opts->passive };

	pair->listen_events = cm_new_channel();
	pair->listener = cm_listen(&passive->side, pair->listen_events, 4);
	pair->port = be16toh(rdma_get_src_port(pair->listener));

	active->events = cm_new_channel();
	active->id = cm_resolve(&active->side, active->events, &passive->side, pair->port);
	end_make_qp(active, opts, NULL, false);

	param.initiator_depth = opts->depth;
	param.responder_resources = opts->depth;
	netns_enter(active->side.netns);
	passive->id = cm_request(active->id, pair->listen_events, &param);
	netns_leave();
	passive->events = cm_new_channel();
	if (rdma_migrate_id(passive->id, passive->events))
		tap_bail("rdma_migrate_id");
	end_make_qp(passive, opts, opts->share, opts->srq);
	cm_accept(passive->id, active->id, &param);
}

static bool end_close(struct end *end)
{
	bool all = true;

	if (end->qp)
		rdma_destroy_qp(end->id);
	all &= !end->srq || end->shares || !ibv_destroy_srq(end->srq);
	all &= !end->scq || !ibv_destroy_cq(end->scq);
	all &= !end->rcq || !ibv_destroy_cq(end->rcq);
	all &= !end->schannel || !ibv_destroy_comp_channel(end->schannel);
	all &= !end->rchannel || !ibv_destroy_comp_channel(end->rchannel);
	all &= !end->pd || end->shares || !ibv_dealloc_pd(end->pd);
	all &= !end->id || !rdma_destroy_id(end->id);
	if (end->events)
		rdma_destroy_event_channel(end->events);
	return all;
}

bool pair_close(struct pair *pair)
{
	bool all = true;

	if (pair->active.id)
		rdma_disconnect(pair->active.id);
	all &= end_close(&pair->active);
	all &= end_close(&pair->passive);
	all &= !pair->listener || !rdma_destroy_id(pair->listener);
	if (pair->listen_events)
		rdma_destroy_event_channel(pair->listen_events);
	memset(pair, 0, sizeof(*pair));
	return all;
}

enum ibv_qp_state qp_state(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (ibv_query_qp(qp, &attr, IBV_QP_STATE, &init))
		return IBV_QPS_UNKNOWN;
	return attr.qp_state;
}

bool qp_reaches(struct ibv_qp *qp, enum ibv_qp_state state, int ms)
{
	int64_t end = now_ms() + ms;

	while (qp_state(qp) != state) {
		if (now_ms() > end)
			return false;
		sleep_ms(1);
	}
	return true;
}

bool qp_to_error(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	return !ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}
