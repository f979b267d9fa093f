/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Included before arch/um/kernel/irq.c: an interrupt stops the process of this CPU, if the kernel has to schedule.
 *
 * User-Mode Linux handles an interrupt in the kernel's thread of the host, while the process continues in its own.
 * Only the tick, every 10 ms, and an IPI of another CPU stop the process. So on a machine with one CPU, a worker that
 * an interrupt wakes waits up to 10 ms for a process that polls: a READ of 2 bytes took 10.5 ms. Hardware stops the
 * process for each interrupt.
 *
 * sigio_handler() ends with preempt_enable().
 */
#include <linux/compiler.h>
#include <linux/mm_types.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <os.h>
#include <skas/mm_id.h>
#include <skas/stub-data.h>

static inline void enable_and_preempt_process(void)
{
	struct mm_id *id;

	preempt_enable();
	if (!need_resched() || !current->mm)
		return;
	id = &current->mm->context.id;
	/* Else the process is in the kernel, which schedules before it returns to the process. */
	if (READ_ONCE(((struct stub_data *)id->stack)->futex) == FUTEX_IN_CHILD)
		os_alarm_process(id->pid);
}

#undef preempt_enable
#define preempt_enable() enable_and_preempt_process()
