// SPDX-License-Identifier: GPL-2.0
/*
 * fail_nth [-o] [-r SEED] ADDRESS NETDEV TYPE [OPERATION…]
 *
 * Fails each kernel allocation of an operation in turn, by /proc/thread-self/fail-nth: from link
 * add over listen, connect, accept, create and post to teardown, or only in the named operations.
 * Of an operation with very many allocations, such as link add with all of its sysfs files, it
 * fails some, at random by the seed. The operation must either succeed or return an error; both
 * ways teardown must work. (The caller checks for leaks and kernel messages.)
 *
 * -o: also operations that only riw's own user ABI has.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/access.h"
#include "common/clock.h"
#include "common/completion.h"
#include "common/device.h"
#include "common/listen.h"
#include "common/post.h"
#include "common/random.h"
#include "common/tap.h"

/* Maximum allocations of an operation. */
#define MOST 5000
/* An operation with more allocations has about this many failed. */
#define MANY 200
#define BYTES (256 << 10)

/* Flags of an operation. */
#define ALLOCATES 1	/* always; other operations may or may not */
#define OWN 2		/* only with riw's own user ABI */

static const char *address, *netdev, *type;
static char device[32];

/* One end, as far as it is set up. */
struct end {
	struct rdma_event_channel *events;
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
};

static struct end active, passive, listener;
static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct ibv_mw *mw;
static struct ibv_srq *srq;
static uint8_t bytes[BYTES];

/* --- failing on demand */

static int nth_fd;

static void fail_nth(int nth)
{
	char text[16];
	int length = snprintf(text, sizeof(text), "%d", nth);

	if (pwrite(nth_fd, text, length, 0) != length)
		tap_bail("fail-nth: %m");
}

/* Ends injection. Returns the passes left before the next failure, 0 if one was failed. */
static int passes_left(void)
{
	char text[16] = "";

	if (pread(nth_fd, text, sizeof(text) - 1, 0) < 0)
		tap_bail("fail-nth: %m");
	fail_nth(0);
	return atoi(text);
}

/* --- the link, by netlink: running rdma would take longer than everything else here */

/* A request for a command; attributes can be added. */
struct request {
	struct nlmsghdr head;
	char attributes[500];
};

static struct request request(int command, int flags)
{
	return (struct request){ .head = {
		.nlmsg_len = NLMSG_HDRLEN,
		.nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command),
		.nlmsg_flags = NLM_F_REQUEST | flags,
	} };
}

static void attribute(struct request *request, int kind, const void *value, size_t bytes)
{
	struct nlattr *attr = (void *)((char *)request + NLMSG_ALIGN(request->head.nlmsg_len));

	attr->nla_type = kind;
	attr->nla_len = NLA_HDRLEN + bytes;
	memcpy((char *)attr + NLA_HDRLEN, value, bytes);
	request->head.nlmsg_len = NLMSG_ALIGN(request->head.nlmsg_len) + NLA_ALIGN(attr->nla_len);
}

static void text_attribute(struct request *request, int kind, const char *text)
{
	attribute(request, kind, text, strlen(text) + 1);
}

/* Sends a request. Returns the bytes of the answer, or a negative errno. */
static int ask(const struct request *request, void *answer, size_t size)
{
	int status, fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);

	if (fd < 0)
		return -errno;
	status = send(fd, request, request->head.nlmsg_len, 0);
	/* The answer is there at once, unless its allocation failed. */
	if (status >= 0)
		status = recv(fd, answer, size, MSG_DONTWAIT);
	if (status < 0)
		status = -errno;
	close(fd);
	return status;
}

/* ask() for requests that are only acknowledged. */
static int tell(const struct request *request)
{
	char answer[1024] = "";
	struct nlmsghdr *head = (void *)answer;
	int status = ask(request, answer, sizeof(answer));

	if (status < 0)
		return status;
	return head->nlmsg_type == NLMSG_ERROR ? ((struct nlmsgerr *)NLMSG_DATA(head))->error : 0;
}

static int link_add(void)
{
	struct request add = request(RDMA_NLDEV_CMD_NEWLINK, NLM_F_ACK);

	text_attribute(&add, RDMA_NLDEV_ATTR_DEV_NAME, device);
	text_attribute(&add, RDMA_NLDEV_ATTR_LINK_TYPE, type);
	text_attribute(&add, RDMA_NLDEV_ATTR_NDEV_NAME, netdev);
	return tell(&add);
}

/* Returns the device index in a message of the list, or -1 if it is not our device. */
static int number_in(const struct nlmsghdr *message)
{
	const char *at = NLMSG_DATA(message), *end = (char *)message + message->nlmsg_len;
	int number = -1;
	bool ours = false;

	while (end - at >= NLA_HDRLEN) {
		const struct nlattr *attr = (void *)at;

		if (attr->nla_type == RDMA_NLDEV_ATTR_DEV_INDEX)
			memcpy(&number, at + NLA_HDRLEN, sizeof(number));
		else if (attr->nla_type == RDMA_NLDEV_ATTR_DEV_NAME)
			ours = !strcmp(at + NLA_HDRLEN, device);
		at += NLA_ALIGN(attr->nla_len);
	}
	return ours ? number : -1;
}

static int link_number(void)
{
	struct request list = request(RDMA_NLDEV_CMD_GET, NLM_F_DUMP);
	char answer[8192];
	struct nlmsghdr *message = (void *)answer;
	int number = -1, bytes = ask(&list, answer, sizeof(answer));

	if (bytes < 0)
		tap_bail("list of devices: %s", strerror(-bytes));
	for (; NLMSG_OK(message, (unsigned int)bytes); message = NLMSG_NEXT(message, bytes))
		if (message->nlmsg_type == list.head.nlmsg_type && number < 0)
			number = number_in(message);
	return number;
}

static void link_delete(void)
{
	struct request delete = request(RDMA_NLDEV_CMD_DELLINK, NLM_F_ACK);
	int status, number = link_number();

	if (number < 0)
		return;
	attribute(&delete, RDMA_NLDEV_ATTR_DEV_INDEX, &number, sizeof(number));
	status = tell(&delete);
	if (status)
		tap_bail("link delete: %s", strerror(-status));
}

/* A link added under failing allocations may lack objects that others create for it. */
static void link_drop(int status)
{
	(void)status;
	link_delete();
}

static void link_must_be(void)
{
	int status = link_add();

	if (status && status != -EEXIST)
		tap_bail("link add: %s", strerror(-status));
}

/* --- steps, each from the state after the previous one */

static int do_open(void)
{
	ctx = device_open(device);
	return ctx ? 0 : -errno;
}

static void want_open(void)
{
	link_must_be();
	if (do_open())
		tap_bail("ibv_open_device %s", device);
}

static int do_pd(void)
{
	pd = ibv_alloc_pd(ctx);
	return pd ? 0 : -errno;
}

static void want_pd(void)
{
	want_open();
	if (do_pd())
		tap_bail("ibv_alloc_pd: %m");
}

static int do_mr(void)
{
	mr = ibv_reg_mr(pd, bytes, BYTES, ALL);
	return mr ? 0 : -errno;
}

static int do_cq(void)
{
	cq = ibv_create_cq(ctx, 100, NULL, NULL, 0);
	return cq ? 0 : -errno;
}

static int do_extended_cq(void)
{
	struct ibv_cq_init_attr_ex init = { .cqe = 100, .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP };
	struct ibv_cq_ex *extended = ibv_create_cq_ex(ctx, &init);

	cq = extended ? ibv_cq_ex_to_cq(extended) : NULL;
	return cq ? 0 : -errno;
}

static void want_cq(void)
{
	want_open();
	if (do_cq())
		tap_bail("ibv_create_cq: %m");
}

static int do_resize(void)
{
	return -ibv_resize_cq(cq, 5000);
}

static int do_rereg(void)
{
	int flags = IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS;

	return ibv_rereg_mr(mr, flags, NULL, bytes, BYTES / 2, ALL) ? -errno : 0;
}

static int do_mw(void)
{
	mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	return mw ? 0 : -errno;
}

static int do_srq(void)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 64, .max_sge = 2 } };

	srq = ibv_create_srq(pd, &init);
	return srq ? 0 : -errno;
}

static void want_mr(void)
{
	want_pd();
	if (do_mr())
		tap_bail("ibv_reg_mr: %m");
}

static int do_dereg(void)
{
	int status = ibv_dereg_mr(mr);

	if (!status)
		mr = NULL;
	return -status;
}

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

static void want_bound(void)
{
	struct sockaddr_storage at;

	link_must_be();
	make_id(&listener);
	fill(&at, 0);
	if (rdma_bind_addr(listener.id, (struct sockaddr *)&at))
		tap_bail("rdma_bind_addr: %m");
}

static int do_listen(void)
{
	return rdma_listen(listener.id, 4) ? -errno : 0;
}

static void want_listener(void)
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

static void want_route(void)
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

static int do_qp(void)
{
	return make_qp(&active);
}

static void want_qp(void)
{
	want_route();
	if (do_qp())
		tap_bail("rdma_create_qp: %m");
}

static int do_destroy_qp(void)
{
	int status = ibv_destroy_qp(active.id->qp);

	if (!status)
		active.id->qp = NULL;
	return -status;
}

static int number;

static void want_unbound(void)
{
	want_qp();
	number = link_number();
}

/* Binds the QP to a new counter of `rdma statistic`, which goes with the QP. */
static int do_bind(void)
{
	struct request set = request(RDMA_NLDEV_CMD_STAT_SET, NLM_F_ACK);
	uint32_t port = 1, mode = RDMA_COUNTER_MODE_MANUAL, kind = RDMA_NLDEV_ATTR_RES_QP;

	attribute(&set, RDMA_NLDEV_ATTR_DEV_INDEX, &number, sizeof(number));
	attribute(&set, RDMA_NLDEV_ATTR_PORT_INDEX, &port, sizeof(port));
	attribute(&set, RDMA_NLDEV_ATTR_STAT_MODE, &mode, sizeof(mode));
	attribute(&set, RDMA_NLDEV_ATTR_STAT_RES, &kind, sizeof(kind));
	attribute(&set, RDMA_NLDEV_ATTR_RES_LQPN, &active.id->qp->qp_num, sizeof(uint32_t));
	return tell(&set);
}

static struct rdma_conn_param param = { .initiator_depth = 4, .responder_resources = 4 };

static int do_connect(void)
{
	return rdma_connect(active.id, &param) ? -errno : 0;
}

static void want_request(void)
{
	want_qp();
	if (do_connect() || !event(&listener, RDMA_CM_EVENT_CONNECT_REQUEST, &passive.id))
		tap_bail("rdma_connect: %m");
	equip(&passive);
	if (make_qp(&passive))
		tap_bail("rdma_create_qp: %m");
}

static int do_accept(void)
{
	return rdma_accept(passive.id, &param) ? -errno : 0;
}

static int do_reject(void)
{
	return rdma_reject(passive.id, "no", 2) ? -errno : 0;
}

static void want_connection(void)
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

static void want_receive(void)
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

static int do_post_small(void)
{
	send_bytes = 100;
	opcode = IBV_WR_SEND;
	return do_post();
}

static int do_post_large(void)
{
	send_bytes = BYTES;
	opcode = IBV_WR_SEND;
	return do_post();
}

static int do_post_read(void)
{
	send_bytes = BYTES;
	opcode = IBV_WR_RDMA_READ;
	return do_post();
}

/* In every case the posted requests complete. */
static void completes(int status)
{
	struct ibv_wc wc;

	if (!status)
		tap_check(cq_next(active.cq, &wc, PATIENCE), "what was posted does not complete");
}

static int do_post_recv(void)
{
	struct ibv_sge to = sge(&passive, BYTES);

	return -post_recv(passive.id->qp, 3, &to, 1);
}

static int do_disconnect(void)
{
	return rdma_disconnect(active.id) ? -errno : 0;
}

static int do_drop(void)
{
	int status = rdma_destroy_id(listener.id);

	if (!status)
		listener.id = NULL;
	return status ? -errno : 0;
}

/* --- teardown */

static void drop(struct end *end)
{
	bool all = true;

	if (end->id && end->id->qp)
		rdma_destroy_qp(end->id);
	all &= !end->mr || !ibv_dereg_mr(end->mr);
	all &= !end->cq || !ibv_destroy_cq(end->cq);
	all &= !end->pd || !ibv_dealloc_pd(end->pd);
	all &= !end->id || !rdma_destroy_id(end->id);
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

static void drop_all(void)
{
	bool all = true;

	drop(&active);
	drop(&passive);
	drop_request();
	drop(&listener);
	all &= !mr || !ibv_dereg_mr(mr);
	all &= !mw || !ibv_dealloc_mw(mw);
	all &= !srq || !ibv_destroy_srq(srq);
	all &= !cq || !ibv_destroy_cq(cq);
	all &= !pd || !ibv_dealloc_pd(pd);
	all &= !ctx || !ibv_close_device(ctx);
	tap_check(all, "something could not be destroyed: %m");
	mr = NULL, mw = NULL, srq = NULL, cq = NULL, pd = NULL, ctx = NULL;
}

/* An operation: `before` prepares it, `run` executes it, `after` continues from its status. */
static const struct operation {
	const char *name;
	void (*before)(void);
	int (*run)(void);
	void (*after)(int status);
	unsigned int flags;
} operations[] = {
	{ "link add", link_delete, link_add, link_drop, ALLOCATES },
	{ "open", link_must_be, do_open, NULL, ALLOCATES },
	{ "alloc PD", want_open, do_pd, NULL, ALLOCATES },
	{ "register MR", want_pd, do_mr, NULL, ALLOCATES },
	{ "deregister MR", want_mr, do_dereg, NULL, 0 },
	{ "create CQ", want_open, do_cq, NULL, ALLOCATES },
	{ "create SRQ", want_pd, do_srq, NULL, ALLOCATES },
	{ "create extended CQ", want_open, do_extended_cq, NULL, ALLOCATES | OWN },
	{ "resize CQ", want_cq, do_resize, NULL, ALLOCATES | OWN },
	{ "register MR again", want_mr, do_rereg, NULL, ALLOCATES | OWN },
	{ "allocate MW", want_pd, do_mw, NULL, ALLOCATES | OWN },
	{ "listen", want_bound, do_listen, NULL, ALLOCATES },
	{ "destroy listener", want_listener, do_drop, NULL, 0 },
	{ "create QP", want_route, do_qp, NULL, ALLOCATES },
	{ "destroy QP", want_qp, do_destroy_qp, NULL, 0 },
	{ "bind QP to a counter", want_unbound, do_bind, NULL, ALLOCATES },
	{ "connect", want_qp, do_connect, NULL, ALLOCATES },
	{ "accept", want_request, do_accept, NULL, ALLOCATES },
	{ "reject", want_request, do_reject, NULL, 0 },
	{ "post RECV", want_connection, do_post_recv, NULL, 0 },
	{ "post SEND of 100 B", want_receive, do_post_small, completes, 0 },
	{ "post SEND of 256 KiB", want_receive, do_post_large, completes, 0 },
	{ "post READ of 256 KiB", want_receive, do_post_read, completes, 0 },
	{ "disconnect", want_connection, do_disconnect, NULL, 0 },
};

#define OPERATIONS (sizeof(operations) / sizeof(*operations))

/* Runs an operation with its `nth` allocation failing, then tears everything down. */
static int attempt(const struct operation *operation, int nth, int *left)
{
	int status;

	operation->before();
	fail_nth(nth);
	status = operation->run();
	*left = passes_left();
	if (operation->after)
		operation->after(status);
	drop_all();
	return status;
}

static void sweep(const struct operation *operation, struct rng *rng)
{
	int left, status, failed = 0, errors = 0, step, count, nth;

	attempt(operation, MOST, &left);
	count = MOST - left;
	step = 1 + count / MANY;
	tap_check(left, "more than %d allocations", MOST);
	for (nth = 1; !tap_failing(); nth += 1 + rng_below(rng, 2 * step - 1)) {
		status = attempt(operation, nth, &left);
		if (left) {
			tap_check(!status, "with no failure: %s", strerror(-status));
			break;
		}
		failed++;
		if (status)
			errors++;
	}
	tap_check(failed || !(operation->flags & ALLOCATES), "no allocation failed");
	/* A failure may cause further allocations, which fail as well. */
	tap_note("%d allocations failed, %d are made when none fails; %d errors came back",
		 failed, count, errors);
	tap_point("%s", operation->name);
}

static bool is_known(const char *name, bool own)
{
	for (size_t i = 0; i < OPERATIONS; i++)
		if (!strcmp(operations[i].name, name))
			return own || !(operations[i].flags & OWN);
	return false;
}

static bool is_wanted(const char *name, char *const wanted[])
{
	if (!*wanted)
		return true;
	while (*wanted)
		if (!strcmp(*wanted++, name))
			return true;
	return false;
}

int main(int argc, char **argv)
{
	struct rng rng = { 1 };
	bool own = false;
	int option;

	while ((option = getopt(argc, argv, "or:")) != -1) {
		if (option == 'r')
			rng.state = strtoull(optarg, NULL, 0);
		else if (option == 'o')
			own = true;
		else
			return 2;
	}
	if (argc - optind < 3)
		tap_bail("usage: fail_nth [-o] [-r SEED] ADDRESS NETDEV TYPE [OPERATION...]");
	address = argv[optind];
	netdev = argv[optind + 1];
	type = argv[optind + 2];
	for (char **name = argv + optind + 3; *name; name++)
		if (!is_known(*name, own))
			tap_bail("unknown operation: %s", *name);
	snprintf(device, sizeof(device), "%s0", type);
	nth_fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	if (nth_fd < 0)
		tap_bail("/proc/thread-self/fail-nth: %m");
	/* libibverbs loads its drivers when the first device is opened; do not count that. */
	want_open();
	drop_all();
	for (size_t i = 0; i < OPERATIONS; i++)
		if ((own || !(operations[i].flags & OWN)) &&
		    is_wanted(operations[i].name, argv + optind + 3))
			sweep(&operations[i], &rng);
	link_delete();
	return tap_done();
}
