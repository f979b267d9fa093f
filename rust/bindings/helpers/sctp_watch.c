// SPDX-License-Identifier: GPL-2.0
/* Room in the send buffer of an SCTP socket, for rust/net. */
#include <linux/net.h>
#include <linux/slab.h>
#include <linux/wait.h>
#include <net/sock.h>

#include "net.h"
#include "sctp.h"

/*
 * Waits for room. SCTP never calls sk_write_space(), but wakes the socket's waiters.
 *
 * In C: sk_sleep() and init_waitqueue_func_entry() are inline, and so is the test of the flag, with
 * which most wakeups end.
 */
struct riw_sctp_watch {
	struct wait_queue_entry entry;
	struct sock *sk;
	void (*room)(void *ctx);
	void *ctx;
};

/* Any context, interrupts off: under the lock of the wait queue. */
static int riw_sctp_woken(struct wait_queue_entry *entry, unsigned int mode, int flags, void *key)
{
	struct riw_sctp_watch *watch = container_of(entry, struct riw_sctp_watch, entry);

	if (test_and_clear_bit(SOCK_NOSPACE, &watch->sk->sk_socket->flags))
		watch->room(watch->ctx);
	return 0;
}

/* The socket must exist until riw_helper_sctp_unwatch(). */
struct riw_sctp_watch *riw_helper_sctp_watch(struct sock *sk, void (*room)(void *ctx), void *ctx)
{
	struct riw_sctp_watch *watch = kmalloc(sizeof(*watch), GFP_KERNEL_ACCOUNT);

	if (!watch)
		return NULL;
	watch->sk = sk;
	watch->room = room;
	watch->ctx = ctx;
	init_waitqueue_func_entry(&watch->entry, riw_sctp_woken);
	add_wait_queue(sk_sleep(sk), &watch->entry);
	return watch;
}

/* On return, `room` is not running and is not called again. */
void riw_helper_sctp_unwatch(struct riw_sctp_watch *watch)
{
	remove_wait_queue(sk_sleep(watch->sk), &watch->entry);
	kfree(watch);
}
