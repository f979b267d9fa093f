// SPDX-License-Identifier: GPL-2.0
/*
 * Does one thing after the other on a fresh connection, the same in each run, so that a trace of it
 * can be compared.
 *
 *     trace_script [-w] ACTIVE PASSIVE
 *
 * It writes the numbers that a trace names, and waits for a line on stdin. Then the active end
 * SENDs, WRITEs, READs, and READs a region that it may not read, which ends the connection. It waits
 * for another line before it cleans up.
 *
 * With -w, the passive end binds a memory window, to which the active end WRITEs, invalidates it, and binds
 * it again. The active end invalidates it by a SEND, for which the passive end posts a receive only after
 * another line on stdin. A bind beyond the region ends the connection.
 */
#include <stdio.h>
#include <string.h>

#include "common/access.h"
#include "common/completion.h"
#include "common/post.h"
#include "common/random.h"
#include "common/setup.h"
#include "common/tap.h"

#define PATIENCE_MS 20000
#define INBOX 4096

static struct setup s;

static void wait_for_line(void)
{
	if (getchar() != '\n')
		tap_bail("stdin is closed");
}

static void await(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	if (!cq_next(cq, &wc, PATIENCE_MS) || wc.wr_id != wr_id || wc.status != status)
		tap_bail("WR %#jx: %s", (uintmax_t)wr_id, ibv_wc_status_str(wc.status));
}

static void script(const struct ibv_mr *secret)
{
	struct end *active = &s.pair.active, *passive = &s.pair.passive;
	struct ibv_sge inbox = region_sge(&s.remote, INBOX, 64);
	struct ibv_sge sge = region_sge(&s.local, 0, 60);
	uint64_t remote = (uintptr_t)s.remote.bytes;

	for (int i = 0; i < 2; i++)
		if (post_recv(passive->qp, 0x100 + i, &inbox, 1))
			tap_bail("ibv_post_recv");
	/* Successful sends are not solicited; the failed READ is. */
	if (ibv_req_notify_cq(active->scq, 1) || ibv_req_notify_cq(passive->rcq, 1))
		tap_bail("ibv_req_notify_cq");

	post_send(active->qp, 1, IBV_WR_SEND, &sge, 1,
		  IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE, 0);
	await(active->scq, 1, IBV_WC_SUCCESS);
	if (!cq_event_within(passive->rchannel, PATIENCE_MS))
		tap_bail("no completion event");
	await(passive->rcq, 0x100, IBV_WC_SUCCESS);

	/* Two FPDUs at the usual MTU. */
	sge.length = 2000;
	post_rdma(active->qp, 2, IBV_WR_RDMA_WRITE, &sge, 1, IBV_SEND_SIGNALED, remote + 8,
		  s.remote.mr->rkey);
	await(active->scq, 2, IBV_WC_SUCCESS);

	sge.length = 300;
	post_rdma(active->qp, 3, IBV_WR_RDMA_READ, &sge, 1, IBV_SEND_SIGNALED | IBV_SEND_FENCE,
		  remote + 8, s.remote.mr->rkey);
	await(active->scq, 3, IBV_WC_SUCCESS);

	post_rdma(active->qp, 4, IBV_WR_RDMA_READ, &sge, 1, IBV_SEND_SIGNALED, remote, secret->rkey);
	await(active->scq, 4, IBV_WC_REM_ACCESS_ERR);
	await(passive->rcq, 0x101, IBV_WC_WR_FLUSH_ERR);
}

static void bind_window(struct ibv_mw *mw, uint64_t wr_id, uint32_t rkey, uint64_t offset,
			enum ibv_wc_status status)
{
	struct end *passive = &s.pair.passive;
	struct ibv_send_wr *bad, wr = {
		.wr_id = wr_id, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED,
		.bind_mw = { .mw = mw, .rkey = rkey, .bind_info = {
			.mr = s.remote.mr, .addr = (uintptr_t)s.remote.bytes + offset, .length = 1024,
			.mw_access_flags = IBV_ACCESS_REMOTE_WRITE,
		} },
	};

	if (ibv_post_send(passive->qp, &wr, &bad))
		tap_bail("bind");
	await(passive->scq, wr_id, status);
}

static void windows(struct ibv_mw *mw, const uint32_t *keys)
{
	struct end *active = &s.pair.active, *passive = &s.pair.passive;
	struct ibv_send_wr *bad, invalidate = {
		.wr_id = 2, .opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED,
		.invalidate_rkey = keys[0],
	};
	struct ibv_sge inbox = region_sge(&s.remote, INBOX, 64);
	struct ibv_sge sge = region_sge(&s.local, 0, 60);

	bind_window(mw, 1, keys[0], 1024, IBV_WC_SUCCESS);
	post_rdma(active->qp, 1, IBV_WR_RDMA_WRITE, &sge, 1, IBV_SEND_SIGNALED,
		  (uintptr_t)s.remote.bytes + 1024, keys[0]);
	await(active->scq, 1, IBV_WC_SUCCESS);
	puts("written");
	wait_for_line();
	if (ibv_post_send(passive->qp, &invalidate, &bad))
		tap_bail("invalidate");
	await(passive->scq, 2, IBV_WC_SUCCESS);
	bind_window(mw, 3, keys[1], 1024, IBV_WC_SUCCESS);
	post_send(active->qp, 2, IBV_WR_SEND_WITH_INV, &sge, 1, IBV_SEND_SIGNALED, keys[1]);
	await(active->scq, 2, IBV_WC_SUCCESS);
	puts("sent");
	wait_for_line();
	if (post_recv(passive->qp, 0x100, &inbox, 1))
		tap_bail("ibv_post_recv");
	await(passive->rcq, 0x100, IBV_WC_SUCCESS);
	bind_window(mw, 4, keys[2], 8000, IBV_WC_MW_BIND_ERR);
}

int main(int argc, char **argv)
{
	struct regions regions = { .length = 8192, .local = ALL, .remote = ALL };
	struct pair_opts opts = { .sq = 4, .rq = 4, .inline_data = 60, .notify = true };
	struct rng rng = { 1 };
	struct ibv_mr *secret;
	struct ibv_mw *mw = NULL;
	uint32_t keys[3] = {};

	if (argc == 4 && !strcmp(argv[1], "-w")) {
		regions.remote = REVOCABLE;
		argc--;
		argv++;
	}
	if (argc != 3)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	opts.active = side_parse(argv[1]);
	opts.passive = side_parse(argv[2]);
	setup_open(&s, &opts, &rng, &regions);
	secret = ibv_reg_mr(s.pair.passive.pd, s.remote.bytes, 4096, IBV_ACCESS_LOCAL_WRITE);
	if (!secret)
		tap_bail("ibv_reg_mr");

	if (regions.remote == REVOCABLE) {
		mw = ibv_alloc_mw(s.pair.passive.pd, IBV_MW_TYPE_2);
		if (!mw)
			tap_bail("ibv_alloc_mw");
		keys[0] = ibv_inc_rkey(mw->rkey);
		keys[1] = ibv_inc_rkey(keys[0]);
		keys[2] = ibv_inc_rkey(keys[1]);
		printf("FIRST %#x\nSECOND %#x\n", keys[0], keys[1]);
	}
	printf("active %u\npassive %u\n", s.pair.active.qp->qp_num, s.pair.passive.qp->qp_num);
	printf("LOCAL %#x\nREMOTE %#x\nSECRET %#x\n", s.local.mr->rkey, s.remote.mr->rkey, secret->rkey);
	printf("local %p\nremote %p\n", (void *)s.local.bytes, (void *)s.remote.bytes);
	puts("ready");
	wait_for_line();
	if (mw)
		windows(mw, keys);
	else
		script(secret);
	puts("done");
	wait_for_line();
	if (mw)
		ibv_dealloc_mw(mw);
	ibv_dereg_mr(secret);
	setup_close(&s);
	return 0;
}
