// SPDX-License-Identifier: GPL-2.0
/*
 * Sends messages on a fresh connection, both ends in this process, and prints the nanoseconds that a
 * message took. On a machine whose clock counts instructions, that is what a message costs both ends,
 * with this program.
 *
 *     message_cost OPERATION SIZE BATCH COUNT ACTIVE PASSIVE
 *
 * OPERATION is send, solicited (a send), write or read. BATCH messages are posted one by one, and then awaited by polling: with
 * 1, that is the time from the post to the last completion. A write has arrived when its last byte has.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/access.h"
#include "common/clock.h"
#include "common/post.h"
#include "common/random.h"
#include "common/setup.h"
#include "common/tap.h"

#define BATCH_MAX 256
/* Messages before the measurement, so that the caches of the kernel are warm. */
#define WARM_UP 64

static struct setup s;
static enum ibv_wr_opcode opcode;
static unsigned int flags = IBV_SEND_SIGNALED;
static uint32_t batch;

/* Lets the kernel's threads run, as the machine has one CPU. */
static void pause_until(int64_t deadline)
{
	if (now_ms() > deadline)
		tap_bail("a message has not arrived");
	sched_yield();
}

static void poll_all(struct ibv_cq *cq)
{
	int64_t deadline = now_ms() + PATIENCE;
	struct ibv_wc wc[16];
	uint32_t done = 0;

	while (done < batch) {
		int n = ibv_poll_cq(cq, 16, wc);

		if (n < 0)
			tap_bail("ibv_poll_cq");
		for (int i = 0; i < n; i++)
			if (wc[i].status != IBV_WC_SUCCESS)
				tap_bail("%s", ibv_wc_status_str(wc[i].status));
		done += n;
		if (!n)
			pause_until(deadline);
	}
}

static void await_byte(const volatile uint8_t *at, uint8_t value)
{
	int64_t deadline = now_ms() + PATIENCE;

	while (*at != value)
		pause_until(deadline);
}

static void run_batch(uint8_t mark)
{
	struct end *active = &s.pair.active, *passive = &s.pair.passive;
	struct ibv_sge from = region_sge(&s.local, 0, s.local.length);
	struct ibv_sge to = region_sge(&s.remote, 0, s.remote.length);

	s.local.bytes[s.local.length - 1] = mark;
	for (uint32_t i = 0; i < batch; i++) {
		int error;

		if (opcode == IBV_WR_SEND) {
			if (post_recv(passive->qp, i, &to, 1))
				tap_bail("ibv_post_recv");
			error = post_send(active->qp, i, opcode, &from, 1, flags, 0);
		} else {
			error = post_rdma(active->qp, i, opcode, &from, 1, flags,
					  (uintptr_t)s.remote.bytes, s.remote.mr->rkey);
		}
		if (error)
			tap_bail("ibv_post_send: %s", strerror(error));
	}
	poll_all(active->scq);
	if (opcode == IBV_WR_SEND)
		poll_all(passive->rcq);
	if (opcode == IBV_WR_RDMA_WRITE)
		await_byte(s.remote.bytes + s.remote.length - 1, mark);
}

/* Sends at least `count` messages, in batches. */
static void run(uint32_t count)
{
	static uint8_t mark;

	for (uint32_t done = 0; done < count; done += batch)
		run_batch(++mark);
}

static bool parse_operation(const char *name)
{
	static const struct {
		const char *name;
		enum ibv_wr_opcode opcode;
		unsigned int flags;
	} known[] = {
		{ "send", IBV_WR_SEND, 0 }, { "solicited", IBV_WR_SEND, IBV_SEND_SOLICITED },
		{ "write", IBV_WR_RDMA_WRITE, 0 }, { "read", IBV_WR_RDMA_READ, 0 },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		if (!strcmp(name, known[i].name)) {
			opcode = known[i].opcode;
			flags |= known[i].flags;
			return true;
		}
	}
	return false;
}

int main(int argc, char **argv)
{
	struct pair_opts opts = { .rq = BATCH_MAX, .send_sge = 1, .recv_sge = 1 };
	struct regions regions = { .local = ALL, .remote = ALL };
	struct rng rng = { .state = 1 };
	int64_t begin;
	uint32_t count;

	if (argc != 7 || !parse_operation(argv[1]))
		return 2;
	regions.length = strtoul(argv[2], NULL, 0);
	batch = strtoul(argv[3], NULL, 0);
	count = strtoul(argv[4], NULL, 0);
	if (!regions.length || !batch || batch > BATCH_MAX || !count || count % batch)
		return 2;
	/* The batch fills the queue. */
	opts.sq = batch;
	opts.active = side_parse(argv[5]);
	opts.passive = side_parse(argv[6]);
	setup_open(&s, &opts, &rng, &regions);
	run(WARM_UP);
	begin = now_ns();
	run(count);
	printf("%.1f\n", (double)(now_ns() - begin) / count);
	setup_close(&s);
	return 0;
}
