// SPDX-License-Identifier: GPL-2.0
/*
 * Re-registration of memory regions.
 *
 *     provider_rereg [-k] ACTIVE PASSIVE
 *
 * -k: by the kernel's command, as the user library has no such verb.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rdma/ib_user_verbs.h>

#include "common/access.h"
#include "common/clock.h"
#include "common/completion.h"
#include "common/post.h"
#include "common/random.h"
#include "common/rings.h"
#include "common/setup.h"
#include "common/tap.h"

#define LENGTH 65536
#define READS 8
#define PIECE 3000

#define TRANSLATION IBV_REREG_MR_CHANGE_TRANSLATION
#define PD IBV_REREG_MR_CHANGE_PD
#define ACCESS IBV_REREG_MR_CHANGE_ACCESS

static struct rng rng = { .state = 1 };
static struct pair_opts sides;
static bool by_command;

static void begin(struct setup *s, int remote)
{
	const struct regions regions = { .length = LENGTH, .local = ALL, .remote = remote };
	struct pair_opts opts = sides;

	setup_open(s, &opts, &rng, &regions);
}

/* Re-registers a region, whose first byte is `at` on the wire. Returns 0 or an errno. */
static int rereg_at(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *start, uint64_t at,
		    size_t length, int access)
{
	struct ib_uverbs_rereg_mr cmd = {
		.mr_handle = mr->handle, .flags = flags, .start = (uintptr_t)start, .length = length,
		.hca_va = at, .pd_handle = pd ? pd->handle : 0, .access_flags = access,
	};
	struct ib_uverbs_rereg_mr_resp out = {};
	int status;

	status = command(mr->context, IB_USER_VERBS_CMD_REREG_MR, &cmd, sizeof(cmd), &out, sizeof(out));
	if (!status)
		tap_check(out.lkey == mr->lkey && out.rkey == mr->rkey, "keys %#x, %#x", out.lkey,
			  out.rkey);
	return status;
}

static int rereg(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *start, size_t length, int access)
{
	uint32_t key = mr->rkey;
	int status;

	if (by_command)
		return rereg_at(mr, flags, pd, start, (uintptr_t)start, length, access);
	status = ibv_rereg_mr(mr, flags, pd, start, length, access);
	tap_check(mr->lkey == key && mr->rkey == key, "keys %#x, %#x", mr->lkey, mr->rkey);
	return status ? errno : 0;
}

/* RDMA Write or Read between the start of the local region and `at` of the peer. */
static enum ibv_wc_status reach(struct setup *s, enum ibv_wr_opcode opcode, const void *at,
				uint32_t length)
{
	return setup_reach(s, opcode, (uintptr_t)at, length, s->remote.mr->rkey);
}

/* Writes to the peer, and waits until it has the data. */
static void write_there(struct setup *s, void *at, uint32_t length)
{
	uint8_t first;

	rng_fill(&rng, s->local.bytes, length);
	memcpy(s->local.wanted, s->local.map, s->local.map_length);
	tap_check(reach(s, IBV_WR_RDMA_WRITE, at, length) == IBV_WC_SUCCESS, "a write fails");
	first = s->local.bytes[0];
	/* The answer comes after the data of the write. It takes the first byte. */
	tap_check(reach(s, IBV_WR_RDMA_READ, at, 1) == IBV_WC_SUCCESS, "a read fails");
	tap_check(s->local.bytes[0] == first && !memcmp(at, s->local.bytes, length),
		  "the data of a write is not there");
}

/* Reads the peer's region as a whole, several times at once: in each of many segments it is looked up. */
static bool read_all(struct setup *s)
{
	struct ibv_sge sge = region_sge(&s->local, 0, LENGTH);
	bool done = true;

	for (int i = 0; i < READS; i++)
		done &= tap_check(!post_rdma(s->pair.active.qp, i, IBV_WR_RDMA_READ, &sge, 1,
					     IBV_SEND_SIGNALED, (uintptr_t)s->remote.bytes,
					     s->remote.mr->rkey), "ibv_post_send");
	for (int i = 0; i < READS && done; i++)
		done = cq_expect(s->pair.active.scq, i, IBV_WC_SUCCESS, NULL);
	return done;
}

/* The peer may not read at `at`. The connection ends. */
static void read_refused(struct setup *s, const void *at, const char *what)
{
	enum ibv_wc_status status = reach(s, IBV_WR_RDMA_READ, at, 8);

	tap_check(status == IBV_WC_REM_ACCESS_ERR, "%s: %s", what, ibv_wc_status_str(status));
}

static void translation(void)
{
	struct region other;
	struct setup s;
	int status;

	begin(&s, ALL);
	region_make(&other, &rng, 2 * LENGTH, 100);
	write_there(&s, s.remote.bytes + 10, PIECE);
	memcpy(region_wanted(&s.remote, s.remote.bytes + 10), s.local.bytes, PIECE);
	status = rereg(s.remote.mr, TRANSLATION, NULL, other.bytes, 2 * LENGTH, 0);
	tap_check(!status, "ibv_rereg_mr: %s", strerror(status));
	if (!by_command)
		mr_shows(s.remote.mr, (uintptr_t)other.bytes, 2 * LENGTH);
	write_there(&s, other.bytes + 2 * LENGTH - PIECE, PIECE);
	memcpy(region_wanted(&other, other.bytes + 2 * LENGTH - PIECE), s.local.bytes, PIECE);
	region_intact(&s.remote, "the memory before");
	region_intact(&other, "the memory since");
	read_refused(&s, s.remote.bytes, "the memory before");
	setup_close(&s);
	region_free(&other);
	tap_point("a new translation: the peer reaches the new memory, and the old one no more");
}

static void shorter(void)
{
	struct setup s;

	begin(&s, ALL);
	tap_check(!rereg(s.remote.mr, TRANSLATION, NULL, s.remote.bytes, LENGTH - 4, 0), "ibv_rereg_mr");
	tap_check(reach(&s, IBV_WR_RDMA_READ, s.remote.bytes + LENGTH - 12, 8) == IBV_WC_SUCCESS,
		  "the last bytes");
	read_refused(&s, s.remote.bytes + LENGTH - 8, "the end");
	setup_close(&s);
	tap_point("a new translation: its length is that of the new memory");
}

static void domain(bool away)
{
	struct setup s;
	int status;

	begin(&s, UNREGISTERED);
	s.other_pd = ibv_alloc_pd(s.pair.passive.ctx);
	if (!s.other_pd)
		tap_bail("ibv_alloc_pd");
	region_register(&s.remote, away ? s.pair.passive.pd : s.other_pd, ALL);
	status = rereg(s.remote.mr, PD, away ? s.other_pd : s.pair.passive.pd, NULL, 0, 0);
	tap_check(!status, "ibv_rereg_mr: %s", strerror(status));
	tap_check(ibv_dealloc_pd(s.other_pd) == (away ? EBUSY : 0), "the other PD is %s",
		  away ? "unused" : "in use");
	if (!away)
		s.other_pd = NULL;
	if (away)
		read_refused(&s, s.remote.bytes, "the region of another PD");
	else
		write_there(&s, s.remote.bytes, PIECE);
	setup_close(&s);
	tap_point("a new PD: queue pairs of the PD %s", away ? "before are refused" : "since are served");
}

static void rights(void)
{
	const int before = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	struct setup s;

	begin(&s, before);
	tap_check(!rereg(s.remote.mr, ACCESS, NULL, NULL, 0, ALL), "ibv_rereg_mr");
	/* The memory stays. */
	if (!by_command)
		mr_shows(s.remote.mr, (uintptr_t)s.remote.bytes, LENGTH);
	write_there(&s, s.remote.bytes, PIECE);
	tap_check(!rereg(s.remote.mr, ACCESS, NULL, NULL, 0, before), "ibv_rereg_mr");
	read_refused(&s, s.remote.bytes, "without the right");
	setup_close(&s);
	tap_point("new rights are in force at once");
}

/* Memory that was pinned for reading only, and that nobody has written to. */
static void writable(void)
{
	struct setup s;
	uint8_t *fresh;

	begin(&s, UNREGISTERED);
	fresh = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (fresh == MAP_FAILED)
		tap_bail("mmap");
	s.remote.mr = ibv_reg_mr(s.pair.passive.pd, fresh, LENGTH, IBV_ACCESS_REMOTE_READ);
	if (!s.remote.mr)
		tap_bail("ibv_reg_mr");
	tap_check(!rereg(s.remote.mr, ACCESS, NULL, NULL, 0, ALL), "ibv_rereg_mr");
	write_there(&s, fresh + 5000, PIECE);
	setup_close(&s);
	munmap(fresh, LENGTH);
	tap_point("memory that was registered for reading can get the right to write");
}

static void everything(void)
{
	struct region other;
	struct setup s;

	begin(&s, UNREGISTERED);
	region_make(&other, &rng, LENGTH, 0);
	s.other_pd = ibv_alloc_pd(s.pair.passive.ctx);
	if (!s.other_pd)
		tap_bail("ibv_alloc_pd");
	region_register(&s.remote, s.other_pd, IBV_ACCESS_REMOTE_READ);
	tap_check(!rereg(s.remote.mr, TRANSLATION | PD | ACCESS, s.pair.passive.pd, other.bytes, LENGTH,
			 ALL), "ibv_rereg_mr");
	write_there(&s, other.bytes, PIECE);
	memcpy(region_wanted(&other, other.bytes), s.local.bytes, PIECE);
	region_intact(&other, "the memory since");
	region_intact(&s.remote, "the memory before");
	setup_close(&s);
	region_free(&other);
	tap_point("translation, PD and rights change at once");
}

/* The peer has invalidated the region. */
static void revived(void)
{
	struct ibv_sge sge;
	struct setup s;

	begin(&s, REVOCABLE);
	sge = region_sge(&s.remote, 0, 8);
	tap_check(!post_recv(s.pair.passive.qp, 1, &sge, 1), "ibv_post_recv");
	tap_check(!post_send(s.pair.active.qp, 1, IBV_WR_SEND_WITH_INV, NULL, 0, IBV_SEND_SIGNALED,
			     s.remote.mr->rkey), "ibv_post_send");
	cq_expect(s.pair.active.scq, 1, IBV_WC_SUCCESS, NULL);
	cq_expect(s.pair.passive.rcq, 1, IBV_WC_SUCCESS, NULL);
	tap_check(!rereg(s.remote.mr, ACCESS, NULL, NULL, 0, ALL), "ibv_rereg_mr");
	write_there(&s, s.remote.bytes, PIECE);
	setup_close(&s);
	tap_point("a region that the peer has invalidated is valid again");
}

static void refused(void)
{
	struct setup s;
	uint8_t *gone;
	int status;

	begin(&s, ALL);
	gone = mmap(NULL, LENGTH, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (gone == MAP_FAILED)
		tap_bail("mmap");
	status = rereg(s.remote.mr, TRANSLATION, NULL, gone, LENGTH, 0);
	tap_check(status == EFAULT, "memory that cannot be written: %d", status);
	munmap(gone, LENGTH);
	status = rereg(s.remote.mr, TRANSLATION, NULL, gone, LENGTH, 0);
	tap_check(status == EFAULT, "no memory: %d", status);
	status = rereg_at(s.remote.mr, TRANSLATION, NULL, s.remote.bytes, (uintptr_t)s.remote.bytes, 0, 0);
	tap_check(status == EINVAL, "no length: %d", status);
	status = rereg_at(s.remote.mr, TRANSLATION, NULL, s.remote.bytes, (uintptr_t)s.remote.bytes + 1,
			  LENGTH, 0);
	tap_check(status == EINVAL, "another offset in the page: %d", status);
	status = rereg_at(s.remote.mr, TRANSLATION, NULL, s.remote.bytes,
			  -4096ull + (uintptr_t)s.remote.bytes % 4096, LENGTH, 0);
	tap_check(status == EINVAL, "addresses that wrap: %d", status);
	status = rereg(s.remote.mr, ACCESS, NULL, NULL, 0, IBV_ACCESS_REMOTE_WRITE);
	tap_check(status == EINVAL, "remote without local write: %d", status);
	status = rereg(s.remote.mr, ACCESS, NULL, NULL, 0, ALL | IBV_ACCESS_ON_DEMAND);
	tap_check(status == EOPNOTSUPP, "on-demand paging: %d", status);
	status = rereg_at(s.remote.mr, 0, NULL, NULL, 0, 0, 0);
	tap_check(status == EINVAL, "no change: %d", status);
	status = rereg_at(s.remote.mr, 1 << 3, NULL, NULL, 0, 0, 0);
	tap_check(status == EOPNOTSUPP, "an unknown change: %d", status);
	write_there(&s, s.remote.bytes + LENGTH - PIECE, PIECE);
	setup_close(&s);
	tap_point("what cannot be leaves the region as it was");
}

/* Traffic: numbers, in slots of either of two pieces of memory. */
#define SLOTS 16
#define MESSAGES 3000
#define CHANGES 200
/* Enough for a slow kernel; in ms. */
#define ENOUGH 10000

struct traffic {
	struct setup *s;
	struct region *memory[2];
	atomic_bool done;
	atomic_int changes;
};

static void *change(void *arg)
{
	struct traffic *t = arg;
	struct ibv_pd *pd = t->s->pair.passive.pd;
	struct ibv_mr *mr = t->s->remote.mr;

	for (unsigned int i = 0; !atomic_load(&t->done); i++) {
		struct region *memory = t->memory[i % 2];
		int status = rereg_at(mr, i % 3 ? TRANSLATION : TRANSLATION | PD | ACCESS, pd,
				      memory->bytes, (uintptr_t)t->memory[0]->bytes, LENGTH, ALL);

		if (status)
			return (void *)(intptr_t)status;
		atomic_fetch_add(&t->changes, 1);
	}
	return NULL;
}

static bool is_there(struct traffic *t, unsigned int slot, uint64_t number)
{
	for (int i = 0; i < 2; i++)
		if (!memcmp(t->memory[i]->bytes + slot * 8, &number, sizeof(number)))
			return true;
	return false;
}

static void under_traffic(void)
{
	struct region other;
	struct traffic t = { .memory = { NULL, &other } };
	struct ibv_sge sge;
	pthread_t thread;
	struct setup s;
	int64_t begun;
	uint64_t n = 1;
	void *why;

	begin(&s, ALL);
	region_make(&other, &rng, LENGTH, 0);
	t.s = &s;
	t.memory[0] = &s.remote;
	sge = region_sge(&s.local, 0, 8);
	if (pthread_create(&thread, NULL, change, &t))
		tap_bail("pthread_create");
	begun = now_ms();
	while ((n < MESSAGES || atomic_load(&t.changes) < CHANGES) && !tap_failing() &&
	       (now_ms() < begun + ENOUGH || atomic_load(&t.changes) < CHANGES / 10)) {
		for (unsigned int slot = 0; slot < SLOTS && !tap_failing(); slot++) {
			/* The buffer is free when the send has completed. */
			memcpy(s.local.bytes, &(uint64_t){ n + slot }, 8);
			tap_check(!post_rdma(s.pair.active.qp, 1, IBV_WR_RDMA_WRITE, &sge, 1,
					     IBV_SEND_SIGNALED,
					     (uintptr_t)t.memory[0]->bytes + slot * 8,
					     s.remote.mr->rkey), "ibv_post_send");
			cq_expect(s.pair.active.scq, 1, IBV_WC_SUCCESS, NULL);
		}
		if (!read_all(&s)) {
			tap_check(false, "message %" PRIu64 " failed after %d changes", n,
				  atomic_load(&t.changes));
			break;
		}
		for (unsigned int slot = 0; slot < SLOTS; slot++)
			tap_check(is_there(&t, slot, n + slot), "message %" PRIu64 " is nowhere", n + slot);
		n += SLOTS;
	}
	atomic_store(&t.done, true);
	pthread_join(thread, &why);
	tap_check(!why, "ibv_rereg_mr: %s", strerror((intptr_t)why));
	tap_note("%" PRIu64 " messages, %d changes", n, atomic_load(&t.changes));
	setup_close(&s);
	region_free(&other);
	tap_point("under traffic each message finds the memory before or since");
}

int main(int argc, char **argv)
{
	int option;

	while ((option = getopt(argc, argv, "k")) != -1) {
		if (option != 'k')
			return 2;
		by_command = true;
	}
	if (argc - optind != 2)
		return 2;
	sides.active = side_parse(argv[optind]);
	sides.passive = side_parse(argv[optind + 1]);

	translation();
	shorter();
	domain(true);
	domain(false);
	rights();
	writable();
	everything();
	revived();
	refused();
	under_traffic();
	return tap_done();
}
