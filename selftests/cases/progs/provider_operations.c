// SPDX-License-Identifier: GPL-2.0
/*
 * What riw's user library offers beyond libsiw, each byte and each error checked.
 *
 *     provider_operations [-a] [-e] ACTIVE PASSIVE
 *
 * -a: the device has immediate data and atomic operations. Otherwise they must be refused.
 * -e: an early library, with two faults: it takes posts to queue pairs that are not connected, and keeps the places
 *     of completions until ibv_end_poll().
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/access.h"
#include "common/clock.h"
#include "common/completion.h"
#include "common/post.h"
#include "common/random.h"
#include "common/setup.h"
#include "common/tap.h"

#define MAX_SGE 16
#define MAX_INLINE 256
#define LENGTH 65536
#define PIECE 100

#define WC_FLAGS (IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM | IBV_WC_EX_WITH_QP_NUM)
#define SEND_OPS (IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_RDMA_WRITE | \
		  IBV_QP_EX_WITH_RDMA_READ)
#define ATOMIC_OPS (IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | \
		    IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)

static struct rng rng = { .state = 1 };
static struct pair_opts sides;
static bool atomics, early;

static void begin(struct setup *s, struct pair_opts *opts)
{
	const struct regions regions = {
		.length = LENGTH, .local = REVOCABLE, .remote = REVOCABLE | IBV_ACCESS_REMOTE_ATOMIC,
	};

	opts->active = sides.active;
	opts->passive = sides.passive;
	opts->inline_data = MAX_INLINE;
	setup_open(s, opts, &rng, &regions);
}

/* The peer has `length` bytes at `to` that were at `from`. */
static void expect(struct setup *s, size_t to, size_t from, size_t length)
{
	memcpy(region_wanted(&s->remote, s->remote.bytes + to),
	       region_wanted(&s->local, s->local.bytes + from), length);
}

static void intact(struct setup *s)
{
	region_intact(&s->local, "active end");
	region_intact(&s->remote, "passive end");
}

static struct ibv_qp *active(struct setup *s)
{
	return s->pair.active.qp;
}

static struct ibv_qp *passive(struct setup *s)
{
	return s->pair.passive.qp;
}

static void both_complete(struct setup *s, uint64_t wr_id, uint32_t length)
{
	struct ibv_wc wc;

	cq_expect(s->pair.active.scq, wr_id, IBV_WC_SUCCESS, NULL);
	if (cq_expect(s->pair.passive.rcq, wr_id, IBV_WC_SUCCESS, &wc))
		tap_check(wc.byte_len == length, "%u bytes, wanted %u", wc.byte_len, length);
}

static void many_sges(void)
{
	struct ibv_sge from[MAX_SGE + 1], to[MAX_SGE + 1];
	struct pair_opts opts = {};
	struct setup s;

	begin(&s, &opts);
	for (int i = 0; i <= MAX_SGE; i++) {
		from[i] = region_sge(&s.local, i * 2 * PIECE, PIECE);
		to[i] = region_sge(&s.remote, (MAX_SGE - i) * 3 * PIECE, PIECE);
	}
	tap_check(s.pair.active.attr.max_sge == MAX_SGE, "max_sge %d", s.pair.active.attr.max_sge);
	tap_check(!post_recv(passive(&s), 1, to, MAX_SGE), "ibv_post_recv");
	tap_check(!post_send(active(&s), 1, IBV_WR_SEND, from, MAX_SGE, IBV_SEND_SIGNALED, 0),
		  "ibv_post_send");
	both_complete(&s, 1, MAX_SGE * PIECE);
	for (int i = 0; i < MAX_SGE; i++)
		expect(&s, (MAX_SGE - i) * 3 * PIECE, i * 2 * PIECE, PIECE);
	intact(&s);
	tap_check(post_recv(passive(&s), 2, to, MAX_SGE + 1) == EINVAL, "one more in a receive");
	tap_check(post_send(active(&s), 2, IBV_WR_SEND, from, MAX_SGE + 1, 0, 0) == EINVAL,
		  "one more in a send");
	tap_check(post_rdma(active(&s), 2, IBV_WR_RDMA_READ, from, 2, 0, 0, 0) == EINVAL,
		  "two in a read");
	setup_close(&s);
	tap_point("a work request has up to %d elements", MAX_SGE);
}

static void long_inline(void)
{
	uint8_t bytes[MAX_INLINE + 1];
	struct ibv_sge from[2] = { { .addr = (uintptr_t)bytes, .length = 1 },
				   { .addr = (uintptr_t)bytes + 1 } };
	const uint32_t lengths[] = { 1, 2, 8, 9, 255, MAX_INLINE };
	struct pair_opts opts = {};
	struct setup s;

	begin(&s, &opts);
	for (unsigned int i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		struct ibv_sge to = region_sge(&s.remote, 7, lengths[i]);

		rng_fill(&rng, bytes, sizeof(bytes));
		memcpy(region_wanted(&s.remote, s.remote.bytes + 7), bytes, lengths[i]);
		from[1].length = lengths[i] - 1;
		tap_check(!post_recv(passive(&s), i, &to, 1), "ibv_post_recv");
		tap_check(!post_send(active(&s), i, IBV_WR_SEND, from, 2,
				     IBV_SEND_SIGNALED | IBV_SEND_INLINE, 0),
			  "ibv_post_send, %u bytes", lengths[i]);
		memset(bytes, 0, sizeof(bytes));
		both_complete(&s, i, lengths[i]);
		intact(&s);
	}
	from[1].length = MAX_INLINE;
	tap_check(post_send(active(&s), 9, IBV_WR_SEND, from, 2, IBV_SEND_INLINE, 0) == EINVAL,
		  "one more");
	tap_check(post_rdma(active(&s), 9, IBV_WR_RDMA_READ, from, 1, IBV_SEND_INLINE, 0, 0) == EINVAL,
		  "a read");
	setup_close(&s);
	tap_point("inline data has up to %d bytes", MAX_INLINE);
}

/* Posts sends of a list until the library refuses one. */
static void refused(void)
{
	struct ibv_sge sge[2];
	struct ibv_send_wr wr[3] = {}, *bad_wr = NULL;
	struct ibv_recv_wr recv[3] = {}, *bad_recv = NULL;
	struct pair_opts opts = { .sq = 4, .rq = 4 };
	struct setup s;
	int i, status;

	begin(&s, &opts);
	sge[0] = region_sge(&s.local, 0, 1);
	sge[1] = region_sge(&s.remote, 0, 1);
	for (i = 0; i < 3; i++) {
		wr[i] = (struct ibv_send_wr){
			.wr_id = i, .sg_list = sge, .num_sge = 1, .opcode = IBV_WR_SEND,
			.send_flags = IBV_SEND_SIGNALED, .next = i < 2 ? &wr[i + 1] : NULL,
		};
		recv[i] = (struct ibv_recv_wr){
			.wr_id = i, .sg_list = &sge[1], .num_sge = 1, .next = i < 2 ? &recv[i + 1] : NULL,
		};
	}
	recv[1].num_sge = -1;
	status = ibv_post_recv(passive(&s), recv, &bad_recv);
	tap_check(status == EINVAL && bad_recv == &recv[1], "receives: %d, %td", status,
		  bad_recv - recv);
	wr[1].opcode = IBV_WR_SEND_WITH_IMM;
	status = ibv_post_send(active(&s), wr, &bad_wr);
	tap_check(status == EOPNOTSUPP && bad_wr == &wr[1], "sends: %d, %td", status, bad_wr - wr);
	both_complete(&s, 0, 1);
	expect(&s, 0, 0, 1);
	intact(&s);
	tap_check(cq_silent(s.pair.active.scq, SILENCE), "a refused send completes");
	for (i = 0; i < 100 && !(status = post_recv(passive(&s), i, sge, 0)); i++)
		;
	tap_check(status == ENOMEM && i >= 4 && i < 100, "receive queue of 4: %d after %d", status, i);
	setup_close(&s);
	tap_point("a list ends at the first work request that is refused");
}

static void invalidate(void)
{
	struct pair_opts opts = {};
	struct ibv_send_wr *bad, wr = {
		.wr_id = 1, .opcode = IBV_WR_SEND_WITH_INV, .send_flags = IBV_SEND_SIGNALED,
		/* libsiw looks here. */
		.wr.rdma.rkey = 0xffffffff,
	};
	struct ibv_wc wc;
	struct setup s;

	begin(&s, &opts);
	wr.invalidate_rkey = s.remote.mr->rkey;
	tap_check(!post_recv(passive(&s), 1, NULL, 0), "ibv_post_recv");
	tap_check(!ibv_post_send(active(&s), &wr, &bad), "ibv_post_send");
	cq_expect(s.pair.active.scq, 1, IBV_WC_SUCCESS, NULL);
	if (cq_expect(s.pair.passive.rcq, 1, IBV_WC_SUCCESS, &wc))
		tap_check(wc.wc_flags == IBV_WC_WITH_INV && wc.invalidated_rkey == wr.invalidate_rkey,
			  "flags %#x, key %#x", wc.wc_flags, wc.invalidated_rkey);
	setup_close(&s);
	tap_point("a receive says which key was invalidated");
}

static void immediate(void)
{
	struct pair_opts opts = {};
	struct ibv_sge from;
	struct ibv_send_wr *bad, wr = {
		.wr_id = 1, .sg_list = &from, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.send_flags = IBV_SEND_SIGNALED, .imm_data = htobe32(0x12345678),
	};
	struct ibv_wc wc;
	struct setup s;
	int status;

	begin(&s, &opts);
	from = region_sge(&s.local, 0, 5000);
	wr.wr.rdma.remote_addr = (uintptr_t)s.remote.bytes + 3;
	wr.wr.rdma.rkey = s.remote.mr->rkey;
	tap_check(!post_recv(passive(&s), 1, NULL, 0), "ibv_post_recv");
	status = ibv_post_send(active(&s), &wr, &bad);
	if (!atomics) {
		tap_check(status == EOPNOTSUPP, "status %d", status);
	} else {
		tap_check(!status, "ibv_post_send: %s", strerror(status));
		if (cq_expect(s.pair.active.scq, 1, IBV_WC_SUCCESS, &wc))
			tap_check(wc.opcode == IBV_WC_RDMA_WRITE, "opcode %d", wc.opcode);
		if (cq_expect(s.pair.passive.rcq, 1, IBV_WC_SUCCESS, &wc)) {
			tap_check(wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM, "opcode %d", wc.opcode);
			tap_check(wc.wc_flags == IBV_WC_WITH_IMM && wc.imm_data == wr.imm_data,
				  "flags %#x, %#x", wc.wc_flags, be32toh(wc.imm_data));
		}
		expect(&s, 3, 0, 5000);
	}
	intact(&s);
	setup_close(&s);
	tap_point("a write with immediate data %s", atomics ? "arrives with it" : "is refused");
}

/* Executes an atomic operation on the first number of the peer. Returns the old value. */
static uint64_t atomic(struct setup *s, enum ibv_wr_opcode opcode, uint64_t compare_add, uint64_t swap)
{
	struct ibv_sge from = region_sge(&s->local, 0, 8);
	struct ibv_send_wr *bad, wr = {
		.wr_id = 1, .sg_list = &from, .num_sge = 1, .opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.atomic = {
			.remote_addr = (uintptr_t)s->remote.bytes, .rkey = s->remote.mr->rkey,
			.compare_add = compare_add, .swap = swap,
		},
	};
	int status = ibv_post_send(active(s), &wr, &bad);
	struct ibv_wc wc;
	uint64_t old;

	tap_check(status == (atomics ? 0 : EOPNOTSUPP), "status %d", status);
	if (status)
		return 0;
	if (cq_expect(s->pair.active.scq, 1, IBV_WC_SUCCESS, &wc))
		tap_check(wc.opcode == (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? IBV_WC_FETCH_ADD
									      : IBV_WC_COMP_SWAP),
			  "opcode %d", wc.opcode);
	memcpy(&old, s->local.bytes, sizeof(old));
	return old;
}

static void counter_is(struct setup *s, uint64_t wanted)
{
	uint64_t now;

	memcpy(&now, s->remote.bytes, sizeof(now));
	tap_check(now == wanted, "the number is %" PRIu64 ", not %" PRIu64, now, wanted);
}

static void atomic_operations(void)
{
	const uint64_t large = 0xfedcba9876543210;
	struct pair_opts opts = {};
	struct setup s;
	uint64_t old;

	begin(&s, &opts);
	tap_check((s.pair.active.attr.atomic_cap != IBV_ATOMIC_NONE) == atomics, "atomic_cap %d",
		  s.pair.active.attr.atomic_cap);
	if (atomics) {
		memcpy(s.remote.bytes, &large, sizeof(large));
		old = atomic(&s, IBV_WR_ATOMIC_FETCH_AND_ADD, 5, 0);
		tap_check(old == large, "FETCH_ADD returns %#" PRIx64, old);
		counter_is(&s, large + 5);
		old = atomic(&s, IBV_WR_ATOMIC_CMP_AND_SWP, large, 1);
		tap_check(old == large + 5, "CMP_SWP returns %#" PRIx64, old);
		counter_is(&s, large + 5);
		old = atomic(&s, IBV_WR_ATOMIC_CMP_AND_SWP, large + 5, 1);
		tap_check(old == large + 5, "CMP_SWP returns %#" PRIx64, old);
		counter_is(&s, 1);
	} else {
		atomic(&s, IBV_WR_ATOMIC_FETCH_AND_ADD, 5, 0);
		atomic(&s, IBV_WR_ATOMIC_CMP_AND_SWP, 5, 0);
		intact(&s);
	}
	setup_close(&s);
	tap_point("atomic operations %s", atomics ? "change the number, and return the old one"
						  : "are refused");
}

static void new_interface(void)
{
	struct pair_opts opts = { .sq = 4, .send_ops = SEND_OPS | (atomics ? ATOMIC_OPS : 0) };
	struct ibv_data_buf buffers[2];
	struct ibv_sge to[3], list[2];
	struct ibv_qp_ex *qp;
	struct setup s;
	int status;

	begin(&s, &opts);
	for (int i = 0; i < 3; i++) {
		to[i] = region_sge(&s.remote, i * 1000, 1000);
		tap_check(!post_recv(passive(&s), i, &to[i], 1), "ibv_post_recv");
	}
	qp = ibv_qp_to_qp_ex(active(&s));
	if (!tap_check(qp, "ibv_qp_to_qp_ex")) {
		setup_close(&s);
		tap_point("ibv_wr_* build work requests");
		return;
	}

	/* Withdrawn. */
	ibv_wr_start(qp);
	qp->wr_id = 100;
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(qp);
	ibv_wr_set_sge(qp, s.local.mr->lkey, (uintptr_t)s.local.bytes, 10);
	ibv_wr_abort(qp);

	ibv_wr_start(qp);
	qp->wr_id = 0;
	ibv_wr_send(qp);
	ibv_wr_set_sge(qp, s.local.mr->lkey, (uintptr_t)s.local.bytes, 10);
	qp->wr_id = 1;
	ibv_wr_rdma_write(qp, s.remote.mr->rkey, (uintptr_t)s.remote.bytes + 5000);
	list[0] = region_sge(&s.local, 100, 50);
	list[1] = region_sge(&s.local, 300, 70);
	ibv_wr_set_sge_list(qp, 2, list);
	qp->wr_id = 2;
	ibv_wr_send(qp);
	buffers[0] = (struct ibv_data_buf){ s.local.bytes + 20, 3 };
	buffers[1] = (struct ibv_data_buf){ s.local.bytes + 40, 11 };
	ibv_wr_set_inline_data_list(qp, 2, buffers);
	status = ibv_wr_complete(qp);
	tap_check(!status, "ibv_wr_complete: %d", status);
	for (int i = 0; i < 3; i++)
		cq_expect(s.pair.active.scq, i, IBV_WC_SUCCESS, NULL);
	cq_expect(s.pair.passive.rcq, 0, IBV_WC_SUCCESS, NULL);
	cq_expect(s.pair.passive.rcq, 1, IBV_WC_SUCCESS, NULL);
	expect(&s, 0, 0, 10);
	expect(&s, 5000, 100, 50);
	expect(&s, 5050, 300, 70);
	expect(&s, 1000, 20, 3);
	expect(&s, 1003, 40, 11);
	intact(&s);

	/* One that is refused takes all with it. */
	ibv_wr_start(qp);
	qp->wr_id = 200;
	ibv_wr_send(qp);
	ibv_wr_set_sge(qp, s.local.mr->lkey, (uintptr_t)s.local.bytes, 10);
	ibv_wr_send(qp);
	ibv_wr_set_inline_data(qp, s.local.bytes, MAX_INLINE + 1);
	status = ibv_wr_complete(qp);
	tap_check(status == EINVAL, "too much inline data: %d", status);
	tap_check(cq_silent(s.pair.active.scq, SILENCE), "a withdrawn work request completes");

	/* The queue is as it was. */
	ibv_wr_start(qp);
	qp->wr_id = 3;
	ibv_wr_send_inv(qp, s.remote.mr->rkey);
	ibv_wr_set_inline_data(qp, s.local.bytes + 60, 9);
	tap_check(!ibv_wr_complete(qp), "ibv_wr_complete");
	cq_expect(s.pair.active.scq, 3, IBV_WC_SUCCESS, NULL);
	setup_close(&s);
	tap_point("ibv_wr_* build work requests");
}

static void creation_flags(void)
{
	const uint32_t given = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
	struct ibv_qp_init_attr_ex init;
	struct pair_opts opts = {};
	struct ibv_qp *qp;
	struct setup s;

	begin(&s, &opts);
	init = (struct ibv_qp_init_attr_ex){
		.send_cq = s.pair.active.scq, .recv_cq = s.pair.active.rcq, .pd = s.pair.active.pd,
		.qp_type = IBV_QPT_RC, .comp_mask = given,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	qp = ibv_create_qp_ex(s.pair.active.ctx, &init);
	if (tap_check(qp, "none: %s", strerror(errno)))
		tap_check(!ibv_destroy_qp(qp), "ibv_destroy_qp");
	tap_check(init.comp_mask == given, "comp_mask %#x", init.comp_mask);
	init.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
	errno = 0;
	qp = ibv_create_qp_ex(s.pair.active.ctx, &init);
	tap_check(!qp && errno == EOPNOTSUPP, "one: %s", qp ? "no error" : strerror(errno));
	setup_close(&s);
	tap_point("the creation flags of a queue pair may be given, but none is supported");
}

static void extended_completions(void)
{
	struct pair_opts opts = { .wc_flags = WC_FLAGS };
	struct ibv_poll_cq_attr attr = {};
	struct ibv_cq_ex *cq;
	struct ibv_sge from, to;
	struct setup s;
	int64_t end;
	int got = 0, status;

	begin(&s, &opts);
	cq = (struct ibv_cq_ex *)s.pair.passive.rcq;
	from = region_sge(&s.local, 0, PIECE);
	to = region_sge(&s.remote, 0, PIECE);
	tap_check(ibv_start_poll(cq, &attr) == ENOENT, "an empty queue");
	attr.comp_mask = 1;
	tap_check(ibv_start_poll(cq, &attr) == EINVAL, "an unknown attribute");
	attr.comp_mask = 0;
	for (int i = 0; i < 20; i++) {
		tap_check(!post_recv(passive(&s), 50 + i, &to, 1), "ibv_post_recv");
		tap_check(!post_send(active(&s), i, IBV_WR_SEND, &from, 1, IBV_SEND_SIGNALED, 0),
			  "ibv_post_send");
	}
	/* Between the queues of both ends, an ordinary poll of an extended queue. */
	for (int i = 0; i < 20; i++)
		cq_expect(s.pair.active.scq, i, IBV_WC_SUCCESS, NULL);
	end = now_ms() + PATIENCE;
	while (got < 20 && now_ms() < end) {
		status = ibv_start_poll(cq, &attr);
		if (status)
			continue;
		do {
			tap_check(cq->wr_id == 50u + got && cq->status == IBV_WC_SUCCESS,
				  "completion %" PRIu64 ", status %d", cq->wr_id, cq->status);
			tap_check(ibv_wc_read_opcode(cq) == IBV_WC_RECV, "opcode %d",
				  ibv_wc_read_opcode(cq));
			tap_check(ibv_wc_read_byte_len(cq) == PIECE, "%u bytes",
				  ibv_wc_read_byte_len(cq));
			tap_check(ibv_wc_read_qp_num(cq) == passive(&s)->qp_num, "of QP %u",
				  ibv_wc_read_qp_num(cq));
			tap_check(ibv_wc_read_wc_flags(cq) == 0, "flags %#x", ibv_wc_read_wc_flags(cq));
			got++;
		} while (!(status = ibv_next_poll(cq)));
		ibv_end_poll(cq);
		tap_check(status == ENOENT, "ibv_next_poll: %d", status);
	}
	tap_check(got == 20, "%d of 20 completions", got);
	expect(&s, 0, 0, PIECE);
	intact(&s);
	setup_close(&s);
	tap_point("extended completion queues have all of a completion");
}

static void notified(void)
{
	struct pair_opts opts = { .notify = true };
	struct setup s;

	begin(&s, &opts);
	for (int solicited = 0; solicited < 2; solicited++) {
		tap_check(!ibv_req_notify_cq(s.pair.passive.rcq, solicited), "ibv_req_notify_cq");
		tap_check(!post_recv(passive(&s), 1, NULL, 0) && !post_recv(passive(&s), 2, NULL, 0),
			  "ibv_post_recv");
		tap_check(!post_send(active(&s), 1, IBV_WR_SEND, NULL, 0, IBV_SEND_SIGNALED, 0),
			  "ibv_post_send");
		both_complete(&s, 1, 0);
		tap_check(cq_event_within(s.pair.passive.rchannel, solicited ? SILENCE : PATIENCE) ==
			  !solicited, "solicited only: %d, a plain send", solicited);
		tap_check(!post_send(active(&s), 2, IBV_WR_SEND, NULL, 0,
				     IBV_SEND_SIGNALED | IBV_SEND_SOLICITED, 0), "ibv_post_send");
		both_complete(&s, 2, 0);
		tap_check(cq_event_within(s.pair.passive.rchannel, solicited ? PATIENCE : SILENCE) ==
			  solicited, "solicited only: %d, a solicited send", solicited);
	}
	setup_close(&s);
	tap_point("an armed completion queue gives one event");
}

/* Posts a WRITE with immediate data and its receive, and waits for both completions. */
static void exchange_immediate(struct setup *s, unsigned int flags)
{
	struct ibv_send_wr *bad, wr = {
		.wr_id = 1, .opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .imm_data = 1,
		.send_flags = IBV_SEND_SIGNALED | flags,
	};

	tap_check(!post_recv(passive(s), 1, NULL, 0), "ibv_post_recv");
	tap_check(!ibv_post_send(active(s), &wr, &bad), "ibv_post_send");
	both_complete(s, 1, 0);
}

static void notified_of_immediate(void)
{
	struct pair_opts opts = { .notify = true };
	struct setup s;

	begin(&s, &opts);
	tap_check(!ibv_req_notify_cq(s.pair.passive.rcq, 1), "ibv_req_notify_cq");
	exchange_immediate(&s, 0);
	tap_check(!cq_event_within(s.pair.passive.rchannel, SILENCE), "an event without SE");
	exchange_immediate(&s, IBV_SEND_SOLICITED);
	tap_check(cq_event_within(s.pair.passive.rchannel, PATIENCE), "no event with SE");
	exchange_immediate(&s, IBV_SEND_SOLICITED);
	tap_check(!cq_event_within(s.pair.passive.rchannel, SILENCE), "an event that was not armed");
	tap_check(!ibv_req_notify_cq(s.pair.passive.rcq, 0), "ibv_req_notify_cq");
	exchange_immediate(&s, 0);
	tap_check(cq_event_within(s.pair.passive.rchannel, PATIENCE), "no event, armed for all");
	setup_close(&s);
	tap_point("immediate data with SE is a solicited event, without it is not");
}

/* Arms the queue, and gives it another size, while this thread polls it. */
static void notified_in_batch(void)
{
	struct pair_opts opts = { .notify = true, .wc_flags = WC_FLAGS };
	struct ibv_poll_cq_attr attr = {};
	struct ibv_cq_ex *cq;
	struct setup s;
	int status;

	begin(&s, &opts);
	cq = (struct ibv_cq_ex *)s.pair.passive.rcq;
	for (int i = 0; i < 4; i++) {
		tap_check(!post_recv(passive(&s), 50 + i, NULL, 0), "ibv_post_recv");
		tap_check(!post_send(active(&s), i, IBV_WR_SEND, NULL, 0, IBV_SEND_SIGNALED, 0),
			  "ibv_post_send");
		cq_expect(s.pair.active.scq, i, IBV_WC_SUCCESS, NULL);
	}
	sleep_ms(SILENCE);
	status = ibv_start_poll(cq, &attr);
	tap_check(!status && cq->wr_id == 50, "ibv_start_poll: %d", status);
	/* A thread that waits for itself does so for ever. */
	alarm(10);
	tap_check(!ibv_req_notify_cq(s.pair.passive.rcq, 0), "ibv_req_notify_cq");
	status = ibv_resize_cq(s.pair.passive.rcq, 1000);
	tap_check(!status, "ibv_resize_cq: %d", status);
	alarm(0);
	tap_check(ibv_wc_read_opcode(cq) == IBV_WC_RECV, "opcode %d", ibv_wc_read_opcode(cq));
	for (int i = 1; i < 4; i++) {
		status = ibv_next_poll(cq);
		tap_check(!status && cq->wr_id == 50u + i, "%d: %d", i, status);
	}
	tap_check(ibv_next_poll(cq) == ENOENT, "more completions than messages");
	ibv_end_poll(cq);
	tap_check(!post_recv(passive(&s), 1, NULL, 0), "ibv_post_recv");
	tap_check(!post_send(active(&s), 1, IBV_WR_SEND, NULL, 0, IBV_SEND_SIGNALED, 0),
		  "ibv_post_send");
	both_complete(&s, 1, 0);
	tap_check(cq_event_within(s.pair.passive.rchannel, PATIENCE), "no event");
	setup_close(&s);
	tap_point("a queue can be armed and resized between ibv_start_poll and ibv_end_poll");
}

#define POSTS 20000

/* Posts to a queue pair that is not connected. Returns how many posts were not refused. */
static void *post_unconnected(void *qp)
{
	uintptr_t taken = 0;

	for (int i = 0; i < POSTS; i++)
		if (post_send(qp, i, IBV_WR_SEND, NULL, 0, IBV_SEND_SIGNALED, 0) != ENOTCONN)
			taken++;
	return (void *)taken;
}

static void unconnected(void)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 64, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct pair_opts opts = {};
	pthread_t other;
	void *taken[2];
	struct setup s;
	struct ibv_qp *qp;

	begin(&s, &opts);
	attr.send_cq = s.pair.active.scq;
	attr.recv_cq = s.pair.active.rcq;
	qp = ibv_create_qp(s.pair.active.pd, &attr);
	if (!qp || pthread_create(&other, NULL, post_unconnected, qp))
		tap_bail("a queue pair and a thread: %s", strerror(errno));
	taken[0] = post_unconnected(qp);
	pthread_join(other, &taken[1]);
	tap_check(!taken[0] && !taken[1], "%ju and %ju posts are not refused", (uintmax_t)(uintptr_t)taken[0],
		  (uintmax_t)(uintptr_t)taken[1]);
	tap_check(cq_silent(s.pair.active.scq, 0), "a completion");
	tap_check(!ibv_destroy_qp(qp), "ibv_destroy_qp");
	setup_close(&s);
	tap_point("each post to a queue pair that is not connected is refused, of each thread");
}

/* More completions than the queue has places, all taken in one batch. */
static void long_batch(void)
{
	struct pair_opts opts = { .cqe = 4, .wc_flags = WC_FLAGS };
	struct ibv_poll_cq_attr attr = {};
	int64_t end = now_ms() + PATIENCE;
	struct ibv_cq_ex *cq;
	struct setup s;
	int taken, status;

	begin(&s, &opts);
	cq = (struct ibv_cq_ex *)s.pair.active.scq;
	/* All places are taken before the first completion is polled. Sends are complete when they are sent. */
	tap_check(!post_recv(passive(&s), 0, NULL, 0), "ibv_post_recv");
	for (int i = 1; i < cq->cqe; i++)
		tap_check(!post_rdma(active(&s), i, IBV_WR_RDMA_WRITE, NULL, 0, IBV_SEND_SIGNALED,
				     (uintptr_t)s.remote.bytes, s.remote.mr->rkey), "ibv_post_send");
	tap_check(!post_send(active(&s), 0, IBV_WR_SEND, NULL, 0, IBV_SEND_SIGNALED, 0), "ibv_post_send");
	cq_expect(s.pair.passive.rcq, 0, IBV_WC_SUCCESS, NULL);
	while ((status = ibv_start_poll(cq, &attr)) == ENOENT && now_ms() < end)
		;
	for (taken = 0; !status && cq->status == IBV_WC_SUCCESS && taken < 100; taken++) {
		tap_check(!post_rdma(active(&s), taken + 1, IBV_WR_RDMA_WRITE, NULL, 0, IBV_SEND_SIGNALED,
				     (uintptr_t)s.remote.bytes, s.remote.mr->rkey), "ibv_post_send");
		while ((status = ibv_next_poll(cq)) == ENOENT && now_ms() < end)
			;
	}
	tap_check(taken == 100, "%d of 100 completions", taken);
	ibv_end_poll(cq);
	tap_check(!async_event_within(s.pair.active.ctx, IBV_EVENT_CQ_ERR, s.pair.active.scq, 0), "an overflow");
	setup_close(&s);
	tap_point("a batch may have more completions than the queue has places");
}

static void shared_receives(void)
{
	struct pair_opts opts = { .srq = 8 };
	struct ibv_srq_attr attr = { .srq_limit = 4 };
	struct ibv_srq *srq;
	struct setup s;
	int i, status;

	begin(&s, &opts);
	srq = s.pair.passive.srq;
	tap_check(post_recv(passive(&s), 1, NULL, 0) == EINVAL, "a receive of a QP with an SRQ");
	for (i = 0; i < 100 && !(status = post_srq_recv(srq, i, NULL, 0)); i++)
		;
	tap_check(status == ENOMEM && i >= 8 && i < 100, "SRQ of 8: %d after %d", status, i);
	tap_check(!ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), "ibv_modify_srq");
	memset(&attr, 0, sizeof(attr));
	tap_check(!ibv_query_srq(srq, &attr), "ibv_query_srq");
	tap_check(attr.max_wr >= 8 && attr.max_wr == (unsigned int)i && attr.srq_limit == 4,
		  "room for %u, limit %u", attr.max_wr, attr.srq_limit);
	for (int n = 0; n < i - 3; n++) {
		tap_check(!post_send(active(&s), n, IBV_WR_SEND, NULL, 0, IBV_SEND_SIGNALED, 0),
			  "ibv_post_send");
		both_complete(&s, n, 0);
	}
	tap_check(async_event_within(s.pair.passive.ctx, IBV_EVENT_SRQ_LIMIT_REACHED, srq, PATIENCE),
		  "no event at the limit");
	setup_close(&s);
	tap_point("shared receives: limits, and what the SRQ says about them");
}

static void region_flags(void)
{
	struct pair_opts opts = {};
	struct ibv_device_attr_ex attr = {};
	struct ibv_sge from, to;
	struct ibv_pd *pd;
	struct setup s;

	begin(&s, &opts);
	pd = s.pair.active.pd;
	tap_check(!ibv_query_device_ex(s.pair.active.ctx, NULL, &attr), "ibv_query_device_ex");
	tap_check(!attr.odp_caps.general_caps && !attr.odp_caps.per_transport_caps.rc_odp_caps,
		  "on-demand paging is announced");
	errno = 0;
	tap_check(!ibv_reg_mr(pd, s.local.bytes, LENGTH, ALL | IBV_ACCESS_ON_DEMAND) &&
		  errno == EOPNOTSUPP, "on-demand paging: %s", strerror(errno));
	errno = 0;
	tap_check(!ibv_reg_mr(pd, NULL, SIZE_MAX, ALL | IBV_ACCESS_ON_DEMAND) && errno == EOPNOTSUPP,
		  "implicit on-demand paging: %s", strerror(errno));
	from = region_sge(&s.local, 0, PIECE);
	tap_check(ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &from, 1) == EOPNOTSUPP,
		  "ibv_advise_mr");
	ibv_dereg_mr(s.local.mr);
	region_register(&s.local, pd, ALL | IBV_ACCESS_RELAXED_ORDERING);
	from = region_sge(&s.local, 0, PIECE);
	to = region_sge(&s.remote, 0, PIECE);
	tap_check(!post_recv(passive(&s), 1, &to, 1), "ibv_post_recv");
	tap_check(!post_send(active(&s), 1, IBV_WR_SEND, &from, 1, IBV_SEND_SIGNALED, 0),
		  "ibv_post_send");
	both_complete(&s, 1, PIECE);
	expect(&s, 0, 0, PIECE);
	intact(&s);
	setup_close(&s);
	tap_point("on-demand paging is refused, relaxed ordering accepted");
}

static void late_receive(void)
{
	struct pair_opts opts = {};
	struct setup s;

	begin(&s, &opts);
	tap_check(!post_recv(passive(&s), 1, NULL, 0), "ibv_post_recv");
	tap_check(qp_to_error(passive(&s)), "ibv_modify_qp");
	cq_expect(s.pair.passive.rcq, 1, IBV_WC_WR_FLUSH_ERR, NULL);
	/* The kernel has nothing to do any more: only the doorbell can wake it. */
	sleep_ms(SILENCE);
	for (int i = 2; i < 10; i++) {
		tap_check(!post_recv(passive(&s), i, NULL, 0), "ibv_post_recv");
		cq_expect(s.pair.passive.rcq, i, IBV_WC_WR_FLUSH_ERR, NULL);
		tap_check(!post_send(passive(&s), i, IBV_WR_SEND, NULL, 0, 0, 0), "ibv_post_send");
		cq_expect(s.pair.passive.scq, i, IBV_WC_WR_FLUSH_ERR, NULL);
	}
	setup_close(&s);
	tap_point("what is posted in ERROR is flushed at once");
}

/* Executes `check` with credentials other than those that have opened the device. */
static void as_other_user(struct setup *s, void *(*check)(void *))
{
	pthread_t thread;
	void *why;

	/* The system call changes the credentials of one thread; no thread can get the old ones back. */
	if (pthread_create(&thread, NULL, check, s))
		tap_bail("pthread_create");
	pthread_join(thread, &why);
	tap_check(!why, "as another user: %s", (char *)why);
}

static char *other_user(struct setup *s)
{
	char none[32] = {};

	syscall(SYS_setfsuid, 65534);
	if (write(s->pair.active.ctx->cmd_fd, none, sizeof(none)) != -1 || errno != EACCES)
		return "write() is not refused";
	return NULL;
}

static void *post_connected(void *arg)
{
	struct setup *s = arg;
	char *why = other_user(s);

	for (int i = 0; i < 10 && !why && !tap_failing(); i++) {
		tap_check(!post_recv(passive(s), i, NULL, 0), "ibv_post_recv");
		tap_check(!post_send(active(s), i, IBV_WR_SEND, NULL, 0, IBV_SEND_SIGNALED, 0),
			  "ibv_post_send");
		both_complete(s, i, 0);
	}
	return why;
}

static void *post_in_error(void *arg)
{
	struct setup *s = arg;
	char *why = other_user(s);

	if (why)
		return why;
	tap_check(!post_recv(passive(s), 10, NULL, 0), "ibv_post_recv");
	cq_expect(s->pair.passive.rcq, 10, IBV_WC_WR_FLUSH_ERR, NULL);
	return NULL;
}

static void other_credentials(void)
{
	struct pair_opts opts = {};
	struct setup s;

	begin(&s, &opts);
	as_other_user(&s, post_connected);
	tap_check(qp_to_error(passive(&s)), "ibv_modify_qp");
	/* As in late_receive(). */
	sleep_ms(SILENCE);
	as_other_user(&s, post_in_error);
	setup_close(&s);
	tap_point("doorbells ring after a change of credentials");
}

#define THREADS 4
#define EACH 1000

static void *post_many(void *arg)
{
	struct setup *s = arg;

	for (int i = 0; i < EACH;) {
		int status = post_send(active(s), i, IBV_WR_SEND, NULL, 0, IBV_SEND_SIGNALED, 0);

		if (status == ENOMEM) {
			sched_yield();
			continue;
		}
		if (status)
			return "ibv_post_send";
		i++;
	}
	return NULL;
}

static void threads(void)
{
	/* iWARP does not wait for receives, and the queue has room before its completions are polled. */
	struct pair_opts opts = { .sq = 64, .rq = THREADS * EACH, .cqe = THREADS * EACH };
	int64_t end = now_ms() + PATIENCE;
	int sent = 0, received = 0;
	pthread_t thread[THREADS];
	struct ibv_wc wc[16];
	struct setup s;

	begin(&s, &opts);
	for (int i = 0; i < THREADS * EACH; i++)
		tap_check(!post_recv(passive(&s), i, NULL, 0), "ibv_post_recv");
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, post_many, &s))
			tap_bail("pthread_create");
	while ((sent < THREADS * EACH || received < THREADS * EACH) && now_ms() < end &&
	       !tap_failing()) {
		int got = ibv_poll_cq(s.pair.active.scq, 16, wc);

		for (int i = 0; i < got; i++)
			tap_check(!wc[i].status, "send: %s", ibv_wc_status_str(wc[i].status));
		sent += got > 0 ? got : 0;
		got = ibv_poll_cq(s.pair.passive.rcq, 16, wc);
		for (int i = 0; i < got; i++, received++)
			tap_check(!wc[i].status && wc[i].wr_id == (uint64_t)received,
				  "receive %" PRIu64 ": %s", wc[i].wr_id,
				  ibv_wc_status_str(wc[i].status));
	}
	tap_check(sent == THREADS * EACH && received == THREADS * EACH, "%d sent, %d received", sent,
		  received);
	if (tap_failing())
		/* The threads may wait for room for ever. */
		qp_to_error(active(&s));
	for (int i = 0; i < THREADS; i++) {
		void *why;

		if (tap_failing())
			pthread_cancel(thread[i]);
		pthread_join(thread[i], &why);
		tap_check(!why, "a thread has failed");
	}
	setup_close(&s);
	tap_point("%d threads post to one queue", THREADS);
}

int main(int argc, char **argv)
{
	int option;

	while ((option = getopt(argc, argv, "ae")) != -1) {
		if (option != 'a' && option != 'e')
			return 2;
		*(option == 'a' ? &atomics : &early) = true;
	}
	if (argc - optind != 2)
		return 2;
	sides.active = side_parse(argv[optind]);
	sides.passive = side_parse(argv[optind + 1]);

	many_sges();
	long_inline();
	refused();
	invalidate();
	immediate();
	atomic_operations();
	new_interface();
	creation_flags();
	extended_completions();
	notified();
	if (atomics)
		notified_of_immediate();
	notified_in_batch();
	if (!early) {
		unconnected();
		long_batch();
	}
	shared_receives();
	region_flags();
	late_receive();
	other_credentials();
	threads();
	return tap_done();
}
