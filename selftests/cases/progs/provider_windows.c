// SPDX-License-Identifier: GPL-2.0
/*
 * Memory windows of types 1 and 2B, and local invalidation.
 *
 *     provider_windows [-e] ACTIVE PASSIVE
 *
 * The passive end has the windows, the active end is the peer. -e: an early riw.ko, which keeps a window of type 2B
 * bound after the end of its queue pair.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "common/access.h"
#include "common/clock.h"
#include "common/completion.h"
#include "common/post.h"
#include "common/random.h"
#include "common/setup.h"
#include "common/tap.h"

#define LENGTH 65536
#define FIRST 4096		/* of windows */
#define SIZE 8192
#define REMOTE_ALL (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
/* Rights of a region that has windows, and that the peer cannot access by itself. */
#define WINDOWED (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND)

static struct rng rng = { .state = 1 };
static struct pair_opts sides;

static void begin_with(struct setup *s, struct pair_opts *opts, int access)
{
	const struct regions regions = { .length = LENGTH, .local = ALL, .remote = access };

	opts->active = sides.active;
	opts->passive = sides.passive;
	setup_open(s, opts, &rng, &regions);
}

static void begin(struct setup *s, int access)
{
	struct pair_opts opts = {};

	begin_with(s, &opts, access);
}

static struct ibv_mw *window(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct ibv_mw *mw = ibv_alloc_mw(pd, type);

	if (!mw)
		tap_bail("ibv_alloc_mw: %s", strerror(errno));
	return mw;
}

static struct ibv_mw_bind_info part(struct setup *s, size_t offset, uint64_t length, int access)
{
	return (struct ibv_mw_bind_info){
		.mr = s->remote.mr, .addr = (uintptr_t)s->remote.bytes + offset, .length = length,
		.mw_access_flags = access,
	};
}

/* Binds a window by either verb, and waits. Returns the status of the completion; -errno if it is refused. */
static int bind_by(struct ibv_qp *qp, struct ibv_cq *cq, struct ibv_mw *mw, uint32_t rkey,
		   struct ibv_mw_bind_info info)
{
	struct ibv_mw_bind bind = { .wr_id = 77, .send_flags = IBV_SEND_SIGNALED, .bind_info = info };
	struct ibv_send_wr *bad, wr = {
		.wr_id = 77, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED,
		.bind_mw = { .mw = mw, .rkey = rkey, .bind_info = info },
	};
	int status = mw->type == IBV_MW_TYPE_1 ? ibv_bind_mw(qp, mw, &bind)
					       : ibv_post_send(qp, &wr, &bad);
	struct ibv_wc wc = {};

	if (status)
		return -status;
	tap_check(cq_next(cq, &wc, PATIENCE) && wc.wr_id == 77, "no completion of a bind");
	if (!wc.status)
		tap_check(wc.opcode == IBV_WC_BIND_MW, "opcode %d", wc.opcode);
	return wc.status;
}

static int bind_window(struct setup *s, struct ibv_mw *mw, uint32_t rkey, struct ibv_mw_bind_info info)
{
	return bind_by(s->pair.passive.qp, s->pair.passive.scq, mw, rkey, info);
}

/* Binds the usual part, with all rights. Returns the key. */
static uint32_t bound(struct setup *s, struct ibv_mw *mw)
{
	uint32_t rkey = ibv_inc_rkey(mw->rkey);
	int status = bind_window(s, mw, rkey, part(s, FIRST, SIZE, REMOTE_ALL));

	tap_check(!status, "bind: %d", status);
	if (mw->type == IBV_MW_TYPE_1)
		tap_check(mw->rkey == rkey, "key %#x, not %#x", mw->rkey, rkey);
	mw->rkey = rkey;
	return rkey;
}

static int invalidate(struct ibv_qp *qp, struct ibv_cq *cq, uint32_t rkey)
{
	struct ibv_send_wr *bad, wr = {
		.wr_id = 78, .opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED,
		.invalidate_rkey = rkey,
	};
	int status = ibv_post_send(qp, &wr, &bad);
	struct ibv_wc wc = {};

	if (status)
		return -status;
	tap_check(cq_next(cq, &wc, PATIENCE) && wc.wr_id == 78, "no completion of an invalidation");
	if (!wc.status)
		tap_check(wc.opcode == IBV_WC_LOCAL_INV, "opcode %d", wc.opcode);
	return wc.status;
}

/* The peer sends a SEND with Invalidate. Returns the status of the receive. */
static int peer_invalidates(struct setup *s, uint32_t rkey)
{
	struct ibv_wc wc = {};

	tap_check(!post_recv(s->pair.passive.qp, 79, NULL, 0), "ibv_post_recv");
	tap_check(!post_send(s->pair.active.qp, 79, IBV_WR_SEND_WITH_INV, NULL, 0, 0, rkey),
		  "ibv_post_send");
	tap_check(cq_next(s->pair.passive.rcq, &wc, PATIENCE), "no receive");
	if (!wc.status)
		tap_check(wc.wc_flags & IBV_WC_WITH_INV && wc.invalidated_rkey == rkey, "flags %#x, key %#x",
			  wc.wc_flags, wc.invalidated_rkey);
	return wc.status;
}

static uint64_t at(struct setup *s, size_t offset)
{
	return (uintptr_t)s->remote.bytes + offset;
}

/* All of a window can be written and read, by its key. `addr` is its first address on the wire. */
static void usable_at(struct setup *s, uint32_t rkey, uint64_t addr)
{
	uint8_t *first = s->remote.bytes + FIRST, written;
	uint64_t before, after;

	rng_fill(&rng, s->local.bytes, SIZE);
	tap_check(setup_reach(s, IBV_WR_RDMA_WRITE, addr, SIZE, rkey) == IBV_WC_SUCCESS, "a write fails");
	written = s->local.bytes[0];
	/* The answer takes the first byte. */
	tap_check(setup_reach(s, IBV_WR_RDMA_READ, addr, 1, rkey) == IBV_WC_SUCCESS, "a read fails");
	tap_check(s->local.bytes[0] == written && !memcmp(first, s->local.bytes, SIZE),
		  "the data of a write is not there");
	memcpy(&before, first, 8);
	tap_check(setup_reach(s, IBV_WR_ATOMIC_FETCH_AND_ADD, addr, 8, rkey) == IBV_WC_SUCCESS, "an add fails");
	memcpy(&after, first, 8);
	tap_check(after == before + 1, "nothing is added");
	memcpy(region_wanted(&s->remote, first), first, SIZE);
	memcpy(s->local.wanted, s->local.map, s->local.map_length);
	region_intact(&s->remote, "the region");
}

static void usable(struct setup *s, uint32_t rkey)
{
	usable_at(s, rkey, at(s, FIRST));
}

/* A read at an address is refused, and ends the connection. */
static void refused_at(struct setup *s, uint32_t rkey, uint64_t addr, const char *what)
{
	enum ibv_wc_status status = setup_reach(s, IBV_WR_RDMA_READ, addr, 8, rkey);

	tap_check(status == IBV_WC_REM_ACCESS_ERR, "%s: %s", what, ibv_wc_status_str(status));
}

/* A write is refused: nothing changes, and the connection ends. */
static void write_refused(struct setup *s, uint32_t rkey, uint64_t addr, const char *what)
{
	/* A write completes when it is sent. */
	setup_reach(s, IBV_WR_RDMA_WRITE, addr, 8, rkey);
	tap_check(qp_reaches(s->pair.active.qp, IBV_QPS_ERR, PATIENCE), "%s is not refused", what);
	region_intact(&s->remote, what);
}

static void close_with(struct setup *s, struct ibv_mw *mw)
{
	tap_check(!ibv_dealloc_mw(mw), "ibv_dealloc_mw");
	setup_close(s);
}

static void announced(void)
{
	struct ibv_device_attr *attr;
	struct setup s;

	begin(&s, WINDOWED);
	attr = &s.pair.passive.attr;
	tap_check(attr->max_mw > 0, "max_mw %d", attr->max_mw);
	tap_check(attr->device_cap_flags & IBV_DEVICE_MEM_WINDOW, "no windows");
	tap_check((attr->device_cap_flags & (IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B)) ==
		  IBV_DEVICE_MEM_WINDOW_TYPE_2B, "not 2B, or 2A");
	setup_close(&s);
	tap_point("the device announces windows of types 1 and 2B");
}

static void life(enum ibv_mw_type type)
{
	struct ibv_mw *mw;
	struct setup s;
	uint32_t rkey;

	begin(&s, WINDOWED);
	mw = window(s.pair.passive.pd, type);
	rkey = bound(&s, mw);
	usable(&s, rkey);
	if (type == IBV_MW_TYPE_1) {
		/* It moves. */
		uint32_t next = ibv_inc_rkey(rkey);

		tap_check(!bind_window(&s, mw, next, part(&s, 0, 100, IBV_ACCESS_REMOTE_READ)), "bind");
		tap_check(setup_reach(&s, IBV_WR_RDMA_READ, at(&s, 0), 100, next) == IBV_WC_SUCCESS, "a read");
	} else {
		tap_check(!invalidate(s.pair.passive.qp, s.pair.passive.scq, rkey), "IBV_WR_LOCAL_INV");
		tap_check(bound(&s, mw) != rkey, "the same key");
		usable(&s, mw->rkey);
		tap_check(!peer_invalidates(&s, mw->rkey), "SEND with Invalidate");
		/* The consumer need not know. */
		tap_check(!invalidate(s.pair.passive.qp, s.pair.passive.scq, mw->rkey),
			  "IBV_WR_LOCAL_INV of an unbound window");
	}
	refused_at(&s, rkey, at(&s, FIRST), "the old key");
	close_with(&s, mw);
	tap_point("a window of type %s can be bound, used, and bound again under another key",
		  type == IBV_MW_TYPE_1 ? "1" : "2B");
}

/* What a peer may not do with a window. Each ends the connection. */
static void beyond(void)
{
	static const struct {
		int access;
		size_t offset;
		const char *what;
	} cases[] = {
		{ REMOTE_ALL, FIRST - 8, "before the window" },
		{ REMOTE_ALL, FIRST + SIZE - 7, "behind the window" },
		{ IBV_ACCESS_REMOTE_WRITE, FIRST, "a read without the right" },
		{ IBV_ACCESS_LOCAL_WRITE, FIRST, "a read with local access" },
	};
	struct ibv_mw *mw;
	struct setup s;

	for (unsigned int i = 0; i < 2 * sizeof(cases) / sizeof(*cases); i++) {
		uint32_t rkey;

		begin(&s, WINDOWED);
		mw = window(s.pair.passive.pd, i % 2 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
		rkey = ibv_inc_rkey(mw->rkey);
		tap_check(!bind_window(&s, mw, rkey, part(&s, FIRST, SIZE, cases[i / 2].access)), "bind");
		refused_at(&s, rkey, at(&s, cases[i / 2].offset), cases[i / 2].what);
		region_intact(&s.remote, cases[i / 2].what);
		close_with(&s, mw);
	}
	for (int type = IBV_MW_TYPE_1; type <= IBV_MW_TYPE_2; type++) {
		uint32_t rkey;

		begin(&s, WINDOWED);
		mw = window(s.pair.passive.pd, type);
		rkey = ibv_inc_rkey(mw->rkey);
		tap_check(!bind_window(&s, mw, rkey, part(&s, FIRST, SIZE,
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ)), "bind");
		write_refused(&s, rkey, at(&s, FIRST), "a write without the right");
		close_with(&s, mw);
	}
	begin(&s, WINDOWED);
	mw = window(s.pair.passive.pd, IBV_MW_TYPE_2);
	bound(&s, mw);
	refused_at(&s, ibv_inc_rkey(mw->rkey), at(&s, FIRST), "another key");
	close_with(&s, mw);
	tap_point("bounds, rights and key of a window are checked");
}

static void never_bound(void)
{
	struct ibv_mw *mw;
	struct setup s;

	for (int type = IBV_MW_TYPE_1; type <= IBV_MW_TYPE_2; type++) {
		begin(&s, WINDOWED);
		mw = window(s.pair.passive.pd, type);
		refused_at(&s, mw->rkey, at(&s, FIRST), "a window that is not bound");
		close_with(&s, mw);
	}
	begin(&s, WINDOWED);
	refused_at(&s, s.remote.mr->rkey, at(&s, FIRST), "the region itself");
	setup_close(&s);
	tap_point("a peer reaches nothing but bound windows");
}

static void freed(void)
{
	struct ibv_mw *mw;
	struct setup s;
	uint32_t rkey;

	for (int type = IBV_MW_TYPE_1; type <= IBV_MW_TYPE_2; type++) {
		begin(&s, WINDOWED);
		mw = window(s.pair.passive.pd, type);
		rkey = bound(&s, mw);
		usable(&s, rkey);
		tap_check(!ibv_dealloc_mw(mw), "ibv_dealloc_mw");
		write_refused(&s, rkey, at(&s, FIRST), "a freed window");
		setup_close(&s);
	}
	begin(&s, WINDOWED);
	mw = window(s.pair.passive.pd, IBV_MW_TYPE_1);
	rkey = bound(&s, mw);
	tap_check(!bind_window(&s, mw, 0, (struct ibv_mw_bind_info){}), "bind to nothing");
	write_refused(&s, rkey, at(&s, FIRST), "an unbound window");
	close_with(&s, mw);
	tap_point("a freed or unbound window is closed at once");
}

static void zero_based(void)
{
	struct ibv_mw *mw;
	struct setup s;
	uint32_t rkey;

	begin(&s, WINDOWED);
	mw = window(s.pair.passive.pd, IBV_MW_TYPE_2);
	rkey = ibv_inc_rkey(mw->rkey);
	tap_check(!bind_window(&s, mw, rkey, part(&s, FIRST, SIZE, REMOTE_ALL | IBV_ACCESS_ZERO_BASED)), "bind");
	usable_at(&s, rkey, 0);
	refused_at(&s, rkey, SIZE - 7, "behind the window");
	close_with(&s, mw);
	tap_point("a window of type 2B may begin at address 0");
}

/* Windows of other queue pairs and domains. */
static void others(void)
{
	struct pair_opts opts = {};
	struct setup first, second;
	struct ibv_mw *mw;
	uint32_t rkey;

	/* Both passive ends are in one domain. */
	begin(&first, WINDOWED);
	opts.share = &first.pair.passive;
	begin_with(&second, &opts, UNREGISTERED);
	mw = window(first.pair.passive.pd, IBV_MW_TYPE_1);
	rkey = bound(&first, mw);
	tap_check(setup_reach(&second, IBV_WR_RDMA_READ, at(&first, FIRST), 8, rkey) == IBV_WC_SUCCESS,
		  "type 1, another queue pair");
	tap_check(!ibv_dealloc_mw(mw), "ibv_dealloc_mw");
	mw = window(first.pair.passive.pd, IBV_MW_TYPE_2);
	rkey = bound(&first, mw);
	usable(&first, rkey);
	tap_check(peer_invalidates(&second, rkey) != IBV_WC_SUCCESS, "another peer invalidates");
	setup_close(&second);
	usable(&first, rkey);
	begin_with(&second, &opts, UNREGISTERED);
	refused_at(&second, rkey, at(&first, FIRST), "type 2B, another queue pair");
	setup_close(&second);
	begin_with(&second, &opts, UNREGISTERED);
	tap_check(invalidate(second.pair.passive.qp, second.pair.passive.scq, rkey) == IBV_WC_LOC_PROT_ERR,
		  "another queue pair invalidates");
	setup_close(&second);
	usable(&first, rkey);

	/* Another domain. */
	opts.share = NULL;
	begin_with(&second, &opts, WINDOWED);
	refused_at(&second, rkey, at(&first, FIRST), "another domain");
	setup_close(&second);
	usable(&first, rkey);
	close_with(&first, mw);

	begin(&first, WINDOWED);
	mw = window(first.pair.passive.pd, IBV_MW_TYPE_1);
	rkey = bound(&first, mw);
	begin_with(&second, &opts, WINDOWED);
	refused_at(&second, rkey, at(&first, FIRST), "type 1, another domain");
	setup_close(&second);
	close_with(&first, mw);
	tap_point("a window serves its domain; one of type 2B only the queue pair that has bound it");
}

/* A window of type 2B ends with the connection of its queue pair, one of type 1 does not. */
static void end_of_owner(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct setup first, second;
	struct pair_opts opts = {};

	for (int type = IBV_MW_TYPE_1; type <= IBV_MW_TYPE_2; type++) {
		struct ibv_mw *mw;
		struct ibv_wc wc;
		uint32_t rkey;

		begin(&first, WINDOWED);
		opts.share = &first.pair.passive;
		begin_with(&second, &opts, UNREGISTERED);
		mw = window(first.pair.passive.pd, type);
		rkey = bound(&first, mw);
		tap_check(!post_recv(first.pair.passive.qp, 80, NULL, 0), "ibv_post_recv");
		tap_check(!ibv_modify_qp(first.pair.passive.qp, &attr, IBV_QP_STATE), "ERROR: %m");
		tap_check(cq_next(first.pair.passive.rcq, &wc, PATIENCE) && wc.status == IBV_WC_WR_FLUSH_ERR,
			  "the receive is not flushed");
		if (type == IBV_MW_TYPE_1) {
			tap_check(setup_reach(&second, IBV_WR_RDMA_READ, at(&first, FIRST), 8, rkey) ==
				  IBV_WC_SUCCESS, "type 1 has ended");
		} else {
			int status = bind_window(&second, mw, ibv_inc_rkey(rkey),
						 part(&first, FIRST, SIZE, REMOTE_ALL));

			tap_check(!status, "bind: %d", status);
			tap_check(setup_reach(&second, IBV_WR_RDMA_READ, at(&first, FIRST), 8,
					      ibv_inc_rkey(rkey)) == IBV_WC_SUCCESS, "the new binding");
		}
		tap_check(!ibv_dealloc_mw(mw), "ibv_dealloc_mw");
		setup_close(&second);
		setup_close(&first);
	}
	tap_point("a window of type 2B ends with its queue pair, and another one can bind it");
}

/* Binds that must fail. A completion with an error ends the connection. */
static void bad_binds(void)
{
	const int both[] = { IBV_MW_TYPE_1, IBV_MW_TYPE_2 };

	for (int i = 0; i < 2; i++) {
		struct bad {
			int region;
			size_t offset;
			uint64_t length;
			int access;
			const char *what;
		} bad[] = {
			{ ALL, FIRST, SIZE, IBV_ACCESS_REMOTE_READ, "a region without MW_BIND" },
			{ IBV_ACCESS_MW_BIND, FIRST, SIZE, IBV_ACCESS_REMOTE_WRITE, "a right to write" },
			{ IBV_ACCESS_MW_BIND, FIRST, SIZE, IBV_ACCESS_REMOTE_ATOMIC, "a right to add" },
			{ WINDOWED, LENGTH - SIZE + 1, SIZE, REMOTE_ALL, "the end" },
			{ WINDOWED, -1, SIZE, REMOTE_ALL, "the start" },
			{ WINDOWED, FIRST, -1, REMOTE_ALL, "a length that wraps" },
			{ WINDOWED, FIRST, SIZE, IBV_ACCESS_MW_BIND, "a window of a window" },
		};

		for (unsigned int n = 0; n < sizeof(bad) / sizeof(*bad); n++) {
			struct ibv_mw *mw;
			struct setup s;
			int status;

			begin(&s, bad[n].region);
			mw = window(s.pair.passive.pd, both[i]);
			status = bind_window(&s, mw, ibv_inc_rkey(mw->rkey),
				      part(&s, bad[n].offset, bad[n].length, bad[n].access));
			tap_check(status == IBV_WC_MW_BIND_ERR, "type %d, %s: %d", both[i], bad[n].what, status);
			tap_check(qp_reaches(s.pair.passive.qp, IBV_QPS_ERR, PATIENCE), "the connection stays");
			close_with(&s, mw);
		}
	}
	tap_point("a window exceeds neither bounds nor rights of its region");
}

static void bad_binds_of_type_2(void)
{
	struct ibv_mw_bind_info info;
	struct ibv_mw *mw, *other;
	struct setup s;
	int status;

	begin(&s, WINDOWED);
	mw = window(s.pair.passive.pd, IBV_MW_TYPE_2);
	info = part(&s, FIRST, SIZE, REMOTE_ALL);
	status = bind_window(&s, mw, mw->rkey + 0x100, info);
	tap_check(status == -EINVAL, "another index: %d", status);
	bound(&s, mw);
	status = bind_window(&s, mw, ibv_inc_rkey(mw->rkey), info);
	tap_check(status == IBV_WC_MW_BIND_ERR, "a bound window: %d", status);
	close_with(&s, mw);

	begin(&s, WINDOWED);
	mw = window(s.pair.passive.pd, IBV_MW_TYPE_2);
	status = bind_window(&s, mw, ibv_inc_rkey(mw->rkey), part(&s, FIRST, 0, REMOTE_ALL));
	tap_check(status == IBV_WC_MW_BIND_ERR, "no length: %d", status);
	close_with(&s, mw);

	/* Window and queue pair, or window and region, of two domains. */
	for (int i = 0; i < 2; i++) {
		begin(&s, WINDOWED);
		s.other_pd = ibv_alloc_pd(s.pair.passive.ctx);
		if (i)
			tap_check(!ibv_rereg_mr(s.remote.mr, IBV_REREG_MR_CHANGE_PD, s.other_pd, NULL, 0, 0),
				  "ibv_rereg_mr");
		other = window(i ? s.pair.passive.pd : s.other_pd, IBV_MW_TYPE_2);
		status = bind_window(&s, other, ibv_inc_rkey(other->rkey), part(&s, FIRST, SIZE, REMOTE_ALL));
		tap_check(status == IBV_WC_MW_BIND_ERR, "another domain %d: %d", i, status);
		tap_check(!ibv_dealloc_mw(other), "ibv_dealloc_mw");
		setup_close(&s);
	}
	/* A region in place of a window, and a window in place of a region. */
	begin(&s, WINDOWED);
	mw = window(s.pair.passive.pd, IBV_MW_TYPE_2);
	other = &(struct ibv_mw){ .context = mw->context, .pd = mw->pd, .type = IBV_MW_TYPE_2,
				  .rkey = s.remote.mr->rkey };
	status = bind_window(&s, other, s.remote.mr->rkey, part(&s, FIRST, SIZE, REMOTE_ALL));
	tap_check(status == IBV_WC_MW_BIND_ERR, "a region is bound: %d", status);
	close_with(&s, mw);
	begin(&s, WINDOWED);
	mw = window(s.pair.passive.pd, IBV_MW_TYPE_2);
	bound(&s, mw);
	info = part(&s, FIRST, SIZE, REMOTE_ALL);
	info.mr = &(struct ibv_mr){ .context = mw->context, .pd = mw->pd, .lkey = mw->rkey };
	other = window(s.pair.passive.pd, IBV_MW_TYPE_2);
	status = bind_window(&s, other, ibv_inc_rkey(other->rkey), info);
	tap_check(status == IBV_WC_MW_BIND_ERR, "a window of a window: %d", status);
	tap_check(!ibv_dealloc_mw(other), "ibv_dealloc_mw");
	close_with(&s, mw);
	tap_point("windows of type 2B are bound once, in their domain, and never to nothing");
}

static void local_use(void)
{
	struct ibv_mw *mw;
	struct ibv_sge sge;
	struct setup s;
	struct ibv_wc wc;

	begin(&s, WINDOWED);
	mw = window(s.pair.passive.pd, IBV_MW_TYPE_1);
	sge = region_sge(&s.remote, FIRST, 8);
	sge.lkey = bound(&s, mw);
	tap_check(!post_send(s.pair.passive.qp, 5, IBV_WR_SEND, &sge, 1, IBV_SEND_SIGNALED, 0),
		  "ibv_post_send");
	tap_check(cq_next(s.pair.passive.scq, &wc, PATIENCE) && wc.status == IBV_WC_LOC_PROT_ERR,
		  "sent: %s", ibv_wc_status_str(wc.status));
	close_with(&s, mw);
	begin(&s, WINDOWED);
	mw = window(s.pair.passive.pd, IBV_MW_TYPE_1);
	sge = region_sge(&s.remote, FIRST, 8);
	sge.lkey = bound(&s, mw);
	tap_check(!post_recv(s.pair.passive.qp, 5, &sge, 1), "ibv_post_recv");
	sge = region_sge(&s.local, 0, 8);
	tap_check(!post_send(s.pair.active.qp, 6, IBV_WR_SEND, &sge, 1, 0, 0), "ibv_post_send");
	tap_check(cq_next(s.pair.passive.rcq, &wc, PATIENCE) && wc.status == IBV_WC_LOC_PROT_ERR,
		  "received: %s", ibv_wc_status_str(wc.status));
	region_intact(&s.remote, "the region");
	close_with(&s, mw);
	tap_point("a window is no buffer of work requests");
}

static void busy(void)
{
	struct ibv_mw *mw;
	struct setup s;
	int status;

	for (int type = IBV_MW_TYPE_1; type <= IBV_MW_TYPE_2; type++) {
		begin(&s, WINDOWED);
		mw = window(s.pair.passive.pd, type);
		bound(&s, mw);
		status = ibv_dereg_mr(s.remote.mr);
		tap_check(status == EBUSY, "ibv_dereg_mr: %d", status);
		status = ibv_rereg_mr(s.remote.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ALL);
		tap_check(status && errno == EBUSY, "ibv_rereg_mr: %d", errno);
		usable(&s, mw->rkey);
		tap_check(ibv_dealloc_pd(s.pair.passive.pd) == EBUSY, "ibv_dealloc_pd");
		tap_check(!ibv_dealloc_mw(mw), "ibv_dealloc_mw");
		/* A re-registration that fails must not keep windows away. */
		status = ibv_rereg_mr(s.remote.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				      IBV_ACCESS_ZERO_BASED);
		tap_check(status, "ibv_rereg_mr of an unknown access");
		mw = window(s.pair.passive.pd, type);
		bound(&s, mw);
		usable(&s, mw->rkey);
		tap_check(!ibv_dealloc_mw(mw), "ibv_dealloc_mw");
		tap_check(!ibv_dereg_mr(s.remote.mr), "ibv_dereg_mr");
		s.remote.mr = NULL;
		setup_close(&s);
	}
	tap_point("a region with windows can be neither deregistered nor re-registered");
}

static void busy_until_end(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_mw *mw;
	struct setup s;
	struct ibv_wc wc;

	begin(&s, WINDOWED);
	mw = window(s.pair.passive.pd, IBV_MW_TYPE_2);
	bound(&s, mw);
	tap_check(!post_recv(s.pair.passive.qp, 80, NULL, 0), "ibv_post_recv");
	tap_check(!ibv_modify_qp(s.pair.passive.qp, &attr, IBV_QP_STATE), "ERROR: %m");
	tap_check(cq_next(s.pair.passive.rcq, &wc, PATIENCE) && wc.status == IBV_WC_WR_FLUSH_ERR,
		  "the receive is not flushed");
	tap_check(!ibv_rereg_mr(s.remote.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ALL),
		  "ibv_rereg_mr: %m");
	tap_check(!ibv_dereg_mr(s.remote.mr), "ibv_dereg_mr");
	s.remote.mr = NULL;
	tap_check(!ibv_dealloc_mw(mw), "ibv_dealloc_mw");
	setup_close(&s);
	tap_point("a window of type 2B that has ended keeps no region from being deregistered");
}

static void invalidated_regions(void)
{
	struct setup s;
	uint32_t rkey;
	int status;

	begin(&s, REVOCABLE);
	rkey = s.remote.mr->rkey;
	tap_check(!invalidate(s.pair.passive.qp, s.pair.passive.scq, rkey), "IBV_WR_LOCAL_INV");
	write_refused(&s, rkey, at(&s, 0), "an invalidated region");
	setup_close(&s);
	begin(&s, ALL);
	status = invalidate(s.pair.passive.qp, s.pair.passive.scq, s.remote.mr->rkey);
	tap_check(status == IBV_WC_LOC_PROT_ERR, "a region without MW_BIND: %d", status);
	setup_close(&s);
	begin(&s, ALL);
	status = invalidate(s.pair.passive.qp, s.pair.passive.scq, s.remote.mr->rkey + 0x100);
	tap_check(status == IBV_WC_LOC_PROT_ERR, "no region: %d", status);
	setup_close(&s);
	tap_point("regions with MW_BIND can be invalidated by a work request");
}

/* The region goes before its window: by a WR, or by the peer. */
static void invalidated_with_window(void)
{
	struct ibv_mw *mw;
	struct setup s;
	uint32_t rkey;

	for (int peer = 0; peer < 2; peer++) {
		begin(&s, REVOCABLE);
		mw = window(s.pair.passive.pd, IBV_MW_TYPE_2);
		rkey = bound(&s, mw);
		usable(&s, rkey);
		if (peer)
			tap_check(!peer_invalidates(&s, s.remote.mr->rkey), "SEND with Invalidate");
		else
			tap_check(!invalidate(s.pair.passive.qp, s.pair.passive.scq, s.remote.mr->rkey),
				  "IBV_WR_LOCAL_INV");
		tap_check(ibv_dereg_mr(s.remote.mr) == EBUSY, "ibv_dereg_mr");
		write_refused(&s, rkey, at(&s, FIRST), "a window of an invalidated region");
		close_with(&s, mw);
	}
	tap_point("the windows of an invalidated region are closed");
}

static void new_interface(void)
{
	struct pair_opts opts = { .send_ops = IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV |
					      IBV_QP_EX_WITH_SEND };
	struct ibv_mw_bind_info info;
	struct ibv_qp_ex *qp;
	struct ibv_mw *mw;
	struct setup s;
	uint32_t rkey;

	begin_with(&s, &opts, WINDOWED);
	qp = ibv_qp_to_qp_ex(s.pair.passive.qp);
	mw = window(s.pair.passive.pd, IBV_MW_TYPE_2);
	rkey = ibv_inc_rkey(mw->rkey);
	info = part(&s, FIRST, SIZE, REMOTE_ALL);
	ibv_wr_start(qp);
	qp->wr_id = 1;
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_bind_mw(qp, mw, rkey, &info);
	qp->wr_id = 2;
	ibv_wr_local_inv(qp, rkey);
	qp->wr_id = 3;
	rkey = ibv_inc_rkey(rkey);
	ibv_wr_bind_mw(qp, mw, rkey, &info);
	tap_check(!ibv_wr_complete(qp), "ibv_wr_complete");
	for (int i = 1; i <= 3; i++)
		cq_expect(s.pair.passive.scq, i, IBV_WC_SUCCESS, NULL);
	usable(&s, rkey);
	close_with(&s, mw);
	tap_point("ibv_wr_bind_mw and ibv_wr_local_inv");
}

/* Binds and invalidations go on for ever: others must have their turn. */
#define ROUNDS 2000

static void many(void)
{
	struct pair_opts opts = { .sq = 512 };
	struct ibv_mw_bind_info info;
	struct ibv_mw *mw;
	struct setup s;
	uint32_t rkey;
	int posted = 0, done = 0;

	begin_with(&s, &opts, WINDOWED);
	mw = window(s.pair.passive.pd, IBV_MW_TYPE_2);
	rkey = mw->rkey;
	info = part(&s, FIRST, SIZE, REMOTE_ALL);
	while (done < 2 * ROUNDS && !tap_failing()) {
		struct ibv_send_wr *bad, wr[2] = {
			{ .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED, .next = &wr[1] },
			{ .opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED },
		};
		struct ibv_wc wc[16];
		int got;

		for (; posted < 2 * ROUNDS && posted - done < 500; posted += 2) {
			rkey = ibv_inc_rkey(rkey);
			wr[0].bind_mw.mw = mw;
			wr[0].bind_mw.rkey = rkey;
			wr[0].bind_mw.bind_info = info;
			wr[1].invalidate_rkey = rkey;
			if (!tap_check(!ibv_post_send(s.pair.passive.qp, wr, &bad), "ibv_post_send"))
				break;
		}
		got = ibv_poll_cq(s.pair.passive.scq, 16, wc);
		for (int i = 0; i < got; i++)
			tap_check(!wc[i].status, "%s", ibv_wc_status_str(wc[i].status));
		done += got;
	}
	tap_check(done == 2 * ROUNDS, "%d done", done);
	close_with(&s, mw);
	tap_point("%d windows are bound and invalidated without a message in between", ROUNDS);
}

int main(int argc, char **argv)
{
	bool early = false;

	if (getopt(argc, argv, "e") == 'e')
		early = true;
	if (argc - optind != 2)
		return 2;
	sides.active = side_parse(argv[optind]);
	sides.passive = side_parse(argv[optind + 1]);

	announced();
	life(IBV_MW_TYPE_1);
	life(IBV_MW_TYPE_2);
	beyond();
	never_bound();
	freed();
	zero_based();
	others();
	if (!early)
		end_of_owner();
	bad_binds();
	bad_binds_of_type_2();
	local_use();
	busy();
	if (!early)
		busy_until_end();
	invalidated_regions();
	invalidated_with_window();
	new_interface();
	many();
	return tap_done();
}
