// SPDX-License-Identifier: GPL-2.0
/*
 * A process that writes arbitrary data to the rings that it shares with the kernel, at any time,
 * and rings its doorbells in every state of its QPs.
 *
 *     hostile_rings [-n ROUNDS] [-r SEED] ACTIVE PASSIVE
 *
 * Each round connects a pair of QPs, lets two threads write to all of the rings while a third uses
 * the QPs, and tears everything down. Memory without a valid key must not be read or written.
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/siw-abi.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/access.h"
#include "common/clock.h"
#include "common/completion.h"
#include "common/options.h"
#include "common/pair.h"
#include "common/post.h"
#include "common/random.h"
#include "common/region.h"
#include "common/rings.h"
#include "common/tap.h"

#define WRITERS 2
#define BYTES 100000
#define STEPS 60

/* The written data: see write_garbage(). */
enum kind { NOISE, REQUESTS, FIELDS, COMPLETIONS, KINDS };

static const char *const kind_names[KINDS] = {
	"noise", "made up requests", "fields of requests that change while they are used",
	"completions and wishes",
};

/* The memory of an end: only the bait may be written. */
struct larder {
	struct region bait, readable, elsewhere;
	struct ibv_pd *other_pd;
};

/* Targets of the writer threads. */
struct target {
	struct ring rings[RINGS_MAX];
	int count;
	enum kind kind;
	uint32_t keys[8];
	uint64_t addrs[8];
	int places;
	atomic_bool stop;
};

struct writer {
	pthread_t thread;
	struct target *target;
	struct rng rng;
};

static uint32_t some_key(const struct target *t, struct rng *rng)
{
	return rng_below(rng, 8) ? t->keys[rng_below(rng, t->places)] : rng_next(rng);
}

static uint64_t some_addr(const struct target *t, struct rng *rng)
{
	uint64_t at = t->addrs[rng_below(rng, t->places)];

	switch (rng_below(rng, 8)) {
	case 0:
		return rng_next(rng);
	case 1:
		return -rng_below(rng, 4096);
	case 2:
		return at - rng_below(rng, 64);
	case 3:
		return at + BYTES - rng_below(rng, 64);
	default:
		return at + rng_below(rng, BYTES);
	}
}

static uint32_t some_length(struct rng *rng)
{
	switch (rng_below(rng, 6)) {
	case 0:
		return rng_next(rng);
	case 1:
		return UINT32_MAX - rng_below(rng, 2);
	default:
		return rng_length(rng, BYTES);
	}
}

static void some_sges(const struct target *t, struct rng *rng, struct siw_sge *sge)
{
	for (int i = 0; i < SIW_MAX_SGE; i++)
		sge[i] = (struct siw_sge){ some_addr(t, rng), some_length(rng), some_key(t, rng) };
}

static uint8_t some_count(struct rng *rng)
{
	return rng_below(rng, 4) ? rng_below(rng, SIW_MAX_SGE + 1) : rng_next(rng);
}

/* Writes a valid or nearly valid request. The flags come last. */
static void write_request(const struct target *t, struct rng *rng, struct siw_sqe *sqe)
{
	sqe->id = rng_next(rng);
	sqe->num_sge = some_count(rng);
	sqe->opcode = rng_below(rng, 4) ? rng_below(rng, SIW_NUM_OPCODES) : rng_next(rng);
	sqe->rkey = some_key(t, rng);
	sqe->raddr = some_addr(t, rng);
	some_sges(t, rng, sqe->sge);
	__atomic_store_n(&sqe->flags, rng_below(rng, 4) ? rng_next(rng) | SIW_WQE_VALID : 0,
			 __ATOMIC_RELEASE);
}

/* Changes one field of a request, possibly while the kernel reads it. */
static void write_field(const struct target *t, struct rng *rng, struct siw_sqe *sqe)
{
	struct siw_sge *sge = &sqe->sge[rng_below(rng, SIW_MAX_SGE)];

	switch (rng_below(rng, 7)) {
	case 0:
		sge->length = some_length(rng);
		break;
	case 1:
		sge->laddr = some_addr(t, rng);
		break;
	case 2:
		sge->lkey = some_key(t, rng);
		break;
	case 3:
		sqe->num_sge = some_count(rng);
		break;
	case 4:
		sqe->opcode = rng_next(rng);
		break;
	case 5:
		sqe->raddr = some_addr(t, rng);
		break;
	default:
		sqe->flags = rng_next(rng) | SIW_WQE_VALID;
	}
}

/* Writes a completion or the control word behind the last one; here both are equivalent. */
static void write_completion(struct rng *rng, uint64_t *word)
{
	*word = rng_below(rng, 2) ? rng_next(rng) : rng_below(rng, 4);
}

/* Rings have no type here, so each gets entries of all kinds. */
static void write_garbage(const struct target *t, struct rng *rng)
{
	const struct ring *ring = &t->rings[rng_below(rng, t->count)];
	size_t entries = ring->bytes / sizeof(struct siw_sqe);
	struct siw_sqe *sqe = (struct siw_sqe *)ring->at + rng_below(rng, entries);

	switch (t->kind) {
	case NOISE:
		((uint64_t *)ring->at)[rng_below(rng, ring->bytes / 8)] = rng_next(rng);
		break;
	case REQUESTS:
		write_request(t, rng, sqe);
		break;
	case FIELDS:
		write_field(t, rng, sqe);
		break;
	default:
		write_completion(rng, (uint64_t *)ring->at + rng_below(rng, ring->bytes / 8));
	}
}

static void *run_writer(void *argument)
{
	struct writer *w = argument;

	while (!w->target->stop)
		write_garbage(w->target, &w->rng);
	return NULL;
}

static void larder_open(struct larder *l, struct end *end, struct rng *rng)
{
	region_make(&l->bait, rng, BYTES, 100);
	region_make(&l->readable, rng, BYTES, 200);
	region_make(&l->elsewhere, rng, BYTES, 300);
	l->other_pd = ibv_alloc_pd(end->ctx);
	if (!l->other_pd)
		tap_bail("ibv_alloc_pd");
	region_register(&l->bait, end->pd, ALL);
	region_register(&l->readable, end->pd, IBV_ACCESS_REMOTE_READ);
	region_register(&l->elsewhere, l->other_pd, ALL);
}

static void target_add(struct target *t, const struct region *region)
{
	t->keys[t->places] = region->mr->rkey;
	t->addrs[t->places++] = (uintptr_t)region->bytes;
}

static bool larder_close(struct larder *l)
{
	bool all = region_intact(&l->readable, "what is only to be read") &
		   region_intact(&l->elsewhere, "another protection domain's");

	/* The bait may have any value, but its surroundings must not change. */
	memcpy(region_wanted(&l->bait, l->bait.bytes), l->bait.bytes, l->bait.length);
	all &= region_intact(&l->bait, "bait");
	region_free(&l->bait);
	region_free(&l->readable);
	region_free(&l->elsewhere);
	return all & !ibv_dealloc_pd(l->other_pd);
}

/* Uses an end once. Its QP may be in any state. */
static void use(struct end *end, struct rng *rng)
{
	static const enum ibv_qp_state states[] = { IBV_QPS_ERR, IBV_QPS_SQD, IBV_QPS_RESET, IBV_QPS_RTS };
	struct ibv_qp_attr attr;
	int error;

	switch (rng_below(rng, 16)) {
	case 0:
		(void)ibv_req_notify_cq(rng_below(rng, 2) ? end->scq : end->rcq, rng_below(rng, 2));
		break;
	case 1:
		tap_check(qp_state(end->qp) != IBV_QPS_UNKNOWN, "the QP cannot be queried");
		break;
	case 2:
		if (rng_below(rng, 6))
			break;
		attr.qp_state = states[rng_below(rng, 4)];
		(void)ibv_modify_qp(end->qp, &attr, IBV_QP_STATE);
		break;
	default:
		error = ring_doorbell(end->qp);
		tap_check(!error || error == ENOTCONN, "doorbell: %s", strerror(error));
	}
}

/* Pipe on which a child reports that it has begun. */
static int begun = -1;

/* Writes to the rings from other threads during `steps` uses of the ends. */
static void molest(struct target *target, struct end *a, struct end *b, int steps, struct rng *rng)
{
	struct writer writers[WRITERS];
	int i;

	target->stop = false;
	for (i = 0; i < WRITERS; i++) {
		writers[i].target = target;
		writers[i].rng.state = rng_next(rng);
		if (pthread_create(&writers[i].thread, NULL, run_writer, &writers[i]))
			tap_bail("pthread_create");
	}
	if (begun >= 0 && write(begun, "", 1) != 1)
		tap_bail("pipe");
	for (i = 0; i < steps; i++) {
		use(rng_below(rng, 2) ? a : b, rng);
		sched_yield();
	}
	target->stop = true;
	for (i = 0; i < WRITERS; i++)
		pthread_join(writers[i].thread, NULL);
}

static void run_round(const struct pair_opts *opts, enum kind kind, int steps, struct rng *rng)
{
	struct target target = { .kind = kind };
	struct ring before[RINGS_MAX];
	struct larder larders[2];
	struct pair pair;
	int count = rings_find(before);

	pair_open(&pair, opts);
	larder_open(&larders[0], &pair.active, rng);
	larder_open(&larders[1], &pair.passive, rng);
	for (int i = 0; i < 2; i++) {
		target_add(&target, &larders[i].bait);
		target_add(&target, &larders[i].readable);
		target_add(&target, &larders[i].elsewhere);
	}
	target.count = rings_find_new(before, count, target.rings);
	tap_check(target.count == 8, "%d rings, wanted 8: of each end two CQs and two queues",
		  target.count);
	molest(&target, &pair.active, &pair.passive, steps, rng);
	tap_check(larder_close(&larders[0]) & larder_close(&larders[1]), "memory was changed");
	tap_check(pair_close(&pair), "not everything can be destroyed");
}

/* A QP that is not connected reports so, and ignores the contents of its ring. */
static void unconnected(struct ibv_context *ctx, struct rng *rng)
{
	struct ibv_qp_init_attr init = {
		.cap = { .max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct target target = { .kind = REQUESTS, .places = 1 };
	struct ring before[RINGS_MAX];
	int count = rings_find(before), error, i;
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_qp *qp;
	struct ibv_cq *cq;

	cq = ibv_create_cq(ctx, 64, NULL, NULL, 0);
	init.send_cq = init.recv_cq = cq;
	qp = ibv_create_qp(pd, &init);
	if (!qp)
		tap_bail("ibv_create_qp");
	target.count = rings_find_new(before, count, target.rings);
	for (i = 0; i < 500; i++) {
		for (int j = 0; j < 20; j++)
			write_garbage(&target, rng);
		error = ring_doorbell(qp);
		tap_check(error == ENOTCONN, "doorbell: %s", strerror(error));
	}
	tap_check(qp_state(qp) == IBV_QPS_INIT, "state %d", qp_state(qp));
	tap_check(qp_to_error(qp), "to ERROR: %m");
	for (i = 0; i < 100; i++) {
		write_garbage(&target, rng);
		error = ring_doorbell(qp);
		tap_check(!error, "doorbell in ERROR: %s", strerror(error));
	}
	tap_check(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq) && !ibv_dealloc_pd(pd), "destroy: %m");
	tap_point("rings of a QP that is not connected");
}

/*
 * Returns the ring of the CQ whose first completion is of work request `wr_id`. The request itself looks
 * like it while it waits in its ring, but for its flag that it is to be signaled.
 */
static struct ring find_cq(uint64_t wr_id)
{
	int64_t end = now_ms() + PATIENCE;
	struct ring rings[RINGS_MAX];
	int count = rings_find(rings);

	while (now_ms() < end) {
		for (int i = 0; i < count; i++) {
			const struct siw_cqe *cqe = (struct siw_cqe *)rings[i].at;

			if (__atomic_load_n(&cqe->flags, __ATOMIC_ACQUIRE) == SIW_WQE_VALID &&
			    cqe->id == wr_id)
				return rings[i];
		}
	}
	tap_bail("no completion in any ring");
}

/* A process that marks its CQ as full gets no completion, but the overflow event. */
static void full_cq(const struct pair_opts *opts)
{
	struct ibv_sge none = {};
	struct siw_cqe *cqes;
	struct pair pair;
	struct ring ring;
	size_t i;

	pair_open(&pair, opts);
	async_drain(pair.active.ctx);
	/* Empty messages need no memory, but the user library does not support empty receives. */
	for (i = 0; i < 2; i++)
		tap_check(!post_recv(pair.passive.qp, i, &none, 1), "post a receive");
	tap_check(!post_send(pair.active.qp, 0x5eed, IBV_WR_SEND, NULL, 0, IBV_SEND_SIGNALED, 0), "post");
	ring = find_cq(0x5eed);
	cqes = (struct siw_cqe *)ring.at;
	for (i = 0; i < ring.bytes / sizeof(*cqes); i++)
		cqes[i].flags = SIW_WQE_VALID;
	tap_check(!post_send(pair.active.qp, 2, IBV_WR_SEND, NULL, 0, IBV_SEND_SIGNALED, 0), "post");
	tap_check(async_event_within(pair.active.ctx, IBV_EVENT_CQ_ERR, pair.active.scq, PATIENCE),
		  "no event");
	tap_check(qp_reaches(pair.active.qp, IBV_QPS_ERR, PATIENCE), "the QP goes on");
	tap_check(pair_close(&pair), "not everything can be destroyed");
	tap_point("a CQ that says it is full: its overflow is told, and its QP ends");
}

/* Commands with handles of destroyed or wrong objects. */
static void wrong_handles(const struct pair_opts *opts)
{
	struct pair pair;
	struct ibv_qp gone;
	int error;

	pair_open(&pair, opts);
	gone = *pair.active.qp;
	gone.handle = pair.active.scq->handle;
	error = ring_doorbell(&gone);
	tap_check(error == EINVAL, "doorbell of a CQ: %s", strerror(error));
	gone.handle = pair.active.qp->handle;
	rdma_destroy_qp(pair.active.id);
	pair.active.qp = NULL;
	error = ring_doorbell(&gone);
	tap_check(error == ENOENT, "doorbell of a QP that is gone: %s", strerror(error));
	tap_check(pair_close(&pair), "not everything can be destroyed");
	tap_point("doorbells of what is no QP, or gone");
}

/* A process that is killed meanwhile. */
static void killed(const struct pair_opts *opts, int rounds, struct rng *rng)
{
	int i, status;

	for (i = 0; i < rounds; i++) {
		int pipes[2];
		pid_t pid;
		char c;

		if (pipe(pipes) || (pid = fork()) < 0)
			tap_bail("fork");
		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			rng->state += i + 1;
			begun = pipes[1];
			run_round(opts, i % KINDS, INT_MAX, rng);
			_exit(0);
		}
		close(pipes[1]);
		tap_check(read(pipes[0], &c, 1) == 1, "the child has failed");
		sleep_ms(rng_below(rng, 100));
		kill(pid, SIGKILL);
		tap_check(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status), "status %#x", status);
		close(pipes[0]);
	}
	tap_point("killed %d times while it does so", rounds);
}

int main(int argc, char **argv)
{
	struct pair_opts opts = { .sq = 64, .rq = 40, .inline_data = 64, .notify = true };
	struct options options = options_parse(argc, argv, 20);
	struct rng rng = options.rng;
	int rounds = options.rounds;
	struct pair pair;

	opts.active = options.active;
	opts.passive = options.passive;

	/* The children open the device themselves, so they run before this process opens it. */
	killed(&opts, rounds / 2, &rng);
	pair_open(&pair, &opts);
	unconnected(pair.active.ctx, &rng);
	if (!pair_close(&pair))
		tap_bail("pair_close");
	full_cq(&opts);
	wrong_handles(&opts);
	for (enum kind kind = 0; kind < KINDS; kind++) {
		for (int i = 0; i < rounds; i++) {
			opts.srq = i % 3 ? 0 : 100;
			run_round(&opts, kind, STEPS, &rng);
		}
		tap_point("%d pairs of QPs with %s", rounds, kind_names[kind]);
	}
	return tap_done();
}
