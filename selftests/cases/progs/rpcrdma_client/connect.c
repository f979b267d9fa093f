// SPDX-License-Identifier: GPL-2.0
#include "connect.h"

#include <string.h>

#include "../common/tap.h"

struct side client;

static void resolve(struct connection *c, const char *server)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_NUMERICHOST, .ai_port_space = RDMA_PS_TCP };
	struct rdma_addrinfo *info;
	int status;

	c->events = rdma_create_event_channel();
	if (!c->events)
		tap_bail("rdma_create_event_channel");
	netns_enter(client.netns);
	status = rdma_create_id(c->events, &c->id, NULL, RDMA_PS_TCP);
	netns_leave();
	if (status)
		tap_bail("rdma_create_id");
	if (rdma_getaddrinfo(server, PORT, &hints, &info))
		tap_bail("rdma_getaddrinfo %s", server);
	if (rdma_resolve_addr(c->id, NULL, info->ai_dst_addr, RESOLVE_MS) ||
	    !cm_expect(c->events, RDMA_CM_EVENT_ADDR_RESOLVED, NULL, NULL, NULL) ||
	    rdma_resolve_route(c->id, RESOLVE_MS) ||
	    !cm_expect(c->events, RDMA_CM_EVENT_ROUTE_RESOLVED, NULL, NULL, NULL))
		tap_bail("resolving %s", server);
	rdma_freeaddrinfo(info);
}

void connection_begin(struct connection *c, const struct connection_opts *opts)
{
	struct rdma_conn_param param = {
		.private_data = opts->private,
		.private_data_len = opts->private_length,
		.responder_resources = opts->reads < 0 ? 0 : opts->reads ? opts->reads : READS,
	};
	int status;

	memset(c, 0, sizeof(*c));
	resolve(c, opts->server);
	connection_prepare(c, opts->receive);
	netns_enter(client.netns);
	status = rdma_connect(c->id, &param);
	netns_leave();
	if (status)
		tap_bail("rdma_connect");
}

bool connection_established(struct connection *c)
{
	c->private_length = sizeof(c->private);
	return cm_expect(c->events, RDMA_CM_EVENT_ESTABLISHED, NULL, c->private,
			 &c->private_length);
}

void connection_open(struct connection *c, const struct connection_opts *opts)
{
	connection_begin(c, opts);
	if (!connection_established(c))
		tap_bail("connecting to %s", opts->server);
}
