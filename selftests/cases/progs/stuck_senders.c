// SPDX-License-Identifier: GPL-2.0
/*
 * Stops threads in the middle of a transmit pass and then ends their connections, for cases that
 * check the progress of other connections. No other task may run on CPU 1.
 *
 *     stuck_senders ACTIVE PASSIVE
 *
 * The active ends' threads run on CPU 1 and post one large WRITE after the other. When all are
 * posting, a real-time thread takes that CPU, and the passive ends go to ERROR. If no sender
 * makes progress then, the program writes "stuck", and releases the CPU when its stdin ends.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/access.h"
#include "common/clock.h"
#include "common/completion.h"
#include "common/pair.h"
#include "common/post.h"
#include "common/tap.h"

#define PAIRS 8
#define LENGTH (1U << 20)
#define WARM_UP 50		/* WRITEs of each */

struct sender {
	struct pair pair;
	struct ibv_mr *from, *to;
	pthread_t thread;
	_Atomic unsigned int done;
	atomic_bool ended;
};

static struct sender senders[PAIRS];
static uint8_t memory[2][LENGTH] __attribute__((aligned(4096)));
static atomic_bool stop;

static void on_cpu(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		tap_bail("sched_setaffinity: %m");
}

static void *send_steadily(void *argument)
{
	struct sender *s = argument;
	struct ibv_sge sge = { (uintptr_t)memory[0], LENGTH, s->from->lkey };
	struct ibv_wc wc;

	on_cpu(1);
	while (!stop && !post_rdma(s->pair.active.qp, 1, IBV_WR_RDMA_WRITE, &sge, 1,
				   IBV_SEND_SIGNALED, (uintptr_t)memory[1], s->to->rkey) &&
	       cq_next(s->pair.active.scq, &wc, PATIENCE) && wc.status == IBV_WC_SUCCESS)
		s->done++;
	s->ended = true;
	return NULL;
}

static void *take_cpu(void *unused)
{
	struct sched_param param = { .sched_priority = 50 };

	(void)unused;
	on_cpu(1);
	if (sched_setscheduler(0, SCHED_FIFO, &param))
		tap_bail("sched_setscheduler: %m");
	while (!stop)
		;
	return NULL;
}

/* Bails out unless all senders run, and none completes a WRITE for `ms`. */
static void check_stalled(int ms)
{
	unsigned int before[PAIRS];

	for (int i = 0; i < PAIRS; i++)
		before[i] = senders[i].done;
	sleep_ms(ms);
	for (int i = 0; i < PAIRS; i++)
		if (senders[i].ended || senders[i].done != before[i])
			tap_bail("sender %d continues or has ended", i);
}

int main(int argc, char **argv)
{
	struct pair_opts opts = {};
	pthread_t taker;
	char end;

	if (argc != 3)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	on_cpu(0);
	opts.active = side_parse(argv[1]);
	opts.passive = side_parse(argv[2]);
	for (int i = 0; i < PAIRS; i++) {
		struct sender *s = &senders[i];

		pair_open(&s->pair, &opts);
		s->from = ibv_reg_mr(s->pair.active.pd, memory[0], LENGTH, ALL);
		s->to = ibv_reg_mr(s->pair.passive.pd, memory[1], LENGTH, ALL);
		if (!s->from || !s->to)
			tap_bail("ibv_reg_mr");
	}
	for (int i = 0; i < PAIRS; i++)
		if (pthread_create(&senders[i].thread, NULL, send_steadily, &senders[i]))
			tap_bail("pthread_create");
	for (int i = 0; i < PAIRS; i++)
		while (senders[i].done < WARM_UP)
			sleep_ms(10);
	if (pthread_create(&taker, NULL, take_cpu, NULL))
		tap_bail("pthread_create");
	sleep_ms(200);
	for (int i = 0; i < PAIRS; i++)
		if (!qp_to_error(senders[i].pair.passive.qp))
			tap_bail("to ERROR");
	/* A sender that gets the CPU sees the error at once. */
	check_stalled(300);
	puts("stuck");
	if (read(0, &end, 1) < 0)
		tap_bail("stdin: %m");
	stop = true;
	pthread_join(taker, NULL);
	for (int i = 0; i < PAIRS; i++) {
		pthread_join(senders[i].thread, NULL);
		ibv_dereg_mr(senders[i].from);
		ibv_dereg_mr(senders[i].to);
		if (!pair_close(&senders[i].pair))
			tap_bail("something cannot be destroyed");
	}
	puts("done");
	return 0;
}
