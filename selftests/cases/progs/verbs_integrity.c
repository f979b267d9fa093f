// SPDX-License-Identifier: GPL-2.0
/*
 * Random operations on several QPs at once, in both directions, each byte checked.
 *
 *     verbs_integrity [-q QPS] [-n BATCHES] [-s SLOT_BYTES] [-r SEED] [-S] [-i] ACTIVE PASSIVE
 *
 * -S: the passive ends have SRQs. -i: half of the WRITEs have immediate data, which take receives in the
 * order of the SENDs.
 *
 * Each end of each QP has a region divided into slots. A batch gives every operation its own slots,
 * so that the expected contents are known for any order. In each direction a final SEND shows that
 * the operations before it have been placed. As soon as an operation completes, its source is
 * overwritten: this detects a buffer that is still to be sent.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/access.h"
#include "common/clock.h"
#include "common/pair.h"
#include "common/post.h"
#include "common/random.h"
#include "common/region.h"
#include "common/tap.h"

#define OPS 4			/* of one end in one batch */
#define SLOTS (OPS * 2 * 2)	/* an operation takes up to two slots of an end */
#define WRS (OPS * 2 + 1)
#define MAX_SGE 6
#define INLINE 64

/* A posted send work request, and the effect of its completion. */
struct sent {
	bool signaled, done;
	bool overwrite;			/* its source `slot` is free on completion */
	unsigned int slot;
};

struct side_state {
	struct end *end;
	struct region region;
	struct ibv_mr *mr[2];
	unsigned int free_slots[SLOTS], free_count;
	struct sent sent[WRS];
	int sends, recvs;
	int completed, received;
	uint32_t recv_length[WRS];
	bool recv_immediate[WRS];
	uint32_t recv_data[WRS];	/* the immediate data */
	uint64_t marker_in[2];		/* registered with the region's end */
};

struct flow {
	struct pair pair;
	struct side_state side[2];
};

static struct rng rng;
static size_t slot_bytes = 65536 + 64;
static bool in_order = true, immediates;
static uint64_t posted_ops, posted_bytes, posted_immediates;

static uint8_t *slot_bytes_at(struct side_state *s, unsigned int slot)
{
	return s->region.bytes + slot * slot_bytes;
}

static unsigned int take_slot(struct side_state *s)
{
	unsigned int i = rng_below(&rng, s->free_count), slot = s->free_slots[i];

	s->free_slots[i] = s->free_slots[--s->free_count];
	return slot;
}

static int compare_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* Splits 0..whole at n - 1 random places: fills cut[0..n], from 0 to `whole`. */
static void random_cuts(uint32_t *cut, int n, uint32_t whole)
{
	cut[0] = 0;
	for (int i = 1; i < n; i++)
		cut[i] = rng_below(&rng, whole + 1);
	cut[n] = whole;
	qsort(cut, n + 1, sizeof(*cut), compare_u32);
}

/*
 * Splits `total` bytes of a slot into up to `max` pieces, with gaps between them and in any order.
 * Returns the number of pieces.
 */
static int make_list(struct side_state *s, unsigned int slot, uint32_t total, int max,
		     struct ibv_sge *sge)
{
	uint32_t pieces[MAX_SGE + 1], gaps[MAX_SGE + 1];
	int i, n = 1 + rng_below(&rng, max < MAX_SGE ? max : MAX_SGE);

	random_cuts(pieces, n, total);
	random_cuts(gaps, n, slot_bytes - total);
	for (i = 0; i < n; i++) {
		sge[i].addr = (uintptr_t)slot_bytes_at(s, slot) + pieces[i] + gaps[i];
		sge[i].length = pieces[i + 1] - pieces[i];
		sge[i].lkey = s->mr[rng_below(&rng, 2)]->lkey;
	}
	for (i = n - 1; i > 0; i--) {
		int j = rng_below(&rng, i + 1);
		struct ibv_sge swap = sge[i];

		sge[i] = sge[j];
		sge[j] = swap;
	}
	return n;
}

/* Copies `length` bytes between two lists of pieces, in the expected contents. */
static void expect_copy(struct side_state *to, const struct ibv_sge *to_sge,
			struct side_state *from, const struct ibv_sge *from_sge, uint32_t length)
{
	uint32_t out = 0, in = 0, n;

	while (length) {
		while (out == to_sge->length)
			to_sge++, out = 0;
		while (in == from_sge->length)
			from_sge++, in = 0;
		n = to_sge->length - out;
		if (n > from_sge->length - in)
			n = from_sge->length - in;
		if (n > length)
			n = length;
		memcpy(region_wanted(&to->region, (void *)(uintptr_t)(to_sge->addr + out)),
		       region_wanted(&from->region, (void *)(uintptr_t)(from_sge->addr + in)), n);
		out += n;
		in += n;
		length -= n;
	}
}

static unsigned int random_flags(void)
{
	return (rng_below(&rng, 2) ? IBV_SEND_SIGNALED : 0) |
	       (rng_below(&rng, 4) ? 0 : IBV_SEND_FENCE) |
	       (rng_below(&rng, 4) ? 0 : IBV_SEND_SOLICITED);
}

static uint64_t wr_id(const struct side_state *s, int index)
{
	return ((uint64_t)s->end->qp->qp_num << 32) | index;
}

/* A batch before it is posted. */
struct batch {
	struct ibv_send_wr wr[WRS];
	struct ibv_sge sge[WRS][MAX_SGE];
	uint8_t inline_data[WRS][INLINE];
	struct ibv_recv_wr recv_wr[WRS];
	struct ibv_sge recv_sge[WRS][MAX_SGE];
};

static struct ibv_send_wr *next_wr(struct side_state *s, struct batch *b, unsigned int flags,
				   enum ibv_wr_opcode opcode, bool overwrite, unsigned int slot)
{
	struct ibv_send_wr *wr = &b->wr[s->sends];

	*wr = (struct ibv_send_wr){
		.wr_id = wr_id(s, s->sends), .sg_list = b->sge[s->sends],
		.opcode = opcode, .send_flags = flags,
	};
	s->sent[s->sends] = (struct sent){
		.signaled = flags & IBV_SEND_SIGNALED, .overwrite = overwrite, .slot = slot,
	};
	s->sends++;
	posted_ops++;
	return wr;
}

/* Makes a work request inline: its bytes are in unregistered memory. */
static void make_inline(struct side_state *s, struct batch *b, struct ibv_send_wr *wr)
{
	uint8_t *to = b->inline_data[wr - b->wr];
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		memcpy(to, region_wanted(&s->region, (void *)(uintptr_t)wr->sg_list[i].addr),
		       wr->sg_list[i].length);
		wr->sg_list[i].addr = (uintptr_t)to;
		wr->sg_list[i].lkey = 0xdeadbeef;
		to += wr->sg_list[i].length;
	}
	wr->send_flags |= IBV_SEND_INLINE;
}

/* Adds a receive for a SEND of `length` bytes. Returns its list, which will hold the bytes. */
static struct ibv_sge *add_recv(struct side_state *to, struct batch *b, uint32_t length)
{
	uint32_t room = length + (rng_below(&rng, 2) ? rng_below(&rng, slot_bytes - length + 1) : 0);
	struct ibv_recv_wr *wr = &b->recv_wr[to->recvs];

	*wr = (struct ibv_recv_wr){
		.wr_id = wr_id(to, to->recvs), .sg_list = b->recv_sge[to->recvs],
		.num_sge = make_list(to, take_slot(to), room, to->end->attr.max_sge,
				     b->recv_sge[to->recvs]),
	};
	to->recv_immediate[to->recvs] = false;
	to->recv_length[to->recvs++] = length;
	return wr->sg_list;
}

static uint32_t random_length(void)
{
	uint32_t length = rng_length(&rng, slot_bytes);

	posted_bytes += length;
	return length;
}

static void add_send(struct side_state *from, struct batch *b, struct side_state *to,
		     struct batch *to_b)
{
	unsigned int slot = take_slot(from);
	uint32_t length = random_length();
	struct ibv_send_wr *wr = next_wr(from, b, random_flags(), IBV_WR_SEND, true, slot);
	struct ibv_sge *recv = add_recv(to, to_b, length);

	wr->num_sge = make_list(from, slot, length, from->end->attr.max_sge, wr->sg_list);
	expect_copy(to, recv, from, wr->sg_list, length);
	if (length <= INLINE && rng_below(&rng, 2))
		make_inline(from, b, wr);
}

/* Gives a WRITE immediate data, and adds a receive for it, whose memory nothing may change. */
static void add_immediate(struct ibv_send_wr *wr, struct side_state *to, struct batch *to_b,
			  uint32_t length)
{
	int recv = to->recvs;

	/* Zero is a number, too. */
	wr->imm_data = rng_below(&rng, 8) ? (uint32_t)rng_next(&rng) : 0;
	wr->opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	add_recv(to, to_b, 0);
	to->recv_immediate[recv] = true;
	to->recv_data[recv] = wr->imm_data;
	to->recv_length[recv] = length;
	posted_immediates++;
}

static void add_write(struct side_state *from, struct batch *b, struct side_state *to,
		      struct batch *to_b)
{
	unsigned int slot = take_slot(from), to_slot = take_slot(to);
	uint32_t length = random_length();
	struct ibv_send_wr *wr = next_wr(from, b, random_flags(), IBV_WR_RDMA_WRITE, true, slot);
	struct ibv_sge target = {
		.addr = (uintptr_t)slot_bytes_at(to, to_slot) + rng_below(&rng, slot_bytes - length + 1),
		.length = length,
	};

	wr->num_sge = make_list(from, slot, length, from->end->attr.max_sge, wr->sg_list);
	wr->wr.rdma.remote_addr = target.addr;
	wr->wr.rdma.rkey = to->mr[rng_below(&rng, 2)]->rkey;
	expect_copy(to, &target, from, wr->sg_list, length);
	if (immediates && rng_below(&rng, 2))
		add_immediate(wr, to, to_b, length);
	if (length <= INLINE && rng_below(&rng, 2))
		make_inline(from, b, wr);
}

/* Adds a READ, and half of the time a fenced SEND of the data read. */
static void add_read(struct side_state *from, struct batch *b, struct side_state *to,
		     struct batch *to_b)
{
	unsigned int slot = take_slot(from), to_slot = take_slot(to);
	bool then_send = rng_below(&rng, 2);
	uint32_t length = random_length();
	struct ibv_send_wr *wr = next_wr(from, b, random_flags(), IBV_WR_RDMA_READ, !then_send, slot);
	struct ibv_sge source = {
		.addr = (uintptr_t)slot_bytes_at(to, to_slot) + rng_below(&rng, slot_bytes - length + 1),
		.length = length,
	}, *recv;

	wr->num_sge = make_list(from, slot, length, 1, wr->sg_list);
	wr->wr.rdma.remote_addr = source.addr;
	wr->wr.rdma.rkey = to->mr[rng_below(&rng, 2)]->rkey;
	expect_copy(from, wr->sg_list, to, &source, length);
	if (!then_send)
		return;
	wr = next_wr(from, b, random_flags() | IBV_SEND_FENCE, IBV_WR_SEND, true, slot);
	*wr->sg_list = *wr[-1].sg_list;
	wr->num_sge = 1;
	recv = add_recv(to, to_b, length);
	expect_copy(to, recv, from, wr->sg_list, length);
}

/* Adds the SEND that ends a batch: a number of 8 bytes, at the end of the region. */
static void add_marker(struct side_state *from, struct batch *b, struct side_state *to,
		       struct batch *to_b)
{
	struct ibv_send_wr *wr = next_wr(from, b, IBV_SEND_SIGNALED | IBV_SEND_SOLICITED, IBV_WR_SEND,
					 false, 0);
	size_t at = SLOTS * slot_bytes;

	*wr->sg_list = region_sge(&from->region, at, 8);
	wr->sg_list->lkey = from->mr[0]->lkey;
	wr->num_sge = 1;
	to_b->recv_wr[to->recvs] = (struct ibv_recv_wr){
		.wr_id = wr_id(to, to->recvs), .sg_list = to_b->recv_sge[to->recvs], .num_sge = 1,
	};
	*to_b->recv_sge[to->recvs] = region_sge(&to->region, at + 8, 8);
	to_b->recv_sge[to->recvs]->lkey = to->mr[0]->lkey;
	to->recv_immediate[to->recvs] = false;
	to->recv_length[to->recvs++] = 8;
	expect_copy(to, to_b->recv_sge[to->recvs - 1], from, wr->sg_list, 8);
}

static void plan_side(struct flow *flow, int which, struct batch *b)
{
	struct side_state *from = &flow->side[which], *to = &flow->side[!which];
	int i, n = rng_below(&rng, OPS + 1);

	for (i = 0; i < n; i++) {
		switch (rng_below(&rng, 3)) {
		case 0:
			add_send(from, &b[which], to, &b[!which]);
			break;
		case 1:
			add_write(from, &b[which], to, &b[!which]);
			break;
		default:
			add_read(from, &b[which], to, &b[!which]);
		}
	}
	add_marker(from, &b[which], to, &b[!which]);
}

static void plan_flow(struct flow *flow, struct batch *b)
{
	int which, i;

	for (which = 0; which < 2; which++) {
		struct side_state *s = &flow->side[which];

		s->sends = s->recvs = s->completed = s->received = 0;
		for (i = 0; i < SLOTS; i++)
			s->free_slots[i] = i;
		s->free_count = SLOTS;
	}
	plan_side(flow, 0, b);
	plan_side(flow, 1, b);
}

static bool post_recvs(struct side_state *s, struct batch *b)
{
	struct ibv_recv_wr *bad;
	int i;

	for (i = 0; i + 1 < s->recvs; i++)
		b->recv_wr[i].next = &b->recv_wr[i + 1];
	if (s->end->srq)
		return !ibv_post_srq_recv(s->end->srq, b->recv_wr, &bad);
	return !ibv_post_recv(s->end->qp, b->recv_wr, &bad);
}

/* Posts the sends in chains of random length. Overwrites inline bytes at once. */
static bool post_sends(struct side_state *s, struct batch *b)
{
	struct ibv_send_wr *bad;
	int first, last;

	for (first = 0; first < s->sends; first = last + 1) {
		last = first + rng_below(&rng, s->sends - first);
		for (int i = first; i < last; i++)
			b->wr[i].next = &b->wr[i + 1];
		if (ibv_post_send(s->end->qp, &b->wr[first], &bad))
			return false;
	}
	memset(b->inline_data, 0xa5, sizeof(b->inline_data));
	return true;
}

/* Overwrites the sources of a completed work request and of those before it. */
static void overwrite_sources(struct side_state *s, int upto)
{
	for (int i = 0; i <= upto; i++) {
		uint8_t *slot = slot_bytes_at(s, s->sent[i].slot);

		if (s->sent[i].done || !s->sent[i].overwrite)
			continue;
		rng_fill(&rng, slot, slot_bytes);
		memcpy(region_wanted(&s->region, slot), slot, slot_bytes);
		s->sent[i].done = true;
	}
}

static bool take_send_completion(struct side_state *s, const struct ibv_wc *wc)
{
	int index = wc->wr_id & 0xffffffff, expected = s->completed;

	if (!tap_check(wc->status == IBV_WC_SUCCESS, "send %d: %s", index,
		       ibv_wc_status_str(wc->status)))
		return false;
	while (expected < s->sends && !s->sent[expected].signaled)
		expected++;
	if (!tap_check(wc->wr_id == wr_id(s, index) && index < s->sends && s->sent[index].signaled &&
		       expected < s->sends, "unexpected completion %#" PRIx64, wc->wr_id))
		return false;
	s->completed = expected + 1;
	if (index != expected)
		in_order = false;
	else
		overwrite_sources(s, index);
	return true;
}

static bool take_recv_completion(struct side_state *s, const struct ibv_wc *wc)
{
	int index = s->received++;
	bool immediate = s->recv_immediate[index];

	return tap_check(wc->status == IBV_WC_SUCCESS, "receive %d: %s", index,
			 ibv_wc_status_str(wc->status)) &&
	       tap_check(wc->wr_id == wr_id(s, index), "receive %#" PRIx64 " is not %d",
			 wc->wr_id, index) &&
	       tap_check(wc->byte_len == s->recv_length[index], "receive %d has %u bytes, wanted %u",
			 index, wc->byte_len, s->recv_length[index]) &&
	       tap_check(wc->opcode == (immediate ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV),
			 "receive %d has opcode %d", index, wc->opcode) &&
	       tap_check(wc->wc_flags == (immediate ? IBV_WC_WITH_IMM : 0), "receive %d has flags %#x",
			 index, wc->wc_flags) &&
	       tap_check(!immediate || wc->imm_data == s->recv_data[index],
			 "receive %d has the data %#x, wanted %#x", index, wc->imm_data,
			 s->recv_data[index]) &&
	       tap_check(wc->qp_num == s->end->qp->qp_num, "receive of QP %u on QP %u", wc->qp_num,
			 s->end->qp->qp_num);
}

/* Polls both CQs of an end once. Returns false on error. */
static bool poll_side(struct side_state *s)
{
	struct ibv_wc wc;

	if (ibv_poll_cq(s->end->scq, 1, &wc) > 0 && !take_send_completion(s, &wc))
		return false;
	if (ibv_poll_cq(s->end->rcq, 1, &wc) > 0 && !take_recv_completion(s, &wc))
		return false;
	return true;
}

static bool side_finished(const struct side_state *s)
{
	return s->received == s->recvs && s->completed == s->sends;
}

static const char *opcode_name(enum ibv_wr_opcode opcode)
{
	switch (opcode) {
	case IBV_WR_SEND:
		return "SEND";
	case IBV_WR_RDMA_WRITE:
		return "WRITE";
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return "WRITE with immediate data";
	default:
		return "READ";
	}
}

/* Describes the requests of an end in this batch. */
static void describe_side(const struct side_state *s, const struct batch *b)
{
	int i, j;

	for (i = 0; i < s->sends; i++) {
		const struct ibv_send_wr *wr = &b->wr[i];

		tap_note("%s posted %s flags %#x, to/from %#" PRIx64, s->end->name,
			 opcode_name(wr->opcode), wr->send_flags, wr->wr.rdma.remote_addr);
		for (j = 0; j < wr->num_sge; j++)
			tap_note("    %#" PRIx64 " + %u", wr->sg_list[j].addr, wr->sg_list[j].length);
	}
	for (i = 0; i < s->recvs; i++) {
		tap_note("%s receive %d, for %u bytes", s->end->name, i, s->recv_length[i]);
		for (j = 0; j < b->recv_wr[i].num_sge; j++)
			tap_note("    %#" PRIx64 " + %u", b->recv_wr[i].sg_list[j].addr,
				 b->recv_wr[i].sg_list[j].length);
	}
	tap_note("%s region is %#" PRIx64 "; %d of %d sends completed, %d of %d receives", s->end->name,
		 (uint64_t)(uintptr_t)s->region.bytes, s->completed, s->sends, s->received, s->recvs);
}

/* Runs a batch on all QPs. Returns the first QP with an error, or -1. */
static int run_batch(struct flow *flows, int count, struct batch (*batches)[2])
{
	int64_t end = now_ms() + PATIENCE;
	int i, which;
	bool finished;

	for (i = 0; i < count; i++)
		plan_flow(&flows[i], batches[i]);
	for (i = 0; i < count; i++)
		for (which = 0; which < 2; which++)
			if (!tap_check(post_recvs(&flows[i].side[which], &batches[i][which]), "post receives"))
				return i;
	for (i = 0; i < count; i++)
		for (which = 0; which < 2; which++)
			if (!tap_check(post_sends(&flows[i].side[which], &batches[i][which]), "post sends"))
				return i;
	do {
		finished = true;
		for (i = 0; i < count; i++) {
			for (which = 0; which < 2; which++) {
				struct side_state *s = &flows[i].side[which];

				if (!poll_side(s))
					return i;
				finished &= side_finished(s);
				if (now_ms() > end && !side_finished(s)) {
					tap_check(false, "completions are missing");
					return i;
				}
			}
		}
	} while (!finished);
	for (i = 0; i < count; i++)
		if (!region_intact(&flows[i].side[0].region, "active end") ||
		    !region_intact(&flows[i].side[1].region, "passive end"))
			return i;
	return -1;
}

static void flow_open(struct flow *flow, const struct pair_opts *opts)
{
	pair_open(&flow->pair, opts);
	flow->side[0].end = &flow->pair.active;
	flow->side[1].end = &flow->pair.passive;
	for (int which = 0; which < 2; which++) {
		struct side_state *s = &flow->side[which];

		region_make(&s->region, &rng, SLOTS * slot_bytes + 16, rng_below(&rng, 4096));
		for (int i = 0; i < 2; i++) {
			s->mr[i] = ibv_reg_mr(s->end->pd, s->region.bytes, s->region.length, ALL);
			if (!s->mr[i])
				tap_bail("ibv_reg_mr");
		}
	}
}

static bool flow_close(struct flow *flow)
{
	bool all = true;

	for (int which = 0; which < 2; which++) {
		all &= !ibv_dereg_mr(flow->side[which].mr[0]);
		all &= !ibv_dereg_mr(flow->side[which].mr[1]);
		region_free(&flow->side[which].region);
	}
	return pair_close(&flow->pair) && all;
}

int main(int argc, char **argv)
{
	struct pair_opts opts = { .inline_data = INLINE };
	int count = 2, batches = 100, option, i, done;
	struct batch (*batch)[2];
	uint64_t seed = 1;
	struct flow *flows;
	int failed = -1;
	bool closed = true;

	while ((option = getopt(argc, argv, "q:n:s:r:Si")) != -1) {
		switch (option) {
		case 'q':
			count = atoi(optarg);
			break;
		case 'n':
			batches = atoi(optarg);
			break;
		case 's':
			slot_bytes = strtoul(optarg, NULL, 0);
			break;
		case 'r':
			seed = strtoull(optarg, NULL, 0);
			break;
		case 'S':
			opts.srq = 64;
			break;
		case 'i':
			immediates = true;
			break;
		default:
			return 2;
		}
	}
	if (argc - optind != 2)
		return 2;
	opts.active = side_parse(argv[optind]);
	opts.passive = side_parse(argv[optind + 1]);
	rng.state = seed;

	flows = calloc(count, sizeof(*flows));
	batch = calloc(count, sizeof(*batch));
	if (!flows || !batch)
		tap_bail("memory");
	for (i = 0; i < count; i++)
		flow_open(&flows[i], &opts);
	for (done = 0; done < batches && failed < 0; done++)
		failed = run_batch(flows, count, batch);
	if (failed >= 0) {
		describe_side(&flows[failed].side[0], &batch[failed][0]);
		describe_side(&flows[failed].side[1], &batch[failed][1]);
	}
	tap_note("seed %" PRIu64 ", batch %d, %" PRIu64 " operations, %" PRIu64 " bytes", seed, done,
		 posted_ops, posted_bytes);
	tap_point("%d batches on %d QPs: every byte is what and where it should be", batches, count);
	if (immediates && failed < 0)
		/* About two in three batches. By chance a run has fewer, and a short one maybe none. */
		tap_ok(count * batches < 40 || posted_immediates > (uint64_t)count * batches / 16,
		       "%" PRIu64 " WRITEs with immediate data", posted_immediates);
	if (failed < 0)
		tap_ok(in_order, "send completions come in the order of posting");
	for (i = 0; i < count; i++)
		closed &= flow_close(&flows[i]);
	tap_ok(closed, "everything can be destroyed");
	return tap_done();
}
