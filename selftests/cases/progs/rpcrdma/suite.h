/* SPDX-License-Identifier: GPL-2.0 */
/* The tests of a program, and its command line. */
#ifndef SUITE_H
#define SUITE_H

#include <stddef.h>

#include "../common/random.h"

struct test {
	const char *name;
	void (*run)(void);
};

/* The random numbers of all tests. The seed is 1 by default. */
extern struct rng rng;

/*
 * Parses `[-r SEED] [-t TEST]` and `count` arguments, which it returns. Prints the seed. Exits with status
 * 2 if the command line has another form.
 */
char **suite_arguments(int argc, char **argv, int count);

/* Runs the tests, or only TEST. Calls `prepare` before each of them, if it is not NULL. */
void suite_run(const struct test *tests, size_t count, void (*prepare)(void));

#endif
