/* SPDX-License-Identifier: GPL-2.0 */
/* TAP for programs: a point is a named claim that holds or does not. */
#ifndef TAP_H
#define TAP_H

#include <stdbool.h>

/* Writes one point; returns whether it holds. */
bool tap_ok(bool holds, const char *name, ...) __attribute__((format(printf, 2, 3)));

/* Writes a diagnostic line, shown with the point before it. */
void tap_note(const char *text, ...) __attribute__((format(printf, 1, 2)));

/*
 * For a point made of several checks: the first that does not hold is kept, and
 * tap_point() writes the point with it.
 */
bool tap_check(bool holds, const char *why, ...) __attribute__((format(printf, 2, 3)));
bool tap_failing(void);
bool tap_point(const char *name, ...) __attribute__((format(printf, 1, 2)));

/* Writes the plan. Its value is main's: 0. */
int tap_done(void);

/* Ends the program: what the test stands on is missing. No plan is written. */
void tap_bail(const char *why, ...) __attribute__((format(printf, 1, 2), noreturn));

#endif
