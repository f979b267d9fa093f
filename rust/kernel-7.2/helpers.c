// SPDX-License-Identifier: GPL-2.0
/* C wrappers of macros. */
#include "helpers.h"

unsigned long riw_compat_spin_lock_irqsave(spinlock_t *lock)
{
	unsigned long flags;

	spin_lock_irqsave(lock, flags);
	return flags;
}

/* Stores the interrupt state before in `flags` if it gets the lock. */
bool riw_compat_spin_trylock_irqsave(spinlock_t *lock, unsigned long *flags)
{
	unsigned long before;

	if (!spin_trylock_irqsave(lock, before))
		return false;
	*flags = before;
	return true;
}

void riw_compat_spin_unlock_irqrestore(spinlock_t *lock, unsigned long flags)
{
	spin_unlock_irqrestore(lock, flags);
}
