/* SPDX-License-Identifier: GPL-2.0 */
/* Headers that this crate binds, and its C wrappers. */
#include <linux/in.h>
#include <linux/netdevice.h>
#include <linux/spinlock.h>
#include <net/net_namespace.h>

unsigned long riw_compat_spin_lock_irqsave(spinlock_t *lock);
bool riw_compat_spin_trylock_irqsave(spinlock_t *lock, unsigned long *flags);
void riw_compat_spin_unlock_irqrestore(spinlock_t *lock, unsigned long flags);
