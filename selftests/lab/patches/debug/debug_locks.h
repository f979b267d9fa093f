/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Included before lib/debug_locks.c. The parameter "debug_locks=0" turns lockdep off from the start.
 */
#include <linux/debug_locks.h>
#include <linux/moduleparam.h>

core_param(debug_locks, debug_locks, int, 0);
