// SPDX-License-Identifier: GPL-2.0
#include "tap.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int points;
static char first_failure[512];

static void print_line(const char *start, const char *text, va_list args)
{
	fputs(start, stdout);
	vprintf(text, args);
	putchar('\n');
	fflush(stdout);
}

bool tap_ok(bool holds, const char *name, ...)
{
	char start[32];
	va_list args;

	snprintf(start, sizeof(start), "%sok %d - ", holds ? "" : "not ", ++points);
	va_start(args, name);
	print_line(start, name, args);
	va_end(args);
	return holds;
}

void tap_note(const char *text, ...)
{
	va_list args;

	va_start(args, text);
	print_line("# ", text, args);
	va_end(args);
}

bool tap_check(bool holds, const char *why, ...)
{
	va_list args;

	if (holds || first_failure[0])
		return holds;
	va_start(args, why);
	vsnprintf(first_failure, sizeof(first_failure), why, args);
	va_end(args);
	return false;
}

bool tap_failing(void)
{
	return first_failure[0];
}

bool tap_point(const char *name, ...)
{
	bool holds = !first_failure[0];
	char start[32];
	va_list args;

	if (!holds)
		tap_note("%s", first_failure);
	snprintf(start, sizeof(start), "%sok %d - ", holds ? "" : "not ", ++points);
	va_start(args, name);
	print_line(start, name, args);
	va_end(args);
	first_failure[0] = '\0';
	return holds;
}

int tap_done(void)
{
	if (first_failure[0])
		tap_point("what was checked after the last point");
	printf("1..%d\n", points);
	fflush(stdout);
	return 0;
}

void tap_bail(const char *why, ...)
{
	int error = errno;
	va_list args;

	if (first_failure[0])
		tap_note("%s", first_failure);
	va_start(args, why);
	print_line("# cannot go on: ", why, args);
	va_end(args);
	if (error)
		tap_note("errno: %s", strerror(error));
	exit(2);
}
