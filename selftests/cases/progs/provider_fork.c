// SPDX-License-Identifier: GPL-2.0
/*
 * A process with connected queue pairs forks. Which memory the device uses then decides the outcome: that of
 * the parent, whatever parent and child write to their copies.
 *
 *     provider_fork ACTIVE PASSIVE
 */
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/access.h"
#include "common/clock.h"
#include "common/completion.h"
#include "common/post.h"
#include "common/random.h"
#include "common/setup.h"
#include "common/tap.h"

#define LENGTH 16384
#define ROUNDS 40
/* Values of all bytes of a region. */
#define BEFORE 1
#define BY_CHILD 2
#define BY_PARENT 3

static struct rng rng = { .state = 1 };
static struct pair_opts sides;

/* A child, and the ends of two pipes that are the parent's. */
struct child {
	pid_t pid;
	int tell, told;
};

static void begin(struct setup *s)
{
	const struct regions regions = { .length = LENGTH, .local = ALL, .remote = ALL };
	struct pair_opts opts = sides;

	setup_open(s, &opts, &rng, &regions);
}

static bool all_are(const struct region *region, uint8_t value)
{
	for (size_t i = 0; i < region->length; i++)
		if (region->bytes[i] != value)
			return tap_check(false, "byte %zu is %d, not %d", i, region->bytes[i], value);
	return true;
}

/* Gives the region this value, and the guards stay. */
static void fill(struct region *region, uint8_t value)
{
	memset(region->bytes, value, region->length);
	memset(region_wanted(region, region->bytes), value, region->length);
}

/* Forks. Returns in the parent, and in the child with the other ends of the pipes and no `pid`. */
static struct child split(void)
{
	int down[2], up[2];
	struct child child;

	if (pipe(down) || pipe(up))
		tap_bail("pipe");
	child.pid = fork();
	if (child.pid < 0)
		tap_bail("fork");
	child.tell = child.pid ? down[1] : up[1];
	child.told = child.pid ? up[0] : down[0];
	close(child.pid ? down[0] : up[0]);
	close(child.pid ? up[1] : down[1]);
	return child;
}

static void tell(const struct child *child)
{
	if (write(child->tell, "", 1) != 1)
		tap_bail("write");
}

/* Waits for the other side. Returns false if it has ended instead. */
static bool told(const struct child *child)
{
	char byte;

	return readable_within(child->told, PATIENCE) && read(child->told, &byte, 1) == 1;
}

/* Waits for the child, and checks that it has found nothing wrong. */
static void join(struct child *child)
{
	int status;

	close(child->tell);
	close(child->told);
	tap_check(waitpid(child->pid, &status, 0) == child->pid && WIFEXITED(status) && !WEXITSTATUS(status),
		  "the child ends with %#x", status);
}

/* Ends a child. It writes no TAP: the parent reports what it says here. */
static void leave(bool right)
{
	_exit(right ? 0 : 1);
}

/* The active end sends, writes and reads; both regions have BY_PARENT afterwards. */
static void exchange(struct setup *s)
{
	struct ibv_sge from = region_sge(&s->local, 0, LENGTH), to = region_sge(&s->remote, 0, LENGTH);
	const enum ibv_wr_opcode opcodes[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ };

	fill(&s->local, BY_PARENT);
	tap_check(!post_recv(s->pair.passive.qp, 7, &to, 1), "ibv_post_recv");
	tap_check(!post_send(s->pair.active.qp, 8, IBV_WR_SEND, &from, 1, IBV_SEND_SIGNALED, 0),
		  "ibv_post_send");
	cq_expect(s->pair.active.scq, 8, IBV_WC_SUCCESS, NULL);
	cq_expect(s->pair.passive.rcq, 7, IBV_WC_SUCCESS, NULL);
	memset(region_wanted(&s->remote, s->remote.bytes), BY_PARENT, LENGTH);
	region_intact(&s->remote, "the receive");

	for (unsigned int i = 0; i < 2; i++) {
		struct region *source = i ? &s->remote : &s->local, *sink = i ? &s->local : &s->remote;
		uint8_t value = BY_PARENT + 1 + i;
		enum ibv_wc_status status;

		fill(source, value);
		status = setup_reach(s, opcodes[i], (uintptr_t)s->remote.bytes, LENGTH, s->remote.mr->rkey);
		tap_check(status == IBV_WC_SUCCESS, "%s", ibv_wc_status_str(status));
		/* A Write completes before it is placed: a READ behind it does not. */
		if (!i)
			setup_reach(s, IBV_WR_RDMA_READ, (uintptr_t)s->remote.bytes, LENGTH,
				    s->remote.mr->rkey);
		memset(region_wanted(sink, sink->bytes), value, LENGTH);
		region_intact(sink, i ? "the sink of the READ" : "the sink of the WRITE");
	}
	fill(&s->local, BY_PARENT);
	fill(&s->remote, BY_PARENT);
}

static void announced(void)
{
	enum ibv_fork_status status = ibv_is_fork_initialized();

	tap_check(status == IBV_FORK_UNNEEDED, "status %d", status);
	tap_check(!ibv_fork_init(), "ibv_fork_init");
	tap_point("libibverbs protects no memory, because the kernel copies what is pinned");
}

/* The child has its own copies. */
static void copies(bool child_first)
{
	struct child child;
	struct setup s;

	begin(&s);
	fill(&s.local, BEFORE);
	fill(&s.remote, BEFORE);
	child = split();
	if (!child.pid) {
		bool right;

		if (child_first) {
			memset(s.local.bytes, BY_CHILD, LENGTH);
			memset(s.remote.bytes, BY_CHILD, LENGTH);
		}
		tell(&child);
		right = told(&child) && all_are(&s.local, child_first ? BY_CHILD : BEFORE) &&
			all_are(&s.remote, child_first ? BY_CHILD : BEFORE);
		memset(s.local.bytes, BY_CHILD, LENGTH);
		memset(s.remote.bytes, BY_CHILD, LENGTH);
		tell(&child);
		right &= told(&child) && all_are(&s.local, BY_CHILD) && all_are(&s.remote, BY_CHILD);
		leave(right);
	}
	tap_check(told(&child), "the child begins");
	region_intact(&s.local, "the parent's memory");
	region_intact(&s.remote, "the parent's memory");
	exchange(&s);
	tell(&child);
	tap_check(told(&child), "the child has seen other bytes than its own");
	region_intact(&s.local, "the parent's memory");
	region_intact(&s.remote, "the parent's memory");
	exchange(&s);
	tell(&child);
	join(&child);
	exchange(&s);
	setup_close(&s);
	tap_point("the device uses the parent's memory; the child has copies%s",
		  child_first ? ", and writes to them first" : "");
}

/* How the children of `ends` end. */
static void end_as(int way)
{
	switch (way) {
	case 0:
		exit(0);
	case 1:
		_exit(0);
	case 2:
		execl("/bin/true", "true", NULL);
		_exit(1);
	default:
		for (;;)
			pause();
	}
}

static void ends(void)
{
	pid_t pids[ROUNDS];
	struct setup s;

	begin(&s);
	for (int i = 0; i < ROUNDS; i++) {
		pids[i] = fork();
		if (pids[i] < 0)
			tap_bail("fork");
		if (!pids[i])
			end_as(i % 4);
		/* The child may end during this, or has not begun. */
		exchange(&s);
	}
	for (int i = 0; i < ROUNDS; i++) {
		int status;

		if (i % 4 == 3)
			kill(pids[i], SIGKILL);
		tap_check(waitpid(pids[i], &status, 0) == pids[i] && status == (i % 4 == 3 ? SIGKILL : 0),
			  "child %d ends with %#x", i, status);
		exchange(&s);
	}
	setup_close(&s);
	tap_point("children exit, call another program, or are killed: the parent's queue pairs go on");
}

/* A process ends, and its child has its files. Whoever ends last frees the objects. */
static void orphans(void)
{
	struct child middle = split();

	if (!middle.pid) {
		struct child child;
		struct setup s;

		begin(&s);
		exchange(&s);
		if (tap_failing())
			leave(false);
		child = split();
		/* The child has the pipes of `middle`, too. */
		if (child.pid)
			leave(told(&child));
		tell(&child);
		/* The memory of its parent is gone, and the regions in it stay until this ends. */
		leave(told(&middle) && s.remote.bytes[0] == BY_PARENT);
	}
	tap_check(waitpid(middle.pid, NULL, 0) == middle.pid, "waitpid");
	sleep_ms(SILENCE);
	tell(&middle);
	/* The child has the only other end. */
	tap_check(!told(&middle), "the child says something");
	close(middle.tell);
	close(middle.told);
	tap_point("a child that has the files of its parent outlives it");
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	sides.active = side_parse(argv[1]);
	sides.passive = side_parse(argv[2]);

	announced();
	copies(false);
	copies(true);
	ends();
	orphans();
	return tap_done();
}
