// SPDX-License-Identifier: GPL-2.0
/*
 * Memory regions and small payloads with unusual properties.
 *
 *     verbs_data ACTIVE PASSIVE
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/access.h"
#include "common/clock.h"
#include "common/completion.h"
#include "common/pair.h"
#include "common/post.h"
#include "common/random.h"
#include "common/region.h"
#include "common/tap.h"

#define PAGE 4096

static struct pair_opts opts = { .inline_data = 64 };
static struct rng rng = { 4711 };
static struct pair pair;

/* After a failure the connection may be gone: use a new one. */
static void renew_if_failing(void)
{
	if (!tap_failing())
		return;
	pair_close(&pair);
	pair_open(&pair, &opts);
}

/* A SEND whose receipt shows that all WRITEs before it have been placed. */
static bool barrier(struct region *local, struct region *remote)
{
	struct ibv_sge sge = region_sge(local, 0, 0), receive = region_sge(remote, 0, 0);

	return tap_check(!post_recv(pair.passive.qp, 100, &receive, 1), "post a receive") &&
	       tap_check(!post_send(pair.active.qp, 101, IBV_WR_SEND, &sge, 1, IBV_SEND_SIGNALED, 0),
			 "post a SEND") &&
	       cq_expect(pair.active.scq, 101, IBV_WC_SUCCESS, NULL) &&
	       cq_expect(pair.passive.rcq, 100, IBV_WC_SUCCESS, NULL);
}

static void expect_same(struct region *to, size_t to_at, struct region *from, size_t from_at,
			size_t length)
{
	memcpy(region_wanted(to, to->bytes + to_at), region_wanted(from, from->bytes + from_at), length);
}

/* Small payloads whose source or target crosses a page boundary. */
static void across_pages(enum ibv_wr_opcode opcode)
{
	struct region local, remote;
	uint32_t length, before;
	struct ibv_sge sge;
	bool fine = true;

	region_make(&local, &rng, 3 * PAGE, 0);
	region_make(&remote, &rng, 3 * PAGE, 0);
	region_register(&local, pair.active.pd, ALL);
	region_register(&remote, pair.passive.pd, ALL);
	for (length = 2; length <= 66 && fine; length++) {
		for (before = 1; before < length && fine; before += length / 4 + 1) {
			size_t local_at = PAGE - before, remote_at = 2 * PAGE - (length - before);

			sge = region_sge(&local, local_at, length);
			fine = !post_rdma(pair.active.qp, 1, opcode, &sge, 1, IBV_SEND_SIGNALED,
					  (uintptr_t)remote.bytes + remote_at, remote.mr->rkey) &&
			       cq_expect(pair.active.scq, 1, IBV_WC_SUCCESS, NULL) &&
			       barrier(&local, &remote);
			if (opcode == IBV_WR_RDMA_WRITE)
				expect_same(&remote, remote_at, &local, local_at, length);
			else
				expect_same(&local, local_at, &remote, remote_at, length);
			fine = fine && region_intact(&remote, "the remote region") &&
			       region_intact(&local, "the local region");
			if (!fine)
				tap_note("length %u, %u of them before the border", length, before);
			rng_fill(&rng, local.bytes + local_at, length);
			memcpy(region_wanted(&local, local.bytes + local_at), local.bytes + local_at, length);
		}
	}
	region_free(&local);
	region_free(&remote);
	renew_if_failing();
	tap_point("%s of up to 66 bytes across a page border", opcode == IBV_WR_RDMA_WRITE ? "WRITE" : "READ");
}

/* Sources in pieces of a few bytes, each across a page boundary. */
static void pieces_across_pages(void)
{
	struct region local, remote;
	struct ibv_sge sge[6], receive;
	uint32_t total;
	bool fine = true;
	int i, round, n = pair.active.attr.max_sge < 6 ? pair.active.attr.max_sge : 6;

	region_make(&local, &rng, 7 * PAGE, 0);
	region_make(&remote, &rng, PAGE, 0);
	region_register(&local, pair.active.pd, ALL);
	region_register(&remote, pair.passive.pd, ALL);
	for (round = 0; round < 20 && fine; round++) {
		for (total = 0, i = 0; i < n; i++) {
			uint32_t length = 2 + rng_below(&rng, 12), before = 1 + rng_below(&rng, length - 1);

			sge[i] = region_sge(&local, (i + 1) * PAGE - before, length);
			expect_same(&remote, total, &local, (i + 1) * PAGE - before, length);
			total += length;
		}
		receive = region_sge(&remote, 0, total);
		fine = !post_recv(pair.passive.qp, 2, &receive, 1) &&
		       !post_send(pair.active.qp, 1, IBV_WR_SEND, sge, n, IBV_SEND_SIGNALED, 0) &&
		       cq_expect(pair.active.scq, 1, IBV_WC_SUCCESS, NULL) &&
		       cq_expect(pair.passive.rcq, 2, IBV_WC_SUCCESS, NULL) &&
		       region_intact(&remote, "the remote region");
	}
	region_free(&local);
	region_free(&remote);
	renew_if_failing();
	tap_point("SEND of small pieces, each across a page border");
}

/* Inline data and SEND with Invalidate together; the queue must keep running. */
static void inline_with_invalidate(void)
{
	struct region remote;
	struct ibv_sge sge, receive;
	struct ibv_mr *window;
	uint8_t bytes[40];
	int i;

	region_make(&remote, &rng, PAGE, 8);
	region_register(&remote, pair.passive.pd, ALL);
	for (i = 0; i < 3; i++) {
		window = ibv_reg_mr(pair.passive.pd, remote.bytes, PAGE, REVOCABLE);
		if (!window)
			tap_bail("ibv_reg_mr");
		rng_fill(&rng, bytes, sizeof(bytes));
		memcpy(region_wanted(&remote, remote.bytes + 100), bytes, sizeof(bytes));
		receive = region_sge(&remote, 100, sizeof(bytes));
		tap_check(!post_recv(pair.passive.qp, 2, &receive, 1), "post a receive");
		sge = (struct ibv_sge){ (uintptr_t)bytes, sizeof(bytes), 0 };
		tap_check(!post_send(pair.active.qp, 1, IBV_WR_SEND_WITH_INV, &sge, 1,
				     IBV_SEND_SIGNALED | IBV_SEND_INLINE, window->rkey), "post a SEND");
		cq_expect(pair.active.scq, 1, IBV_WC_SUCCESS, NULL);
		cq_expect(pair.passive.rcq, 2, IBV_WC_SUCCESS, NULL);
		region_intact(&remote, "the remote region");
		tap_check(!ibv_dereg_mr(window), "deregister what was invalidated");
	}
	region_free(&remote);
	renew_if_failing();
	tap_point("SEND with Invalidate takes inline data, and the queue goes on");
}

/* READ of 0 bytes between operations with payload, all posted at once. */
static void zero_read_in_traffic(void)
{
	struct region local, remote;
	struct ibv_send_wr wr[6] = {}, *bad;
	struct ibv_sge sge[6], receive;
	static const uint32_t lengths[6] = { 5000, 0, 100, 3000, 0, 64 };
	static const enum ibv_wr_opcode opcodes[6] = {
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_READ, IBV_WR_RDMA_READ, IBV_WR_SEND,
	};
	struct ibv_wc wc;
	size_t at;
	int i, round;

	region_make(&local, &rng, 16384, 16);
	region_make(&remote, &rng, 16384, 24);
	region_register(&local, pair.active.pd, ALL);
	region_register(&remote, pair.passive.pd, ALL);
	for (round = 0; round < 20 && !tap_failing(); round++) {
		receive = region_sge(&remote, 16000, 64);
		tap_check(!post_recv(pair.passive.qp, 9, &receive, 1), "post a receive");
		for (at = 0, i = 0; i < 6; at += lengths[i++]) {
			sge[i] = region_sge(&local, at, lengths[i]);
			wr[i] = (struct ibv_send_wr){
				.wr_id = i, .sg_list = &sge[i], .num_sge = 1, .opcode = opcodes[i],
				.send_flags = IBV_SEND_SIGNALED, .next = i < 5 ? &wr[i + 1] : NULL,
				.wr.rdma = { (uintptr_t)remote.bytes + at, remote.mr->rkey },
			};
			if (opcodes[i] == IBV_WR_RDMA_WRITE)
				expect_same(&remote, at, &local, at, lengths[i]);
			else if (opcodes[i] == IBV_WR_RDMA_READ)
				expect_same(&local, at, &remote, at, lengths[i]);
			else
				expect_same(&remote, 16000, &local, at, lengths[i]);
		}
		tap_check(!ibv_post_send(pair.active.qp, wr, &bad), "post");
		for (i = 0; i < 6; i++) {
			if (!cq_next(pair.active.scq, &wc, PATIENCE)) {
				tap_check(false, "completion %d is missing", i);
				break;
			}
			tap_check(wc.status == IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
			if (wc.opcode == IBV_WC_RDMA_READ && wc.wr_id < 6)
				tap_check(wc.byte_len == lengths[wc.wr_id], "READ %d of %u bytes says %u",
					  (int)wc.wr_id, lengths[wc.wr_id], wc.byte_len);
		}
		cq_expect(pair.passive.rcq, 9, IBV_WC_SUCCESS, NULL);
		region_intact(&remote, "the remote region");
		region_intact(&local, "the local region");
		rng_fill(&rng, local.bytes, local.length);
		memcpy(region_wanted(&local, local.bytes), local.bytes, local.length);
	}
	region_free(&local);
	region_free(&remote);
	renew_if_failing();
	tap_point("READ of no bytes among WRITE, READ and SEND that carry some");
}

/* A region registered at an address other than its own. */
static void other_iova(uint64_t iova)
{
	struct region local, remote;
	struct ibv_sge sge, receive;
	struct ibv_mr *mr, *local_mr;

	region_make(&local, &rng, 3 * PAGE, 72);
	region_make(&remote, &rng, 3 * PAGE, 72);
	local_mr = ibv_reg_mr_iova(pair.active.pd, local.bytes, local.length, iova + 72, ALL);
	mr = ibv_reg_mr_iova(pair.passive.pd, remote.bytes, remote.length, iova + 72, ALL);
	if (!tap_check(mr && local_mr, "ibv_reg_mr_iova: %m"))
		goto out;
	sge = (struct ibv_sge){ iova + 72 + 4000, 300, local_mr->lkey };
	tap_check(!post_rdma(pair.active.qp, 1, IBV_WR_RDMA_WRITE, &sge, 1, IBV_SEND_SIGNALED,
			     iova + 72 + 5000, mr->rkey), "post WRITE");
	cq_expect(pair.active.scq, 1, IBV_WC_SUCCESS, NULL);
	expect_same(&remote, 5000, &local, 4000, 300);
	sge = (struct ibv_sge){ iova + 72, 200, local_mr->lkey };
	tap_check(!post_rdma(pair.active.qp, 2, IBV_WR_RDMA_READ, &sge, 1, IBV_SEND_SIGNALED,
			     iova + 72 + 8000, mr->rkey), "post READ");
	cq_expect(pair.active.scq, 2, IBV_WC_SUCCESS, NULL);
	expect_same(&local, 0, &remote, 8000, 200);
	receive = (struct ibv_sge){ iova + 72 + 100, 50, mr->lkey };
	tap_check(!post_recv(pair.passive.qp, 3, &receive, 1), "post a receive");
	sge = (struct ibv_sge){ iova + 72 + 9000, 50, local_mr->lkey };
	tap_check(!post_send(pair.active.qp, 4, IBV_WR_SEND, &sge, 1, IBV_SEND_SIGNALED, 0), "post SEND");
	cq_expect(pair.active.scq, 4, IBV_WC_SUCCESS, NULL);
	cq_expect(pair.passive.rcq, 3, IBV_WC_SUCCESS, NULL);
	expect_same(&remote, 100, &local, 9000, 50);
	region_intact(&remote, "the remote region");
	region_intact(&local, "the local region");
out:
	if (mr)
		ibv_dereg_mr(mr);
	if (local_mr)
		ibv_dereg_mr(local_mr);
	region_free(&local);
	region_free(&remote);
	renew_if_failing();
	tap_point("a region with the iova %#llx is known under that alone", (unsigned long long)iova);
}

/* WRITE and READ across the boundary of two huge pages. */
static void huge_pages(int flags, const char *name)
{
	size_t huge = 2 << 20, length = 2 * huge;
	uint8_t *at = mmap(NULL, length + huge, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0), *start;
	struct region local;
	struct ibv_sge sge;
	struct ibv_mr *mr;

	if (!tap_check(at != MAP_FAILED, "mmap: %m"))
		goto out;
	start = (uint8_t *)(((uintptr_t)at + huge - 1) & ~(huge - 1));
	tap_check(flags || !madvise(start, length, MADV_HUGEPAGE), "madvise: %m");
	memset(start, 0, length);
	region_make(&local, &rng, 3 * PAGE, 0);
	region_register(&local, pair.active.pd, ALL);
	mr = ibv_reg_mr(pair.passive.pd, start + 4000, length - 8000, ALL);
	if (tap_check(mr, "ibv_reg_mr: %m")) {
		sge = region_sge(&local, 0, 3 * PAGE);
		tap_check(!post_rdma(pair.active.qp, 1, IBV_WR_RDMA_WRITE, &sge, 1, IBV_SEND_SIGNALED,
				     (uintptr_t)start + huge - 5000, mr->rkey), "post WRITE");
		cq_expect(pair.active.scq, 1, IBV_WC_SUCCESS, NULL);
		sge = region_sge(&local, 0, 3 * PAGE);
		tap_check(!post_rdma(pair.active.qp, 2, IBV_WR_RDMA_READ, &sge, 1, IBV_SEND_SIGNALED,
				     (uintptr_t)start + huge - 5000, mr->rkey), "post READ");
		cq_expect(pair.active.scq, 2, IBV_WC_SUCCESS, NULL);
		tap_check(!memcmp(start + huge - 5000, region_wanted(&local, local.bytes), 3 * PAGE),
			  "the huge page does not hold what was written");
		tap_check(!start[huge - 5001] && !start[huge - 5000 + 3 * PAGE], "a byte beside changed");
		region_intact(&local, "the local region");
		ibv_dereg_mr(mr);
	}
	region_free(&local);
	munmap(at, length + huge);
out:
	renew_if_failing();
	tap_point("WRITE and READ across the border of two %s", name);
}

/* Registrations that must fail. */
static void refused_registrations(void)
{
	uint8_t *map = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *readonly = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;

	munmap(map + 2 * PAGE, PAGE);
	tap_check(!ibv_reg_mr(pair.active.pd, map, 4 * PAGE, ALL), "memory with a hole was registered");
	tap_check(!ibv_reg_mr(pair.active.pd, map + PAGE, 2 * PAGE, 0), "a hole was registered");
	tap_check(!ibv_reg_mr(pair.active.pd, readonly, PAGE, ALL), "read-only memory was registered for writing");
	mr = ibv_reg_mr(pair.active.pd, readonly, PAGE, IBV_ACCESS_REMOTE_READ);
	if (tap_check(mr, "read-only memory cannot be registered for reading: %m"))
		ibv_dereg_mr(mr);
	tap_check(!ibv_reg_mr(pair.active.pd, map, PAGE, IBV_ACCESS_REMOTE_WRITE),
		  "remote write without local write");
	tap_check(!ibv_reg_mr(pair.active.pd, (void *)(UINTPTR_MAX - PAGE), 2 * PAGE, 0),
		  "memory beyond the end of the address space");
	munmap(map, 4 * PAGE);
	munmap(readonly, PAGE);
	renew_if_failing();
	tap_point("regions that cannot be are refused: holes, read-only, wrong rights, no such address");
}

/* Each of many regions has its own key, and keys are not sequential. */
static void keys_unpredictable(void)
{
	enum { N = 64 };
	static uint8_t memory[PAGE];
	struct ibv_mr *mr[N];
	int i, j, same = 0, steps[256] = {}, most = 0;

	for (i = 0; i < N; i++) {
		mr[i] = ibv_reg_mr(pair.active.pd, memory, PAGE, ALL);
		if (!mr[i])
			tap_bail("ibv_reg_mr");
	}
	for (i = 0; i < N; i++)
		for (j = 0; j < i; j++)
			same += mr[i]->rkey == mr[j]->rkey;
	for (i = 1; i < N; i++)
		if (++steps[(mr[i]->rkey - mr[i - 1]->rkey) & 0xff] > most)
			most = steps[(mr[i]->rkey - mr[i - 1]->rkey) & 0xff];
	tap_check(!same, "%d pairs of regions share a key", same);
	tap_check(most < 16, "the key byte changes by the same step %d of %d times", most, N);
	for (i = 0; i < N; i++)
		ibv_dereg_mr(mr[i]);
	renew_if_failing();
	tap_point("keys of regions differ and do not follow one another");
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	opts.active = side_parse(argv[1]);
	opts.passive = side_parse(argv[2]);
	pair_open(&pair, &opts);
	across_pages(IBV_WR_RDMA_WRITE);
	across_pages(IBV_WR_RDMA_READ);
	pieces_across_pages();
	inline_with_invalidate();
	zero_read_in_traffic();
	/* User-Mode Linux has neither. */
	if (!access("/sys/kernel/mm/transparent_hugepage", F_OK))
		huge_pages(0, "transparent huge pages");
	if (!access("/proc/sys/vm/nr_hugepages", F_OK))
		huge_pages(MAP_HUGETLB, "huge pages");
	refused_registrations();
	keys_unpredictable();
	other_iova(0);
	other_iova(0x10000);
	other_iova(0x7fff123456789000);
	tap_ok(pair_close(&pair), "everything can be destroyed");
	return tap_done();
}
