// SPDX-License-Identifier: GPL-2.0
/*
 * One end of connections, for cases that test connection setup and teardown. It writes a line for
 * each event of the RDMA CM, and ends by itself when no event is pending.
 *
 *     cm_peer serve ADDRESS PORT [OPTION...]      until it is killed
 *     cm_peer connect ADDRESS PORT [OPTION...]    one connection
 *
 *     backlog=N   of the listener (8)
 *     data=N      bytes of private data to send (0)
 *     ird=N ord=N read depths (1)
 *     reject      serve: reject requests, with the private data
 *     hold        serve: leave requests unanswered
 *     idle        serve: do not read events
 *     slow        serve: answer 10 requests in a second
 *     twice       serve: accept each request a second time, with another queue pair
 *     regret      serve: reject each request after it was accepted
 *     ib          serve: listen in the port space RDMA_PS_IB instead of RDMA_PS_TCP
 *     deaf        serve: stop listening at the first request, and accept it a second later
 *     from=ADDR   connect: source address
 *     source=PORT connect: source port, with from=
 *     stay        connect: stay connected until the peer disconnects
 *     post        connect: post a SEND as soon as the QP takes it
 *     tos=N       type of service
 *     abort       connect: with a line on stdin, move the queue pair to ERROR while connecting
 *     wait        connect: create the queue pair, print its number, wait for a line on stdin
 *     qpn=N       use the queue pair with this number instead of the process's own
 */
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
	int backlog, data, ird, ord, tos, qpn;
	bool reject, hold, idle, ib, deaf, stay, wait, abort, twice, regret, post, slow;
	char from[64], source[8];
} opts = { .backlog = 8, .ird = 1, .ord = 1, .tos = -1 };

static uint8_t private_data[256];

static void die(const char *what)
{
	printf("failed: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void parse(int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		if (sscanf(argv[i], "backlog=%d", &opts.backlog) == 1 ||
		    sscanf(argv[i], "data=%d", &opts.data) == 1 ||
		    sscanf(argv[i], "ird=%d", &opts.ird) == 1 ||
		    sscanf(argv[i], "ord=%d", &opts.ord) == 1 ||
		    sscanf(argv[i], "qpn=%d", &opts.qpn) == 1 ||
		    sscanf(argv[i], "from=%63s", opts.from) == 1 ||
		    sscanf(argv[i], "source=%7s", opts.source) == 1 ||
		    sscanf(argv[i], "tos=%d", &opts.tos) == 1)
			continue;
		if (!strcmp(argv[i], "reject"))
			opts.reject = true;
		else if (!strcmp(argv[i], "hold"))
			opts.hold = true;
		else if (!strcmp(argv[i], "idle"))
			opts.idle = true;
		else if (!strcmp(argv[i], "slow"))
			opts.slow = true;
		else if (!strcmp(argv[i], "ib"))
			opts.ib = true;
		else if (!strcmp(argv[i], "twice"))
			opts.twice = true;
		else if (!strcmp(argv[i], "regret"))
			opts.regret = true;
		else if (!strcmp(argv[i], "deaf"))
			opts.deaf = true;
		else if (!strcmp(argv[i], "stay"))
			opts.stay = true;
		else if (!strcmp(argv[i], "abort"))
			opts.abort = true;
		else if (!strcmp(argv[i], "wait"))
			opts.wait = true;
		else if (!strcmp(argv[i], "post"))
			opts.post = true;
		else
			die(argv[i]);
	}
	for (size_t i = 0; i < sizeof(private_data); i++)
		private_data[i] = i * 7 + 1;
}

/* Shows the private data of an event: its length, and whether it matches a cm_peer's. */
static void show(const struct rdma_cm_event *event)
{
	const struct rdma_conn_param *conn = &event->param.conn;
	const uint8_t *data = conn->private_data;

	printf("%s status=%d", rdma_event_str(event->event), event->status);
	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST ||
	    event->event == RDMA_CM_EVENT_ESTABLISHED || event->event == RDMA_CM_EVENT_REJECTED)
		printf(" data=%u%s ird=%u ord=%u", conn->private_data_len,
		       data && memcmp(data, private_data, conn->private_data_len) ? "(other)" : "",
		       conn->responder_resources, conn->initiator_depth);
	printf("\n");
}

static void make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	if (rdma_create_qp(id, NULL, &attr))
		die("rdma_create_qp");
	/* librdmacm passes this number on. */
	if (opts.qpn)
		id->qp->qp_num = opts.qpn;
}

static struct rdma_conn_param parameters(void)
{
	return (struct rdma_conn_param){
		.private_data = opts.data ? private_data : NULL,
		.private_data_len = opts.data,
		.responder_resources = opts.ird,
		.initiator_depth = opts.ord,
	};
}

static struct rdma_addrinfo *resolve(const char *addr, const char *port, int flags)
{
	struct rdma_addrinfo hints = { .ai_flags = flags, .ai_port_space = RDMA_PS_TCP };
	struct rdma_addrinfo *info;

	if (rdma_getaddrinfo(addr, port, &hints, &info))
		die("rdma_getaddrinfo");
	return info;
}

static void set_tos(struct rdma_cm_id *id)
{
	uint8_t tos = opts.tos;

	if (opts.tos >= 0 &&
	    rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof(tos)))
		die("rdma_set_option");
}

/* `twice` and `regret` crash iw_cm if the driver does not prevent it. */
static void check_driver(struct rdma_cm_id *id)
{
	struct ibv_device_attr attr;

	if (ibv_query_device(id->verbs, &attr) || attr.vendor_id != 0x726977) {
		printf("failed: not a device of riw\n");
		exit(1);
	}
}

static void accept_again(struct rdma_cm_id *id, struct rdma_conn_param *conn)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.send_cq = id->send_cq,
		.recv_cq = id->recv_cq,
		.cap = { .max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_qp *first = id->qp;

	id->qp = ibv_create_qp(id->pd, &attr);
	if (!id->qp)
		die("ibv_create_qp");
	printf("second: %s\n", rdma_accept(id, conn) ? strerror(errno) : "accepted");
	ibv_destroy_qp(id->qp);
	id->qp = first;
	rdma_destroy_qp(id);
	rdma_destroy_id(id);
	printf("destroyed\n");
}

static void reject_after_all(struct rdma_cm_id *id)
{
	struct ibv_qp *qp = id->qp;

	printf("second: %s\n", rdma_reject(id, NULL, 0) ? strerror(errno) : "rejected");
	rdma_destroy_id(id);
	ibv_destroy_qp(qp);
	printf("destroyed\n");
}

static void answer(struct rdma_cm_id *id)
{
	struct rdma_conn_param conn = parameters();

	if (opts.hold)
		return;
	if (opts.reject) {
		if (rdma_reject(id, conn.private_data, conn.private_data_len))
			printf("rdma_reject: %s\n", strerror(errno));
		rdma_destroy_id(id);
		return;
	}
	if (opts.twice || opts.regret)
		check_driver(id);
	make_qp(id);
	if (rdma_accept(id, &conn)) {
		printf("rdma_accept: %s\n", strerror(errno));
		rdma_destroy_qp(id);
		rdma_destroy_id(id);
	} else if (opts.twice) {
		accept_again(id, &conn);
	} else if (opts.regret) {
		reject_after_all(id);
	}
}

static void serve(struct rdma_event_channel *channel, const char *addr, const char *port)
{
	struct rdma_addrinfo *info = resolve(addr, port, RAI_PASSIVE | RAI_NUMERICHOST);
	struct rdma_cm_event *event;
	struct rdma_cm_id *listener;

	if (rdma_create_id(channel, &listener, NULL, opts.ib ? RDMA_PS_IB : RDMA_PS_TCP))
		die("rdma_create_id");
	set_tos(listener);
	if (rdma_bind_addr(listener, info->ai_src_addr))
		die("rdma_bind_addr");
	if (rdma_listen(listener, opts.backlog))
		die("rdma_listen");
	printf("listening\n");
	while (opts.idle)
		pause();

	while (!rdma_get_cm_event(channel, &event)) {
		enum rdma_cm_event_type type = event->event;
		struct rdma_cm_id *id = event->id;

		show(event);
		rdma_ack_cm_event(event);
		switch (type) {
		case RDMA_CM_EVENT_CONNECT_REQUEST:
			if (opts.deaf) {
				opts.deaf = false;
				rdma_destroy_id(listener);
				printf("deaf\n");
				sleep(1);
			}
			answer(id);
			if (opts.slow)
				usleep(100000);
			break;
		case RDMA_CM_EVENT_DISCONNECTED:
		case RDMA_CM_EVENT_CONNECT_ERROR:
			rdma_disconnect(id);
			rdma_destroy_qp(id);
			rdma_destroy_id(id);
			printf("destroyed\n");
			break;
		case RDMA_CM_EVENT_DEVICE_REMOVAL:
			exit(0);
		default:
			break;
		}
	}
	die("rdma_get_cm_event");
}

/* Waits for the next event and shows it. Returns its type. */
static enum rdma_cm_event_type next(struct rdma_event_channel *channel)
{
	struct rdma_cm_event *event;
	enum rdma_cm_event_type type;

	if (rdma_get_cm_event(channel, &event))
		die("rdma_get_cm_event");
	type = event->event;
	show(event);
	rdma_ack_cm_event(event);
	return type;
}

static volatile bool in_vain;

/* Posts an empty SEND, as soon as the QP accepts it. */
static void *post(void *arg)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED }, *bad;
	struct rdma_cm_id *id = arg;

	while (!in_vain && ibv_post_send(id->qp, &wr, &bad))
		;
	return NULL;
}

static int connect_to(struct rdma_event_channel *channel, const char *addr, const char *port)
{
	struct rdma_addrinfo *info = resolve(addr, port, RAI_NUMERICHOST);
	struct rdma_conn_param conn = parameters();
	struct sockaddr *source = NULL;
	enum rdma_cm_event_type type;
	struct rdma_cm_id *id;
	pthread_t poster;
	int ret = 1;

	if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP))
		die("rdma_create_id");
	set_tos(id);
	if (opts.from[0])
		source = resolve(opts.from, opts.source[0] ? opts.source : NULL,
				 RAI_PASSIVE | RAI_NUMERICHOST)->ai_src_addr;
	if (rdma_resolve_addr(id, source, info->ai_dst_addr, 5000))
		die("rdma_resolve_addr");
	if (next(channel) != RDMA_CM_EVENT_ADDR_RESOLVED)
		return 1;
	if (rdma_resolve_route(id, 5000) || next(channel) != RDMA_CM_EVENT_ROUTE_RESOLVED)
		return 1;
	make_qp(id);
	if (opts.wait) {
		printf("queue pair %u\n", id->qp->qp_num);
		getchar();
	}
	if (opts.post && pthread_create(&poster, NULL, post, id))
		die("pthread_create");
	if (rdma_connect(id, &conn))
		die("rdma_connect");
	if (opts.abort) {
		struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

		getchar();
		if (ibv_modify_qp(id->qp, &attr, IBV_QP_STATE))
			die("ibv_modify_qp");
	}
	type = next(channel);
	if (opts.post) {
		in_vain = type != RDMA_CM_EVENT_ESTABLISHED;
		pthread_join(poster, NULL);
	}
	if (type == RDMA_CM_EVENT_ESTABLISHED) {
		ret = 0;
		if (opts.stay) {
			ret = next(channel) != RDMA_CM_EVENT_DISCONNECTED;
			rdma_disconnect(id);
		} else {
			rdma_disconnect(id);
			ret = next(channel) != RDMA_CM_EVENT_DISCONNECTED;
		}
	}
	rdma_destroy_qp(id);
	if (rdma_destroy_id(id))
		die("rdma_destroy_id");
	printf("destroyed\n");
	return ret;
}

int main(int argc, char **argv)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!channel)
		die("rdma_create_event_channel");
	if (argc < 4)
		die("usage");
	parse(argc - 4, argv + 4);
	if (!strcmp(argv[1], "serve"))
		serve(channel, argv[2], argv[3]);
	return connect_to(channel, argv[2], argv[3]);
}
