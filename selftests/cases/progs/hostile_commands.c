// SPDX-License-Identifier: GPL-2.0
/*
 * Commands that no user library issues, for the objects of a connection that carries data: several
 * work requests at a time, extended commands and ioctls of odd sizes.
 *
 *     hostile_commands [-r SEED] ACTIVE PASSIVE
 */
#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <rdma/siw-abi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/pair.h"
#include "common/random.h"
#include "common/region.h"
#include "common/rings.h"
#include "common/tap.h"
#include "common/victim.h"

static struct pair_opts opts = { .sq = 64, .rq = 64, .inline_data = 64, .notify = true };
static struct rng rng = { 1 };

/* --- work requests by commands */

/* Issues a command with a body of any length. Returns 0 or an errno. */
static int long_command(int fd, uint32_t number, void *body, size_t bytes, size_t out_bytes)
{
	struct ib_uverbs_cmd_hdr header = {
		.command = number, .in_words = (sizeof(header) + bytes) / 4, .out_words = out_bytes / 4,
	};
	uint8_t *buffer = malloc(sizeof(header) + bytes);
	int error;

	if (!buffer)
		tap_bail("malloc");
	memcpy(buffer, &header, sizeof(header));
	memcpy(buffer + sizeof(header), body, bytes);
	error = write(fd, buffer, sizeof(header) + bytes) < 0 ? errno : 0;
	free(buffer);
	return error;
}

/* POST_SEND, POST_RECV and POST_SRQ_RECV begin with the same fields. */
#define REQUESTS_MAX 64
struct posting {
	struct ib_uverbs_post_send head;
	uint8_t entries[REQUESTS_MAX * (sizeof(struct ib_uverbs_send_wr) + sizeof(struct ib_uverbs_sge))];
};

/* Requests that a driver with post commands could execute; `wrong` may corrupt some. */
static size_t fill_posting(struct posting *p, const struct victim *v, uint32_t number, int count,
			   bool wrong)
{
	bool send = number == IB_USER_VERBS_CMD_POST_SEND;
	size_t size = send ? sizeof(struct ib_uverbs_send_wr) : sizeof(struct ib_uverbs_recv_wr);
	struct ib_uverbs_sge *sges = (struct ib_uverbs_sge *)(p->entries + count * size);

	memset(p, 0, sizeof(*p));
	p->head.qp_handle = v->pair.active.qp->handle;
	p->head.wr_count = p->head.sge_count = count;
	p->head.wqe_size = size;
	for (int i = 0; i < count; i++) {
		struct ib_uverbs_send_wr *wr = (struct ib_uverbs_send_wr *)(p->entries + i * size);

		wr->wr_id = i;
		wr->num_sge = wrong ? rng_below(&rng, 4) : 1;
		if (send) {
			wr->opcode = wrong ? rng_below(&rng, 16) : rng_below(&rng, 3) * 2;
			wr->send_flags = IBV_SEND_SIGNALED;
			wr->wr.rdma.remote_addr = (uintptr_t)v->passive.bytes + VICTIM_MESSAGE;
			wr->wr.rdma.rkey = v->passive.mr->rkey;
		}
		sges[i] = (struct ib_uverbs_sge){ (uintptr_t)v->active.bytes + VICTIM_MESSAGE, VICTIM_MESSAGE,
					     v->active.mr->lkey };
	}
	return sizeof(p->head) + count * (size + sizeof(*sges));
}

static void spoil(struct posting *p, size_t *bytes)
{
	switch (rng_below(&rng, 6)) {
	case 0:
		p->head.wr_count = rng_next(&rng);
		break;
	case 1:
		p->head.sge_count = rng_next(&rng);
		break;
	case 2:
		p->head.wqe_size = rng_below(&rng, 3) ? rng_below(&rng, 512) : rng_next(&rng);
		break;
	case 3:
		p->head.qp_handle = rng_below(&rng, 3) ? rng_below(&rng, 8) : rng_next(&rng);
		break;
	case 4:
		*bytes = rng_below(&rng, *bytes / 4 + 1) * 4;
		break;
	default:
		rng_fill(&rng, p->entries, sizeof(p->entries));
	}
}

static void requests_by_command(void)
{
	static const uint32_t numbers[] = {
		IB_USER_VERBS_CMD_POST_SEND, IB_USER_VERBS_CMD_POST_RECV, IB_USER_VERBS_CMD_POST_SRQ_RECV,
	};
	struct ib_uverbs_post_send_resp response;
	struct posting p;
	struct victim v;
	size_t bytes;
	int error;

	victim_open(&v, &opts, &rng);
	for (int i = 0; i < 1500; i++) {
		uint32_t number = numbers[rng_below(&rng, 3)];
		int count = 1 + rng_below(&rng, REQUESTS_MAX);
		bool spoilt = i % 2;

		bytes = fill_posting(&p, &v, number, count, spoilt);
		p.head.response = (uintptr_t)&response;
		response.bad_wr = 0;
		if (spoilt)
			spoil(&p, &bytes);
		/* The first word is the response's address; without it there is no command. */
		error = long_command(v.pair.active.ctx->cmd_fd, number, &p,
				     bytes < 8 ? 8 : bytes, sizeof(response));
		/* A corrupted command may be a doorbell. */
		tap_check(spoilt || error, "command %u with %d requests was taken", number, count);
		tap_check(spoilt || number != IB_USER_VERBS_CMD_POST_SEND ||
			  (error == EOPNOTSUPP && response.bad_wr == 1),
			  "POST_SEND of %d: %s, the first bad one is %u", count, strerror(error),
			  response.bad_wr);
		if (i % 100 == 0)
			victim_exchange(&v, i);
	}
	tap_check(qp_state(v.pair.active.qp) == IBV_QPS_RTS, "state %d", qp_state(v.pair.active.qp));
	victim_exchange(&v, 7);
	memcpy(region_wanted(&v.passive, v.passive.bytes), v.active.bytes, VICTIM_MESSAGE);
	region_intact(&v.active, "the memory of who gave the commands");
	region_intact(&v.passive, "the peer's memory");
	victim_close(&v);
	tap_point("requests by commands, several at a time, are refused, and the connection goes on");
}

/* --- extended commands */

/* Body and answer in 8-byte words, each with ib_core's part and the driver's part. */
struct extended {
	const char *name;
	uint32_t number;
	size_t in, in_driver, out, out_driver;
	uint32_t destroy;		/* by which what it makes is destroyed again */
	union {
		struct ib_uverbs_ex_query_device query;
		struct ib_uverbs_ex_create_cq cq;
		struct ib_uverbs_ex_create_qp qp;
		struct ib_uverbs_ex_modify_qp modify;
		uint64_t words[64];
	} body;
};

#define WORDS(type) ((sizeof(type) + 7) / 8)
#define ANSWER_WORDS 128

static int give_extended(int fd, const struct extended *x, size_t in, size_t in_driver,
			 void *answer, size_t out, size_t out_driver)
{
	struct {
		struct ib_uverbs_cmd_hdr header;
		struct ib_uverbs_ex_cmd_hdr extended;
		uint64_t body[128];
	} whole = {
		.header = { x->number | IB_USER_VERBS_CMD_FLAG_EXTENDED, in, out },
		.extended = { out + out_driver ? (uintptr_t)answer : 0, in_driver, out_driver, 0 },
	};
	size_t bytes = sizeof(whole.header) + sizeof(whole.extended) + (in + in_driver) * 8;

	memcpy(whole.body, &x->body, sizeof(x->body));
	return write(fd, &whole, bytes) < 0 ? errno : 0;
}

static int destroy_made(struct ibv_context *ctx, uint32_t number, uint32_t handle)
{
	struct ib_uverbs_destroy_qp body = { .qp_handle = handle };
	uint64_t answer;

	return command(ctx, number, &body, sizeof(body), &answer, sizeof(answer));
}

static void all_lengths(struct ibv_context *ctx, const struct extended *x)
{
	static uint64_t answer[ANSWER_WORDS];
	uint32_t handle;
	int taken = 0;

	for (int i = 0; i < 1500; i++) {
		bool whole = i % 10 == 0;
		size_t in = whole ? x->in : rng_below(&rng, x->in + 4);
		size_t in_driver = whole ? x->in_driver : rng_below(&rng, x->in_driver + 3);
		/*
		 * Without room for its handle, ib_core creates the object anyway; it cannot be
		 * destroyed then.
		 */
		size_t least = x->destroy ? 1 : 0;
		size_t out = whole ? x->out : least + rng_below(&rng, x->out + 4 - least);
		size_t out_driver = whole ? x->out_driver : rng_below(&rng, x->out_driver + 3);
		int error = give_extended(ctx->cmd_fd, x, in, in_driver, answer, out, out_driver);

		tap_check(!whole || !error, "%s: %s", x->name, strerror(error));
		tap_check(error || out_driver >= x->out_driver, "%s: made with %zu words for the driver",
			  x->name, out_driver);
		taken += !error;
		if (error || !x->destroy)
			continue;
		memcpy(&handle, answer, sizeof(handle));
		tap_check(!destroy_made(ctx, x->destroy, handle),
			  "%s: destroy %u, made with answers of %zu and %zu words", x->name, handle, out,
			  out_driver);
	}
	tap_note("%d taken", taken);
	tap_point("%s with bodies and answers of all lengths", x->name);
}

static void extended_commands(void)
{
	struct victim v;
	struct ibv_context *ctx;
	struct extended query = {
		.name = "QUERY_DEVICE_EX", .number = IB_USER_VERBS_EX_CMD_QUERY_DEVICE,
		.in = WORDS(struct ib_uverbs_ex_query_device),
		.out = WORDS(struct ib_uverbs_ex_query_device_resp),
	}, cq = {
		.name = "CREATE_CQ_EX", .number = IB_USER_VERBS_EX_CMD_CREATE_CQ,
		.in = WORDS(struct ib_uverbs_ex_create_cq),
		.out = WORDS(struct ib_uverbs_ex_create_cq_resp),
		.out_driver = WORDS(struct siw_uresp_create_cq),
		.destroy = IB_USER_VERBS_CMD_DESTROY_CQ,
		.body.cq = { .cqe = 10, .comp_channel = -1 },
	}, qp = {
		.name = "CREATE_QP_EX", .number = IB_USER_VERBS_EX_CMD_CREATE_QP,
		.in = WORDS(struct ib_uverbs_ex_create_qp),
		.out = WORDS(struct ib_uverbs_ex_create_qp_resp),
		.out_driver = WORDS(struct siw_uresp_create_qp),
		.destroy = IB_USER_VERBS_CMD_DESTROY_QP,
		.body.qp = { .max_send_wr = 10, .max_recv_wr = 10, .max_send_sge = 1, .max_recv_sge = 1,
			     .qp_type = IBV_QPT_RC },
	}, modify = {
		.name = "MODIFY_QP_EX", .number = IB_USER_VERBS_EX_CMD_MODIFY_QP,
		.in = WORDS(struct ib_uverbs_ex_modify_qp),
		.out = WORDS(struct ib_uverbs_ex_modify_qp_resp),
		.body.modify.base = { .attr_mask = IBV_QP_STATE, .qp_state = IBV_QPS_RTS },
	};

	victim_open(&v, &opts, &rng);
	ctx = v.pair.active.ctx;
	qp.body.qp.pd_handle = v.pair.active.pd->handle;
	qp.body.qp.send_cq_handle = qp.body.qp.recv_cq_handle = v.pair.active.scq->handle;
	/* Its current state: the connection continues. */
	modify.body.modify.base.qp_handle = v.pair.active.qp->handle;
	all_lengths(ctx, &query);
	all_lengths(ctx, &cq);
	all_lengths(ctx, &qp);
	all_lengths(ctx, &modify);
	victim_exchange(&v, 1);
	victim_close(&v);
	tap_point("the connection goes on, and can be destroyed");
}

/* --- ioctls */

#define ATTRS_MAX 16

struct call {
	struct ib_uverbs_ioctl_hdr header;
	struct ib_uverbs_attr attrs[ATTRS_MAX];
};

/* Targets of attribute pointers. */
static union {
	uint64_t words[64];
	uint32_t word;
	struct ib_uverbs_qp_cap cap;
} input;
static uint64_t output[64];

static void add_attr(struct call *c, uint16_t id, uint16_t len, uint64_t data)
{
	if (c->header.num_attrs < ATTRS_MAX)
		c->attrs[c->header.num_attrs++] = (struct ib_uverbs_attr){
			.attr_id = id, .len = len, .flags = UVERBS_ATTR_F_MANDATORY, .data = data,
		};
}

static void begin_call(struct call *c, uint16_t object, uint16_t method)
{
	memset(c, 0, sizeof(*c));
	c->header.object_id = object;
	c->header.method_id = method;
	c->header.driver_id = RDMA_DRIVER_SIW;
}

static void call_create_cq(struct call *c)
{
	begin_call(c, UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE);
	add_attr(c, UVERBS_ATTR_CREATE_CQ_HANDLE, 0, 0);
	add_attr(c, UVERBS_ATTR_CREATE_CQ_CQE, 4, 10);
	add_attr(c, UVERBS_ATTR_CREATE_CQ_USER_HANDLE, 8, 1);
	add_attr(c, UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, 4, 0);
	add_attr(c, UVERBS_ATTR_CREATE_CQ_RESP_CQE, 4, (uintptr_t)output);
	add_attr(c, UVERBS_ATTR_UHW_OUT, sizeof(struct siw_uresp_create_cq), (uintptr_t)(output + 8));
}

static void call_create_qp(struct call *c, const struct end *end)
{
	begin_call(c, UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE);
	input.cap = (struct ib_uverbs_qp_cap){ 10, 10, 1, 1, 0 };
	add_attr(c, UVERBS_ATTR_CREATE_QP_HANDLE, 0, 0);
	add_attr(c, UVERBS_ATTR_CREATE_QP_PD_HANDLE, 0, end->pd->handle);
	add_attr(c, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, 0, end->scq->handle);
	add_attr(c, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, 0, end->rcq->handle);
	add_attr(c, UVERBS_ATTR_CREATE_QP_USER_HANDLE, 8, 1);
	add_attr(c, UVERBS_ATTR_CREATE_QP_CAP, sizeof(input.cap), (uintptr_t)&input);
	add_attr(c, UVERBS_ATTR_CREATE_QP_TYPE, 8, IBV_QPT_RC);
	add_attr(c, UVERBS_ATTR_CREATE_QP_RESP_CAP, sizeof(input.cap), (uintptr_t)output);
	add_attr(c, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, 4, (uintptr_t)(output + 4));
	add_attr(c, UVERBS_ATTR_UHW_OUT, sizeof(struct siw_uresp_create_qp), (uintptr_t)(output + 8));
}

/* Any method of any object, with attributes that it may accept. */
static void call_any(struct call *c)
{
	do {
		begin_call(c, rng_below(&rng, UVERBS_OBJECT_ASYNC_EVENT + 2), rng_below(&rng, 8));
		/* ib_core of 7.3 leaks a reference to the process if this one fails. */
	} while (c->header.object_id == UVERBS_OBJECT_DEVICE &&
		 c->header.method_id == UVERBS_METHOD_GET_CONTEXT);
	for (int i = rng_below(&rng, 8); i; i--)
		add_attr(c, rng_below(&rng, 12), 0, 0);
	if (rng_below(&rng, 16) == 0)
		c->header.object_id |= UVERBS_ID_DRIVER_NS;
}

static void spoil_attr(struct ib_uverbs_attr *attr)
{
	static const uint16_t lengths[] = { 0, 1, 2, 4, 8, 12, 16, 20, 24, 32, 64, 256, UINT16_MAX };
	const uint64_t places[] = {
		0, (uintptr_t)&input, (uintptr_t)output, 4096, ~0xfffUL, 0xffff888000000000UL,
		rng_below(&rng, 8), rng_next(&rng),
	};

	switch (rng_below(&rng, 4)) {
	case 0:
		attr->len = lengths[rng_below(&rng, sizeof(lengths) / sizeof(*lengths))];
		break;
	case 1:
		attr->data = places[rng_below(&rng, sizeof(places) / sizeof(*places))];
		break;
	case 2:
		attr->flags = rng_below(&rng, 4) ? 0 : rng_next(&rng);
		break;
	default:
		attr->attr_id = rng_below(&rng, 2) ? rng_below(&rng, 16) :
				UVERBS_ATTR_UHW_IN + rng_below(&rng, 3);
	}
}

static int give_call(int fd, struct call *c)
{
	c->header.length = sizeof(c->header) + c->header.num_attrs * sizeof(c->attrs[0]);
	return ioctl(fd, RDMA_VERBS_IOCTL, c) ? errno : 0;
}

/* Issues an ioctl for an end, corrupted or not. Returns whether it succeeded. */
static bool any_ioctl(const struct end *end)
{
	struct call c;

	switch (rng_below(&rng, 4)) {
	case 0:
		call_create_cq(&c);
		break;
	case 1:
		call_create_qp(&c, end);
		break;
	default:
		call_any(&c);
	}
	for (int i = rng_below(&rng, 4); i && c.header.num_attrs; i--)
		spoil_attr(&c.attrs[rng_below(&rng, c.header.num_attrs)]);
	return !give_call(end->ctx->cmd_fd, &c);
}

static void made_by_ioctl(void)
{
	struct victim v;
	struct call c;
	int error;

	victim_open(&v, &opts, &rng);
	call_create_cq(&c);
	error = give_call(v.pair.active.ctx->cmd_fd, &c);
	tap_check(!error, "CQ: %s", strerror(error));
	tap_check(error || !destroy_made(v.pair.active.ctx, IB_USER_VERBS_CMD_DESTROY_CQ,
					 c.attrs[0].data), "destroy");
	call_create_qp(&c, &v.pair.active);
	error = give_call(v.pair.active.ctx->cmd_fd, &c);
	tap_check(!error, "QP: %s", strerror(error));
	tap_check(error || !destroy_made(v.pair.active.ctx, IB_USER_VERBS_CMD_DESTROY_QP,
					 c.attrs[0].data), "destroy");
	victim_close(&v);
	tap_point("ioctls make a CQ and a QP: those that are spoilt below come that far");
}

/* --- processes that are killed meanwhile */

#define CHILDREN 3

struct child {
	pid_t pid;
	int begin[2], begun[2];
};

/* All abuse above, on the child's own connection, whose objects may disappear meanwhile. */
static void abuse(struct child *child)
{
	struct victim v;
	char c;

	if (read(child->begin[0], &c, 1) != 1)
		_exit(1);
	rng.state += child->pid;
	victim_open(&v, &opts, &rng);
	if (write(child->begun[1], "", 1) != 1)
		_exit(1);
	for (;;) {
		(void)any_ioctl(&v.pair.active);
		(void)any_ioctl(&v.pair.passive);
		victim_post(&v, &rng);
		rng_fill(&rng, v.rings[rng_below(&rng, v.count)].at, 64);
	}
}

/* The children open the device themselves, so they are forked before this process opens it. */
static void children_make(struct child *children)
{
	for (int i = 0; i < CHILDREN; i++) {
		struct child *child = &children[i];

		if (pipe(child->begin) || pipe(child->begun) || (child->pid = fork()) < 0)
			tap_bail("fork");
		if (child->pid)
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		child->pid = i;
		abuse(child);
	}
}

static void children_kill(struct child *children)
{
	int status;
	char c;

	for (int i = 0; i < CHILDREN; i++)
		if (write(children[i].begin[1], "", 1) != 1)
			tap_bail("pipe");
	for (int i = 0; i < CHILDREN; i++) {
		close(children[i].begun[1]);
		tap_check(read(children[i].begun[0], &c, 1) == 1, "a child has not connected");
		sleep_ms(1000 + rng_below(&rng, 200));
		/* The child may have crashed by writes to its own memory. */
		kill(children[i].pid, SIGKILL);
		tap_check(waitpid(children[i].pid, &status, 0) == children[i].pid, "waitpid");
	}
	tap_point("%d processes are killed that give ioctls of noise for connected objects", CHILDREN);
}

int main(int argc, char **argv)
{
	struct flow flow = {};
	struct child children[CHILDREN];
	int option;

	while ((option = getopt(argc, argv, "r:")) != -1) {
		if (option != 'r')
			return 2;
		rng.state = strtoull(optarg, NULL, 0);
	}
	if (argc - optind != 2)
		return 2;
	opts.active = side_parse(argv[optind]);
	opts.passive = side_parse(argv[optind + 1]);

	children_make(children);
	flow_start(&flow, &opts, rng_next(&rng));
	made_by_ioctl();
	requests_by_command();
	extended_commands();
	children_kill(children);
	flow_stop(&flow);
	return tap_done();
}
