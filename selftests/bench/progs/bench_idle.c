// SPDX-License-Identifier: GPL-2.0
/*
 * bench_idle COUNT ACTIVE PASSIVE: opens one connection, which allocates the objects that all
 * connections of a process share, and prints "first open". After an empty line on stdin, opens
 * COUNT more and prints "all open". The connections stay idle, without listeners. Closes them at
 * the end of stdin.
 */
#include <stdio.h>
#include <stdlib.h>

#include "common/pair.h"
#include "common/tap.h"

static void open_idle(struct pair *pair, const struct pair_opts *opts)
{
	pair_open(pair, opts);
	if (rdma_destroy_id(pair->listener))
		tap_bail("rdma_destroy_id");
	rdma_destroy_event_channel(pair->listen_events);
	pair->listener = NULL;
	pair->listen_events = NULL;
}

int main(int argc, char **argv)
{
	struct pair_opts opts = { .sq = 16, .rq = 16 };
	struct pair *pairs;
	bool all = true;
	int count, i;

	if (argc != 4)
		return 2;
	count = atoi(argv[1]);
	if (count < 1)
		return 2;
	opts.active = side_parse(argv[2]);
	opts.passive = side_parse(argv[3]);
	pairs = calloc(count + 1, sizeof(*pairs));
	if (!pairs)
		return 1;
	open_idle(&pairs[count], &opts);
	tap_note("first open");
	if (getchar() == '\n') {
		for (i = 0; i < count; i++)
			open_idle(&pairs[i], &opts);
		tap_note("all open");
		while (getchar() != EOF)
			;
	}
	for (i = 0; i <= count; i++)
		all &= pair_close(&pairs[i]);
	return !all;
}
