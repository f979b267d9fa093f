/* SPDX-License-Identifier: GPL-2.0 */
/* The command line of programs that do random things in rounds, between two devices. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include "pair.h"
#include "random.h"

struct options {
	int rounds;
	struct rng rng;
	struct side active, passive;
};

/*
 * Parses `[-n ROUNDS] [-r SEED] ACTIVE PASSIVE`, with `rounds` rounds and seed 1 by default. Exits
 * with status 2 if the command line has another form.
 */
struct options options_parse(int argc, char **argv, int rounds);

#endif
