/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Included before arch/um/kernel/stacktrace.c. Its dump_trace() looks up each word of the stack among the
 * kernel's symbols, although save_addr() only takes the return addresses that the frame pointers lead to.
 * kmemleak, KASAN, lockdep, SLUB and the trackers of references record a stack for each allocation, so
 * most of the time of these kernels was spent there. Look up only those that save_addr() takes.
 */
#include <linux/kernel.h>
#include <asm/stacktrace.h>

static void save_addr(void *data, unsigned long address, int reliable);

/* The names are those of the variables of dump_trace(). */
#define __kernel_text_address(addr) \
	((ops->address != save_addr || (unsigned long)sp == bp + sizeof(long)) && \
	 __kernel_text_address(addr))
