// SPDX-License-Identifier: GPL-2.0
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../common/tap.h"
#include "suite.h"

struct rng rng = { 1 };

static const char *only;	/* TEST */

char **suite_arguments(int argc, char **argv, int count)
{
	int option;

	while ((option = getopt(argc, argv, "r:t:")) != -1) {
		if (option == 'r')
			rng.state = strtoull(optarg, NULL, 0);
		else if (option == 't')
			only = optarg;
		else
			exit(2);
	}
	if (argc - optind != count)
		exit(2);
	tap_note("seed %llu", (unsigned long long)rng.state);
	return argv + optind;
}

void suite_run(const struct test *tests, size_t count, void (*prepare)(void))
{
	for (size_t i = 0; i < count; i++) {
		if (only && strcmp(only, tests[i].name))
			continue;
		if (prepare)
			prepare();
		tests[i].run();
	}
}
