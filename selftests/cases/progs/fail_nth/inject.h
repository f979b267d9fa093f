/* SPDX-License-Identifier: GPL-2.0 */
/* Failures on demand, by /proc/thread-self/fail-nth. */
#ifndef INJECT_H
#define INJECT_H

#include <stdbool.h>

/* Once, before the others. `copies`: the failures are of copies from and to the memory of this process. */
void inject_open(bool copies);

/* The `nth` allocation or copy of this thread fails; 0: none does. */
void inject(int nth);

/* Ends injection. Returns the passes left before the next failure, 0 if one was failed. */
int inject_left(void);

/*
 * Returns whether an object is gone after its destruction has returned `status`, 0 or an errno. ib_core copies its
 * response when it has destroyed the object: if the copy fails, there is none the next time.
 */
bool is_destroyed(int status);

#endif
