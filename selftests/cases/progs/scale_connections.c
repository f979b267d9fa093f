// SPDX-License-Identifier: GPL-2.0
/*
 * scale_connections MOST ACTIVE PASSIVE [DEPTH]: holds up to MOST connections, with both ends in this
 * process. All QPs of an end share a PD and a CQ. Each connection has up to DEPTH reads in flight (1),
 * both ways. Prints "ready". Then each line of stdin is a command:
 *
 * open COUNT	opens COUNT connections, one after another
 * use COUNT	sends COUNT messages, one after another, each on a connection chosen at random and in
 *		a random direction, and compares what arrives
 * close	checks that no connection has ended, and closes all
 *
 * Prints a line after each: its number, the microseconds that it took, and those of them from
 * rdma_connect() to the request and from rdma_accept() to the two events ESTABLISHED.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/completion.h"
#include "common/pair.h"
#include "common/post.h"
#include "common/random.h"
#include "common/tap.h"

#define MESSAGE 64
#define WRS 16
#define CQES 64
#define BACKLOG 16

/* Objects that all QPs of an end share. */
struct shared {
	struct side side;
	struct rdma_event_channel *events;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	unsigned char buf[MESSAGE];
};

struct connection {
	struct rdma_cm_id *active, *passive;
};

static struct shared active, passive;
static struct rdma_cm_id *listener;
static struct connection *connections;
static int most, number, depth = 1;
static struct rng rng = { 1 };
/* The time in which both ends only connect, in nanoseconds. */
static int64_t connecting;

static void share(struct shared *end, struct ibv_context *ctx)
{
	end->pd = ibv_alloc_pd(ctx);
	end->cq = ibv_create_cq(ctx, CQES, NULL, NULL, 0);
	if (!end->pd || !end->cq)
		tap_bail("a PD and a CQ: %m");
	end->mr = ibv_reg_mr(end->pd, end->buf, MESSAGE, IBV_ACCESS_LOCAL_WRITE);
	if (!end->mr)
		tap_bail("ibv_reg_mr: %m");
}

static void make_qp(struct shared *end, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = {
		.cap = { .max_send_wr = WRS, .max_recv_wr = WRS, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};

	if (!end->pd)
		share(end, id->verbs);
	init.send_cq = init.recv_cq = end->cq;
	if (rdma_create_qp(id, end->pd, &init))
		tap_bail("rdma_create_qp, connection %d: %m", number);
}

static void open_one(struct connection *to)
{
	struct rdma_conn_param param = { .initiator_depth = depth, .responder_resources = depth };

	to->active = cm_resolve(&active.side, active.events, &passive.side,
				be16toh(rdma_get_src_port(listener)));
	make_qp(&active, to->active);
	netns_enter(active.side.netns);
	connecting -= now_ns();
	to->passive = cm_request(to->active, passive.events, &param);
	connecting += now_ns();
	netns_leave();
	make_qp(&passive, to->passive);
	connecting -= now_ns();
	cm_accept(to->passive, to->active, &param);
	connecting += now_ns();
}

static void open_some(int count)
{
	if (count > most - number)
		tap_bail("more than %d connections", most);
	for (; count > 0; count--)
		open_one(&connections[number++]);
}

static void expect_wc(struct shared *end, struct ibv_qp *qp, enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc;

	if (!cq_next(end->cq, &wc, PATIENCE))
		tap_bail("no completion");
	if (wc.status || wc.opcode != opcode || wc.qp_num != qp->qp_num)
		tap_bail("%s, opcode %d of QP %u instead of %d of QP %u",
			 ibv_wc_status_str(wc.status), wc.opcode, wc.qp_num, opcode, qp->qp_num);
	if (opcode == IBV_WC_RECV && wc.byte_len != MESSAGE)
		tap_bail("a message of %u bytes", wc.byte_len);
}

static void send_one(struct shared *from, struct ibv_qp *qp, struct shared *to, struct ibv_qp *peer)
{
	struct ibv_sge source = { (uintptr_t)from->buf, MESSAGE, from->mr->lkey };
	struct ibv_sge sink = { (uintptr_t)to->buf, MESSAGE, to->mr->lkey };
	int status;

	rng_fill(&rng, from->buf, MESSAGE);
	status = post_recv(peer, 0, &sink, 1);
	if (!status)
		status = post_send(qp, 0, IBV_WR_SEND, &source, 1, 0, 0);
	if (status)
		tap_bail("posting: %s", strerror(status));
	expect_wc(to, peer, IBV_WC_RECV);
	expect_wc(from, qp, IBV_WC_SEND);
	if (memcmp(from->buf, to->buf, MESSAGE))
		tap_bail("another message has arrived");
}

static void use_some(int count)
{
	if (!number)
		tap_bail("no connections");
	for (; count > 0; count--) {
		struct connection *one = &connections[rng_below(&rng, number)];

		if (rng_below(&rng, 2))
			send_one(&active, one->active->qp, &passive, one->passive->qp);
		else
			send_one(&passive, one->passive->qp, &active, one->active->qp);
	}
}

static void close_all(void)
{
	if (readable_within(active.events->fd, 0) || readable_within(passive.events->fd, 0))
		tap_bail("an event before the close");
	while (number) {
		struct connection *one = &connections[--number];

		if (rdma_disconnect(one->active))
			tap_bail("rdma_disconnect, connection %d: %m", number);
		rdma_destroy_qp(one->active);
		rdma_destroy_qp(one->passive);
		/* Events that nobody has read go with the ID. */
		if (rdma_destroy_id(one->active) || rdma_destroy_id(one->passive))
			tap_bail("rdma_destroy_id, connection %d: %m", number);
	}
}

static void run_command(const char *line)
{
	static int commands;
	int64_t begun = now_ns();
	char name[8];
	int count = 0;

	connecting = 0;
	if (sscanf(line, "%7s %d", name, &count) < 1)
		tap_bail("an empty command");
	if (!strcmp(name, "open"))
		open_some(count);
	else if (!strcmp(name, "use"))
		use_some(count);
	else if (!strcmp(name, "close"))
		close_all();
	else
		tap_bail("no command: %s", name);
	printf("%d %lld %lld\n", ++commands, (long long)(now_ns() - begun) / 1000,
	       (long long)connecting / 1000);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	char line[64];

	if (argc < 4 || argc > 5 || (most = atoi(argv[1])) < 1)
		return 2;
	if (argc == 5)
		depth = atoi(argv[4]);
	active.side = side_parse(argv[2]);
	passive.side = side_parse(argv[3]);
	connections = calloc(most, sizeof(*connections));
	if (!connections)
		return 1;
	active.events = cm_new_channel();
	passive.events = cm_new_channel();
	listener = cm_listen(&passive.side, passive.events, BACKLOG);
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin))
		run_command(line);
	return 0;
}
