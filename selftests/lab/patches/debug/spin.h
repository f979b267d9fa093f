/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Included before mutex.c, rwsem.c and osq_lock.c of kernel/locking. A CPU of User-Mode Linux is a thread of the
 * host, which may not be running: let nobody spin while the owner of a lock "runs". The processes of a
 * program with threads take turns by a mutex (enter_turnstile()), so a third of the host's CPU time was
 * spent spinning.
 */
#define vcpu_is_preempted(cpu) true
