/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Two kinds of connection for programs that abuse their objects: a victim with known rings and
 * memory, and a concurrent flow of messages that must not be disturbed.
 */
#ifndef VICTIM_H
#define VICTIM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "pair.h"
#include "random.h"
#include "region.h"
#include "rings.h"

#define VICTIM_BYTES 50000	/* of the region of each end */
#define VICTIM_MESSAGE 100	/* of them, for victim_exchange() */

struct victim {
	struct pair pair;
	struct region active, passive;	/* with all rights */
	struct ring rings[RINGS_MAX];
	int count;
};

/* Connects a victim. Ends the program on failure. */
void victim_open(struct victim *v, const struct pair_opts *opts, struct rng *rng);

/* Destroys it, and checks (tap_check) that nothing around the regions has changed. */
void victim_close(struct victim *v);

/*
 * Sends the first bytes of the active end's region to the start of the passive end's region, with
 * work requests `wr_id` at both ends, and takes the completions. Returns false and fails a check if
 * that does not succeed.
 */
bool victim_exchange(struct victim *v, uint64_t wr_id);

/* Posts a request at either end and ignores the result. */
void victim_post(struct victim *v, struct rng *rng);

struct flow {
	struct pair pair;
	struct region out, in;
	struct rng rng;
	pthread_t thread;
	atomic_bool stop;
	long messages;
	const char *failed;
};

/* Connects a flow, and sends checked messages in its own thread until flow_stop(). */
void flow_start(struct flow *f, const struct pair_opts *opts, uint64_t seed);

/* Stops and destroys it, and writes a point that all messages arrived. */
void flow_stop(struct flow *f);

#endif
