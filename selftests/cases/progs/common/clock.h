/* SPDX-License-Identifier: GPL-2.0 */
/* Deadlines. Every wait of these programs ends with one. */
#ifndef CLOCK_H
#define CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "tap.h"

/*
 * Milliseconds that something which must happen may take, on a slow machine; little
 * when the point has failed already.
 */
#define PATIENCE (tap_failing() ? 200 : 60000)

/* Milliseconds after which something that must not happen has not happened. */
#define SILENCE 300

/* Milliseconds of the monotonic clock. */
int64_t now_ms(void);

/* Waits until `fd` is readable; false if it is not after `ms`. */
bool readable_within(int fd, int ms);

void sleep_ms(int ms);

#endif
