/* SPDX-License-Identifier: GPL-2.0 */
/* What the C code uses of Linux 7.3, and 7.2 lacks. Kbuild includes it into each file there. */
#ifndef RIW_COMPAT_H
#define RIW_COMPAT_H

/* The type of a member for kfree_rcu(). */
#define kvfree_rcu_head rcu_head

#endif
