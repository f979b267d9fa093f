// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "options.h"

static void usage(const char *name)
{
	fprintf(stderr, "usage: %s [-n ROUNDS] [-r SEED] ACTIVE PASSIVE\n", name);
	exit(2);
}

struct options options_parse(int argc, char **argv, int rounds)
{
	struct options options = { .rounds = rounds, .rng = { 1 } };
	int option;

	while ((option = getopt(argc, argv, "n:r:")) != -1) {
		if (option == 'n')
			options.rounds = atoi(optarg);
		else if (option == 'r')
			options.rng.state = strtoull(optarg, NULL, 0);
		else
			usage(argv[0]);
	}
	if (argc - optind != 2)
		usage(argv[0]);
	options.active = side_parse(argv[optind]);
	options.passive = side_parse(argv[optind + 1]);
	return options;
}
