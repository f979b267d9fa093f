/* SPDX-License-Identifier: GPL-2.0 */
/* Deadlines. Every wait of these programs has one. */
#ifndef CLOCK_H
#define CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "tap.h"

/*
 * Milliseconds to wait for an expected event on a slow machine. Short if the point has already
 * failed.
 */
#define PATIENCE (tap_failing() ? 200 : 60000)

/* Milliseconds to wait before concluding that an event does not happen. */
#define SILENCE 300

/* Return the monotonic clock in nanoseconds, and in milliseconds. */
int64_t now_ns(void);
int64_t now_ms(void);

/* Waits until `fd` is readable. Returns false if it is not after `ms`. */
bool readable_within(int fd, int ms);

void sleep_ms(int ms);

#endif
