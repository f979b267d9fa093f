/* SPDX-License-Identifier: GPL-2.0 */
/* TAP for programs: a point is a named claim that passes or fails. */
#ifndef TAP_H
#define TAP_H

#include <stdbool.h>

/* Writes one point. Returns whether it passes. */
bool tap_ok(bool holds, const char *name, ...) __attribute__((format(printf, 2, 3)));

/* Writes a diagnostic line, which belongs to the next point. */
void tap_note(const char *text, ...) __attribute__((format(printf, 1, 2)));

/*
 * For a point with several checks: records the first failure; tap_point() writes the point with it.
 */
bool tap_check(bool holds, const char *why, ...) __attribute__((format(printf, 2, 3)));
bool tap_failing(void);
bool tap_point(const char *name, ...) __attribute__((format(printf, 1, 2)));

/* Writes the plan. Returns 0, for main(). */
int tap_done(void);

/* Ends the program because a precondition is missing. Writes no plan. */
void tap_bail(const char *why, ...) __attribute__((format(printf, 1, 2), noreturn));

#endif
