// SPDX-License-Identifier: GPL-2.0
/*
 * Messages longer than 2 GiB, without that much memory: the middle of the region maps the same few
 * MiB repeatedly; its first and last page are separate.
 *
 *     verbs_long BYTES ACTIVE PASSIVE
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/access.h"
#include "common/clock.h"
#include "common/completion.h"
#include "common/pair.h"
#include "common/post.h"
#include "common/random.h"
#include "common/tap.h"

#define PAGE 4096UL
#define PIECE (4UL << 20)
#define MINUTES 4

struct large {
	uint8_t *map;		/* of whole pages */
	size_t length;		/* of the message */
	uint8_t *piece;		/* one view of the memory in the middle */
	struct ibv_mr *mr;
};

static struct rng rng = { 77 };

static void large_make(struct large *large, struct ibv_pd *pd, size_t length)
{
	size_t whole = (length + PAGE - 1) & ~(PAGE - 1), at;
	int fd = memfd_create("piece", 0);

	large->length = length;
	large->map = mmap(NULL, whole, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (fd < 0 || ftruncate(fd, PIECE) || large->map == MAP_FAILED)
		tap_bail("memory");
	for (at = PAGE; at < whole - PAGE; at += PIECE) {
		size_t n = whole - PAGE - at < PIECE ? whole - PAGE - at : PIECE;

		if (mmap(large->map + at, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
		    MAP_FAILED)
			tap_bail("mmap");
	}
	large->piece = large->map + PAGE;
	close(fd);
	large->mr = ibv_reg_mr(pd, large->map, length, ALL);
	if (!large->mr)
		tap_bail("ibv_reg_mr of %zu bytes", length);
}

static void large_fill(struct large *large)
{
	uint8_t *last = large->map + ((large->length - 1) & ~(PAGE - 1));

	rng_fill(&rng, large->map, PAGE);
	rng_fill(&rng, large->piece, PIECE);
	rng_fill(&rng, last, PAGE);
}

/* Checks that `to` equals `from`, and that the bytes behind the message are unchanged. */
static void check_same(struct large *to, struct large *from, const uint8_t *behind)
{
	size_t last = (from->length - 1) & ~(PAGE - 1), n = from->length - last;

	tap_check(!memcmp(to->map, from->map, PAGE), "the first page differs");
	tap_check(!memcmp(to->piece, from->piece, PIECE), "the middle differs");
	tap_check(!memcmp(to->map + last, from->map + last, n), "the last bytes differ");
	tap_check(!memcmp(to->map + last + n, behind, PAGE - n), "bytes behind the message changed");
}

static void transfer(struct pair *pair, enum ibv_wr_opcode opcode, size_t length, const char *name)
{
	struct large here, there, *from, *to;
	uint8_t behind[PAGE];
	struct ibv_sge sge;
	struct ibv_wc wc;
	int64_t begin;
	size_t last = (length - 1) & ~(PAGE - 1);

	large_make(&here, pair->active.pd, length);
	large_make(&there, pair->passive.pd, length);
	large_fill(&here);
	large_fill(&there);
	to = opcode == IBV_WR_RDMA_READ ? &here : &there;
	from = opcode == IBV_WR_RDMA_READ ? &there : &here;
	memcpy(behind, to->map + last + (length - last), PAGE - (length - last));
	sge = (struct ibv_sge){ (uintptr_t)there.map, length, there.mr->lkey };
	tap_check(!post_recv(pair->passive.qp, 9, &sge, 1), "post a receive");
	sge = (struct ibv_sge){ (uintptr_t)here.map, length, here.mr->lkey };
	begin = now_ms();
	tap_check(!post_rdma(pair->active.qp, 1, opcode, &sge, 1, IBV_SEND_SIGNALED,
			     (uintptr_t)there.map, there.mr->rkey), "post");
	if (opcode != IBV_WR_SEND) {
		sge.length = 0;
		tap_check(!post_send(pair->active.qp, 2, IBV_WR_SEND, &sge, 1, IBV_SEND_FENCE, 0), "post");
	}
	if (tap_check(cq_next(pair->active.scq, &wc, MINUTES * 60000), "no completion"))
		tap_check(wc.status == IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
	if (!tap_failing() && opcode == IBV_WR_RDMA_READ)
		tap_check(wc.byte_len == length, "%u bytes, wanted %zu", wc.byte_len, length);
	if (!tap_failing() && tap_check(cq_next(pair->passive.rcq, &wc, MINUTES * 60000), "no receive"))
		tap_check(wc.status == IBV_WC_SUCCESS &&
			  wc.byte_len == (opcode == IBV_WR_SEND ? length : 0), "receive: %s, %u bytes",
			  ibv_wc_status_str(wc.status), wc.byte_len);
	if (!tap_failing())
		check_same(to, from, behind);
	tap_note("%s: %lld ms", name, (long long)(now_ms() - begin));
	ibv_dereg_mr(here.mr);
	ibv_dereg_mr(there.mr);
	munmap(here.map, last + PAGE);
	munmap(there.map, last + PAGE);
	tap_point("%s of %zu bytes", name, length);
}

int main(int argc, char **argv)
{
	struct pair_opts opts = {};
	struct pair pair;
	size_t length;

	if (argc != 4)
		return 2;
	length = strtoull(argv[1], NULL, 0);
	opts.active = side_parse(argv[2]);
	opts.passive = side_parse(argv[3]);
	pair_open(&pair, &opts);
	transfer(&pair, IBV_WR_RDMA_WRITE, length, "WRITE");
	transfer(&pair, IBV_WR_RDMA_READ, length, "READ");
	transfer(&pair, IBV_WR_SEND, length, "SEND");
	tap_ok(pair_close(&pair), "everything can be destroyed");
	return tap_done();
}
