/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Included before kernel/locking/qspinlock.c. A CPU of User-Mode Linux is a thread of the host, which may
 * not be running: let a CPU that waits for a spinlock give its host CPU to others. A quarter of the host's
 * CPU time was spent spinning.
 */
#include <asm/processor.h>

int sched_yield(void);	/* of the C library: the host's */

static __always_inline void relax_or_yield(void)
{
	static unsigned int spins;

	if (++spins % 128)
		cpu_relax();
	else
		sched_yield();
}

#define cpu_relax relax_or_yield
