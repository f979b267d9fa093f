// SPDX-License-Identifier: GPL-2.0
/*
 * A registration that fails in the end, as its last response cannot be written, when a memory window is bound
 * to the region already: riw's own user ABI. uverbs deregisters the region then, and that must not fail.
 *
 *     provider_undone ACTIVE PASSIVE
 *
 * The passive end registers, and the active end is the peer.
 */
#include <errno.h>
#include <pthread.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/access.h"
#include "common/clock.h"
#include "common/completion.h"
#include "common/demand.h"
#include "common/random.h"
#include "common/rings.h"
#include "common/setup.h"
#include "common/tap.h"

#define LENGTH 4096UL

/* UVERBS_METHOD_REG_MR and its attributes (enum uverbs_attrs_reg_mr_cmd_attr_ids), of later headers. */
#define METHOD_REG_MR (UVERBS_METHOD_REG_DMABUF_MR + 1)
enum { HANDLE, PD_HANDLE, IOVA = 3, ADDR, BYTES, ACCESS, RESP_LKEY = 9, RESP_RKEY };

static struct rng rng = { .state = 1 };

/* A registration of `memory`, in a thread of its own. */
struct registration {
	struct ibv_pd *pd;
	uint8_t *memory;
	uint32_t lkey;		/* written before `rkey` */
	uint32_t *rkey;		/* of a page that is provided on demand */
	int error;
};

static void *register_memory(void *arg)
{
	struct registration *r = arg;
	uint64_t response;
	struct {
		struct ib_uverbs_ioctl_hdr header;
		struct ib_uverbs_attr attrs[10];
	} call = {
		.header = {
			.length = sizeof(call), .object_id = UVERBS_OBJECT_MR,
			.method_id = METHOD_REG_MR, .num_attrs = 10, .driver_id = OWN_DRIVER_ID,
		},
		.attrs = {
			{ .attr_id = HANDLE },
			{ .attr_id = PD_HANDLE, .data = r->pd->handle },
			{ .attr_id = IOVA, .len = 8, .data = (uintptr_t)r->memory },
			{ .attr_id = ADDR, .len = 8, .data = (uintptr_t)r->memory },
			{ .attr_id = BYTES, .len = 8, .data = LENGTH },
			{ .attr_id = ACCESS, .len = 4, .data = ALL | IBV_ACCESS_MW_BIND },
			{ .attr_id = RESP_LKEY, .len = 4, .data = (uintptr_t)&r->lkey },
			{ .attr_id = RESP_RKEY, .len = 4, .data = (uintptr_t)r->rkey },
			{ .attr_id = UVERBS_ATTR_UHW_IN, .len = 8 },
			{ .attr_id = UVERBS_ATTR_UHW_OUT, .len = 8, .data = (uintptr_t)&response },
		},
	};

	for (int i = 0; i < call.header.num_attrs; i++)
		call.attrs[i].flags = UVERBS_ATTR_F_MANDATORY;
	r->error = ioctl(r->pd->context->cmd_fd, RDMA_VERBS_IOCTL, &call) ? errno : 0;
	return NULL;
}

/* Binds a window of type 2 to all of the memory. Returns its key. */
static uint32_t bind_all(struct setup *s, struct ibv_mw *mw, const struct registration *r)
{
	struct ibv_mr mr = { .context = r->pd->context, .pd = r->pd, .lkey = r->lkey, .rkey = r->lkey };
	struct ibv_send_wr *bad, wr = {
		.opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED,
		.bind_mw = {
			.mw = mw, .rkey = ibv_inc_rkey(mw->rkey),
			.bind_info = {
				.mr = &mr, .addr = (uintptr_t)r->memory, .length = LENGTH,
				.mw_access_flags = IBV_ACCESS_REMOTE_READ,
			},
		},
	};
	struct ibv_wc wc = {};
	int error = ibv_post_send(s->pair.passive.qp, &wr, &bad);

	tap_check(!error, "ibv_post_send: %s", strerror(error));
	tap_check(cq_next(s->pair.passive.scq, &wc, PATIENCE), "no completion of the bind");
	tap_check(!wc.status, "bind: %s", ibv_wc_status_str(wc.status));
	return wr.bind_mw.rkey;
}

static enum ibv_wc_status peer_reads(struct setup *s, const struct registration *r, uint32_t rkey)
{
	return setup_reach(s, IBV_WR_RDMA_READ, (uintptr_t)r->memory, 8, rkey);
}

static void undone(struct setup *s)
{
	struct registration r = { .pd = s->pair.passive.pd };
	struct ibv_mw *mw = ibv_alloc_mw(r.pd, IBV_MW_TYPE_2);
	pthread_t thread;
	uint32_t rkey;
	int uffd;

	r.memory = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!mw || r.memory == MAP_FAILED)
		tap_bail("a window, and memory: %m");
	r.rkey = page_on_demand(&uffd);
	if (pthread_create(&thread, NULL, register_memory, &r))
		tap_bail("a thread");
	if (!readable_within(uffd, PATIENCE))
		tap_bail("the page is not asked for: %s", strerror(r.error));

	rkey = bind_all(s, mw, &r);
	tap_check(peer_reads(s, &r, rkey) == IBV_WC_SUCCESS, "a read by the window fails");
	tap_point("a window is bound to a region before its registration ends");

	/* The kernel looks for the page again, and finds none. */
	munmap(r.rkey, DEMAND_PAGE);
	close(uffd);
	pthread_join(thread, NULL);
	tap_check(r.error == EFAULT, "UVERBS_METHOD_REG_MR: %s", strerror(r.error));
	tap_check(peer_reads(s, &r, rkey) == IBV_WC_REM_ACCESS_ERR, "the window can still be used");
	tap_check(!ibv_dealloc_mw(mw), "ibv_dealloc_mw");
	tap_point("the registration fails, and the window is not bound any more");
	munmap(r.memory, LENGTH);
}

int main(int argc, char **argv)
{
	const struct regions regions = { .length = LENGTH, .local = ALL, .remote = UNREGISTERED };
	struct pair_opts opts = {};
	struct setup s;

	if (argc != 3)
		return 2;
	opts.active = side_parse(argv[1]);
	opts.passive = side_parse(argv[2]);
	setup_open(&s, &opts, &rng, &regions);
	undone(&s);
	/* The PD can be freed only if the region is gone. */
	setup_close(&s);
	tap_point("everything can be destroyed");
	return tap_done();
}
