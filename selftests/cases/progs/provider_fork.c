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

static bool both_are(const struct setup *s, uint8_t value)
{
	for (size_t i = 0; i < LENGTH; i++)
		if (s->local.bytes[i] != value || s->remote.bytes[i] != value)
			return false;
	return true;
}

/* Gives the region this value, and the guards stay. */
static void fill(struct region *region, uint8_t value)
{
	memset(region->bytes, value, region->length);
	memset(region_wanted(region, region->bytes), value, region->length);
}

static void fill_both(struct setup *s, uint8_t value)
{
	fill(&s->local, value);
	fill(&s->remote, value);
}

static void both_intact(const struct setup *s)
{
	region_intact(&s->local, "the parent's memory");
	region_intact(&s->remote, "the parent's memory");
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

/* Waits for a child, and checks the status with which it ends. */
static void ends_with(pid_t pid, int wanted)
{
	int status = -1;
	pid_t ended = waitpid(pid, &status, 0);

	tap_check(ended == pid && status == wanted, "the child ends with %#x, not %#x", status, wanted);
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
	fill_both(s, BY_PARENT);
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
	fill_both(&s, BEFORE);
	child = split();
	if (!child.pid) {
		bool right;

		if (child_first)
			fill_both(&s, BY_CHILD);
		tell(&child);
		right = told(&child) && both_are(&s, child_first ? BY_CHILD : BEFORE);
		fill_both(&s, BY_CHILD);
		tell(&child);
		right &= told(&child) && both_are(&s, BY_CHILD);
		leave(right);
	}
	tap_check(told(&child), "the child does not begin");
	both_intact(&s);
	exchange(&s);
	tell(&child);
	tap_check(told(&child), "the child ends before it has written");
	both_intact(&s);
	exchange(&s);
	tell(&child);
	ends_with(child.pid, 0);
	close(child.tell);
	close(child.told);
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
		if (i % 4 == 3)
			kill(pids[i], SIGKILL);
		ends_with(pids[i], i % 4 == 3 ? SIGKILL : 0);
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
		if (told(&middle) && both_are(&s, BY_PARENT))
			tell(&middle);
		leave(true);
	}
	ends_with(middle.pid, 0);
	sleep_ms(SILENCE);
	tell(&middle);
	/* The child of `middle` has the only other ends. */
	tap_check(told(&middle), "it has other bytes than its parent had");
	tap_check(!told(&middle), "it has not ended");
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
