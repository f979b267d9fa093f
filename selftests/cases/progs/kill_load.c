// SPDX-License-Identifier: GPL-2.0
/*
 * kill -9 of either end of a busy connection, again and again.
 *
 *     kill_load [-n ROUNDS] [-r SEED] ACTIVE PASSIVE
 *
 * Each round forks a passive and an active process, which open a few QPs and keep them busy with
 * SEND, WRITE and READ in both directions, and if the device offers them with atomic operations and
 * immediate data. One of them, or both, is killed after a random time,
 * between connection setup and full traffic. The survivor must notice (its QPs go to ERROR, its
 * posted requests are flushed) and end by itself.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/access.h"
#include "common/clock.h"
#include "common/listen.h"
#include "common/options.h"
#include "common/pair.h"
#include "common/post.h"
#include "common/random.h"
#include "common/tap.h"

#define QPS 2
#define DEPTH 8
#define MESSAGE 16384
/* Milliseconds in which a child must end by itself. */
#define LIFE 60000
#define MANY 20		/* rounds */

/* Describes a peer's memory, as private data. */
struct invitation {
	uint64_t addr;
	uint32_t rkey;
	uint32_t extended;		/* takes immediate data */
} __attribute__((packed));

struct busy {
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *memory;
	struct invitation theirs;
	unsigned int turn;
	bool extended;			/* has atomic operations and immediate data */
};

/* Shared with the children. */
static struct shared {
	volatile int moved;		/* messages of this round */
	volatile int extended;		/* atomic operations and immediate data, of all rounds */
	volatile bool offered;		/* by a device */
	volatile bool killed;		/* a process of this round is being killed */
	volatile bool active_dead;	/* no further connection will come */
} *shared;

/* Exit statuses of a child. */
enum { NOTICED = 0, STUCK = 3, BROKEN = 4 };

static void give_up(int status, const char *why)
{
	fprintf(stderr, "%d: %s: %m\n", getpid(), why);
	_exit(status);
}

/* Ends the process: its peer has gone. Without a kill, the connection has ended by itself. */
static void notice(const char *what)
{
	if (!shared->killed)
		give_up(BROKEN, what);
	_exit(NOTICED);
}

static void busy_prepare(struct busy *b, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .sq_sig_all = 1 };
	struct ibv_device_attr attr;
	struct ibv_sge sge;

	b->id = id;
	if (ibv_query_device(id->verbs, &attr))
		give_up(BROKEN, "ibv_query_device");
	b->extended = attr.atomic_cap != IBV_ATOMIC_NONE;
	shared->offered |= b->extended;
	b->memory = aligned_alloc(4096, 2 * DEPTH * MESSAGE);
	b->pd = ibv_alloc_pd(id->verbs);
	b->cq = ibv_create_cq(id->verbs, 8 * DEPTH, NULL, NULL, 0);
	if (!b->memory || !b->pd || !b->cq)
		give_up(BROKEN, "resources");
	memset(b->memory, 1, 2 * DEPTH * MESSAGE);
	b->mr = ibv_reg_mr(b->pd, b->memory, 2 * DEPTH * MESSAGE,
			   ALL | IBV_ACCESS_REMOTE_ATOMIC);
	init.send_cq = init.recv_cq = b->cq;
	init.cap.max_send_wr = 4 * DEPTH;
	init.cap.max_recv_wr = DEPTH;
	init.cap.max_send_sge = init.cap.max_recv_sge = 1;
	if (!b->mr || rdma_create_qp(id, b->pd, &init))
		give_up(BROKEN, "QP");
	for (int i = 0; i < DEPTH; i++) {
		sge = (struct ibv_sge){ (uintptr_t)b->memory + i * MESSAGE, MESSAGE, b->mr->lkey };
		if (post_recv(id->qp, i, &sge, 1))
			give_up(BROKEN, "receive");
	}
}

static void push(struct busy *b, enum ibv_wr_opcode opcode)
{
	unsigned int slot = DEPTH + b->turn++ % DEPTH;
	struct ibv_sge sge = { (uintptr_t)b->memory + slot * MESSAGE, MESSAGE, b->mr->lkey };
	uint64_t to = b->theirs.addr + slot * MESSAGE;

	/* Fails only if the connection is already gone; the CQ reports that. */
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP)
		(void)post_atomic(b->id->qp, 1000 + opcode, opcode, &sge, to, b->theirs.rkey, 1, 2);
	else
		(void)post_rdma(b->id->qp, 1000 + opcode, opcode, &sge, 1, 0, to, b->theirs.rkey);
}

/* Sends what takes a receive. Each receive is answered, so there are never more in flight than posted. */
static void push_message(struct busy *b)
{
	push(b, b->extended && b->theirs.extended && b->turn & 1 ? IBV_WR_RDMA_WRITE_WITH_IMM
								 : IBV_WR_SEND);
}

/* Returns the operation that follows `opcode` among those that take no receive. */
static enum ibv_wr_opcode next_operation(const struct busy *b, enum ibv_wr_opcode opcode)
{
	switch (opcode) {
	case IBV_WR_RDMA_WRITE:
		return IBV_WR_RDMA_READ;
	case IBV_WR_RDMA_READ:
		return b->extended ? IBV_WR_ATOMIC_FETCH_AND_ADD : IBV_WR_RDMA_WRITE;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return IBV_WR_ATOMIC_CMP_AND_SWP;
	default:
		return IBV_WR_RDMA_WRITE;
	}
}

static void busy_start(struct busy *b)
{
	for (int i = 0; i < DEPTH / 2; i++)
		push_message(b);
	push(b, IBV_WR_RDMA_WRITE);
	push(b, IBV_WR_RDMA_READ);
}

/* Handles one completion. Returns false if the QP has been flushed. */
static bool busy_turn(struct busy *b)
{
	struct ibv_sge sge;
	struct ibv_wc wc;

	if (ibv_poll_cq(b->cq, 1, &wc) < 1)
		return true;
	if (wc.status != IBV_WC_SUCCESS)
		return false;
	shared->moved++;
	shared->extended += wc.opcode == IBV_WC_FETCH_ADD || wc.opcode == IBV_WC_COMP_SWAP ||
			    wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM;
	if (wc.wr_id < DEPTH) {
		sge = (struct ibv_sge){ (uintptr_t)b->memory + wc.wr_id * MESSAGE, MESSAGE,
					b->mr->lkey };
		(void)post_recv(b->id->qp, wc.wr_id, &sge, 1);
		push_message(b);
	} else if (wc.wr_id != 1000 + IBV_WR_SEND && wc.wr_id != 1000 + IBV_WR_RDMA_WRITE_WITH_IMM) {
		push(b, next_operation(b, wc.wr_id - 1000));
	}
	return true;
}

/* Keeps QPs busy until one of them is flushed. Ends the process then, or at the deadline. */
static void run_busy(struct busy *b, int count, int64_t until)
{
	while (now_ms() < until) {
		for (int i = 0; i < count; i++)
			if (!busy_turn(&b[i]))
				notice("a completion");
	}
	give_up(STUCK, "the death of the peer went unnoticed");
}

static struct rdma_cm_event *next_event(struct rdma_event_channel *events, int64_t until)
{
	struct rdma_cm_event *event;

	if (!readable_within(events->fd, until - now_ms()))
		give_up(STUCK, "no CM event");
	if (rdma_get_cm_event(events, &event))
		give_up(BROKEN, "rdma_get_cm_event");
	return event;
}

static struct invitation invitation_of(const struct busy *b)
{
	return (struct invitation){ (uintptr_t)b->memory, b->mr->rkey, b->extended };
}

static void be_passive(struct rdma_cm_id *listener, int64_t until)
{
	struct rdma_conn_param param = { .responder_resources = 8, .initiator_depth = 8 };
	static struct busy busy[QPS];
	struct invitation mine;
	struct rdma_cm_event *event;
	int count = 0, up = 0;

	while (up < QPS) {
		/* With no connection pending, no event reports that none will come. */
		while (up == count && !readable_within(listener->channel->fd, 20)) {
			if (!shared->active_dead)
				continue;
			if (up)
				run_busy(busy, up, until);
			notice("no connection");
		}
		event = next_event(listener->channel, until);
		switch (event->event) {
		case RDMA_CM_EVENT_CONNECT_REQUEST:
			memcpy(&busy[count].theirs, event->param.conn.private_data, sizeof(mine));
			busy_prepare(&busy[count], event->id);
			mine = invitation_of(&busy[count]);
			param.private_data = &mine;
			param.private_data_len = sizeof(mine);
			if (rdma_accept(event->id, &param))
				notice("rdma_accept");
			count++;
			break;
		case RDMA_CM_EVENT_ESTABLISHED:
			for (int i = 0; i < count; i++)
				if (busy[i].id == event->id)
					busy_start(&busy[i]);
			up++;
			break;
		default:
			notice(rdma_event_str(event->event));
		}
		rdma_ack_cm_event(event);
	}
	run_busy(busy, QPS, until);
}

static void be_active(const struct side *from, const struct side *to, uint16_t port, int64_t until)
{
	struct rdma_conn_param param = { .responder_resources = 8, .initiator_depth = 8 };
	struct rdma_addrinfo hints = { .ai_flags = RAI_NUMERICHOST, .ai_port_space = RDMA_PS_TCP };
	struct rdma_event_channel *events;
	static struct busy busy[QPS];
	struct rdma_addrinfo *info;
	struct rdma_cm_event *event;
	struct invitation mine;
	struct rdma_cm_id *id;
	char text[8];
	int i;

	netns_enter(from->netns);
	snprintf(text, sizeof(text), "%u", port);
	events = rdma_create_event_channel();
	if (!events || rdma_getaddrinfo(to->addr, text, &hints, &info))
		give_up(BROKEN, "address");
	for (i = 0; i < QPS; i++) {
		if (rdma_create_id(events, &id, NULL, RDMA_PS_TCP) ||
		    rdma_resolve_addr(id, NULL, info->ai_dst_addr, RESOLVE_MS))
			give_up(BROKEN, "resolve");
		event = next_event(events, until);
		if (event->event == RDMA_CM_EVENT_DISCONNECTED)
			notice("an earlier QP has ended");
		if (event->event != RDMA_CM_EVENT_ADDR_RESOLVED)
			give_up(BROKEN, rdma_event_str(event->event));
		rdma_ack_cm_event(event);
		if (rdma_resolve_route(id, RESOLVE_MS))
			give_up(BROKEN, "route");
		rdma_ack_cm_event(next_event(events, until));
		busy_prepare(&busy[i], id);
		mine = invitation_of(&busy[i]);
		param.private_data = &mine;
		param.private_data_len = sizeof(mine);
		if (rdma_connect(id, &param))
			notice("rdma_connect");
		event = next_event(events, until);
		if (event->event != RDMA_CM_EVENT_ESTABLISHED)
			notice(rdma_event_str(event->event));
		memcpy(&busy[i].theirs, event->param.conn.private_data, sizeof(mine));
		rdma_ack_cm_event(event);
		busy_start(&busy[i]);
	}
	run_busy(busy, QPS, until);
}

static pid_t spawn(void)
{
	pid_t pid = fork();

	if (pid < 0)
		tap_bail("fork");
	if (!pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

/*
 * Waits for a child. Returns its status, or -1 if it had to be killed. Only a victim may end by a
 * signal, and only by SIGKILL.
 */
static int reap(pid_t pid, bool victim, int ms)
{
	int64_t until = now_ms() + ms;
	int status;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (now_ms() > until) {
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
			return -1;
		}
		sleep_ms(1);
	}
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	return victim && WTERMSIG(status) == SIGKILL ? NOTICED : BROKEN;
}

/* The passive process: listens, reports its port through a pipe, and serves. */
static pid_t spawn_passive(const struct side *side, int64_t until, uint16_t *port)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_NUMERICHOST | RAI_PASSIVE,
				       .ai_port_space = RDMA_PS_TCP };
	struct rdma_event_channel *events;
	struct rdma_addrinfo *info;
	struct rdma_cm_id *id;
	int pipes[2];
	pid_t pid;

	if (pipe(pipes))
		tap_bail("pipe");
	pid = spawn();
	if (pid) {
		close(pipes[1]);
		if (read(pipes[0], port, sizeof(*port)) != sizeof(*port))
			tap_bail("the passive process does not listen");
		close(pipes[0]);
		return pid;
	}
	netns_enter(side->netns);
	events = rdma_create_event_channel();
	if (!events || rdma_getaddrinfo(side->addr, NULL, &hints, &info))
		give_up(BROKEN, "an address");
	id = listen_anywhere(events, info->ai_src_addr, 8);
	if (!id)
		give_up(BROKEN, "listen");
	*port = be16toh(rdma_get_src_port(id));
	if (write(pipes[1], port, sizeof(*port)) != sizeof(*port))
		give_up(BROKEN, "pipe");
	be_passive(id, until);
	return 0;
}

int main(int argc, char **argv)
{
	struct options options = options_parse(argc, argv, 200);
	int rounds = options.rounds, round, meant = 0, under_load = 0, stuck = 0, broken = 0, status;
	struct side active = options.active, passive = options.passive;
	struct rng rng = options.rng;

	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		tap_bail("mmap");

	for (round = 0; round < rounds; round++) {
		int64_t until = now_ms() + LIFE, begin;
		int victims = 1 + rng_below(&rng, 16) % 3, delay = rng_below(&rng, 30);
		bool early = rng_below(&rng, 8) == 0;
		uint16_t port;
		pid_t pid[2];

		shared->moved = 0;
		shared->killed = false;
		shared->active_dead = false;
		pid[1] = spawn_passive(&passive, until, &port);
		pid[0] = spawn();
		if (!pid[0])
			be_active(&active, &passive, port, until);
		/* Most are killed under load, some at any time before. */
		begin = now_ms();
		while (!early && shared->moved < 20 && now_ms() < begin + LIFE / 2)
			sleep_ms(1);
		meant += !early;
		under_load += !early && shared->moved >= 20;
		sleep_ms(delay);
		shared->killed = true;
		for (int i = 0; i < 2; i++)
			if (victims & (1 << i))
				kill(pid[i], SIGKILL);
		shared->active_dead = victims & 1;
		for (int i = 0; i < 2; i++) {
			status = reap(pid[i], victims & (1 << i), LIFE);
			if (status == STUCK || status == -1)
				stuck++;
			else if (status != NOTICED)
				broken++;
		}
		if (round % 50 == 49)
			tap_note("%d rounds, %d of them killed under load", round + 1, under_load);
	}
	tap_ok(under_load == meant, "%d of %d rounds came under load, as %d were meant to",
	       under_load, rounds, meant);
	tap_ok(!stuck, "whoever is left notices the death of the other and ends (%d did not)", stuck);
	tap_ok(!broken, "no process met an unexpected error (%d did)", broken);
	/* In a few rounds there may be none. */
	if (shared->offered && rounds >= MANY)
		tap_ok(shared->extended > rounds, "atomic operations and immediate data were among them (%d)",
		       shared->extended);
	return tap_done();
}
