// SPDX-License-Identifier: GPL-2.0
/*
 * fail_nth [-c] [-o] [-r SEED] ADDRESS NETDEV TYPE [OPERATION…]
 *
 * Fails each kernel allocation of an operation in turn, by /proc/thread-self/fail-nth: from link
 * add over listen, connect, accept, create and post to teardown, or only in the named operations.
 * Of an operation with very many allocations, such as link add with all of its sysfs files, it
 * fails some, at random by the seed. The operation must either succeed or return an error; both
 * ways teardown must work. (The caller checks for leaks and kernel messages, and selects what fails.)
 *
 * -c: in place of an allocation, each copy from or to the memory of this process fails, and the error is EFAULT.
 * -o: also operations that only riw's own user ABI has.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/random.h"
#include "common/tap.h"
#include "fail_nth/connections.h"
#include "fail_nth/inject.h"
#include "fail_nth/link.h"
#include "fail_nth/objects.h"

/* Maximum allocations of an operation, or copies. */
#define MOST 5000
/* An operation with more of them has about this many failed. */
#define MANY 200

/* Flags of an operation. */
#define ALLOCATES 1	/* always; other operations may or may not */
#define OWN 2		/* only with riw's own user ABI */
#define QUIET 4		/* may need no system call; all other operations copy something */
#define TRIES 8		/* a library has another error, or tries again; or no byte is copied */

static bool copies;

/* A link added under failing allocations may lack objects that others create for it. */
static void link_drop(int status)
{
	(void)status;
	link_delete();
}

static void drop_all(void)
{
	connections_drop();
	objects_drop();
}

/* An operation: `before` prepares it, `run` executes it, `after` continues from its status. */
static const struct operation {
	const char *name;
	void (*before)(void);
	int (*run)(void);
	void (*after)(int status);
	unsigned int flags;
} operations[] = {
	{ "link add", link_delete, link_add, link_drop, ALLOCATES },
	{ "open", link_must_be, do_open, NULL, ALLOCATES | TRIES },
	{ "query device", want_open, do_query_device, NULL, 0 },
	{ "query port", want_open, do_query_port, NULL, 0 },
	{ "create completion channel", want_open, do_channel, NULL, ALLOCATES },
	{ "alloc PD", want_open, do_pd, NULL, ALLOCATES },
	{ "dealloc PD", want_pd, do_dealloc_pd, NULL, 0 },
	{ "register MR", want_pd, do_mr, NULL, ALLOCATES },
	{ "deregister MR", want_mr, do_dereg, NULL, 0 },
	{ "create CQ", want_open, do_cq, NULL, ALLOCATES },
	{ "destroy CQ", want_cq, do_destroy_cq, NULL, 0 },
	{ "create SRQ", want_pd, do_srq, NULL, ALLOCATES },
	{ "modify SRQ", want_srq, do_modify_srq, NULL, 0 },
	{ "query SRQ", want_srq, do_query_srq, NULL, OWN },
	{ "post RECV to SRQ", want_srq, do_post_srq_recv, NULL, QUIET | TRIES },
	{ "destroy SRQ", want_srq, do_destroy_srq, NULL, 0 },
	{ "create extended CQ", want_open, do_extended_cq, NULL, ALLOCATES | OWN },
	{ "resize CQ", want_cq, do_resize, NULL, ALLOCATES | OWN },
	{ "register MR again", want_mr, do_rereg, NULL, ALLOCATES | OWN },
	{ "register MR of a dma-buf", want_dmabuf, do_dmabuf, NULL, ALLOCATES | OWN },
	{ "allocate MW", want_pd, do_mw, NULL, ALLOCATES | OWN },
	{ "deallocate MW", want_mw, do_dealloc_mw, NULL, OWN },
	{ "listen", want_bound, do_listen, NULL, ALLOCATES },
	{ "destroy listener", want_listener, do_drop, NULL, 0 },
	{ "create QP", want_route, do_qp, NULL, ALLOCATES },
	{ "query QP", want_qp, do_query_qp, NULL, 0 },
	{ "modify QP", want_connection, do_modify_qp, NULL, 0 },
	{ "destroy QP", want_qp, do_destroy_qp, NULL, 0 },
	{ "bind QP to a counter", want_unbound, do_bind, NULL, ALLOCATES },
	{ "connect", want_qp, do_connect, NULL, ALLOCATES },
	{ "accept", want_request, do_accept, NULL, ALLOCATES },
	{ "reject", want_request, do_reject, NULL, 0 },
	{ "post RECV", want_connection, do_post_recv, NULL, QUIET | TRIES },
	{ "post SEND of 100 B", want_receive, do_post_small, completes, QUIET | TRIES },
	{ "post SEND of 256 KiB", want_receive, do_post_large, completes, QUIET | TRIES },
	{ "post READ of 256 KiB", want_receive, do_post_read, completes, QUIET | TRIES },
	{ "disconnect", want_connection, do_disconnect, NULL, 0 },
};

#define OPERATIONS (sizeof(operations) / sizeof(*operations))

/* Whether each run of the operation has something that fails. */
static bool must_fail(const struct operation *operation)
{
	return copies ? !(operation->flags & QUIET) : operation->flags & ALLOCATES;
}

/* Checks the status after a failure. An operation may do without what it could not allocate. */
static void check_error(const struct operation *operation, int status)
{
	if (copies && !(operation->flags & TRIES))
		tap_check(status == -EFAULT, "after a copy that failed: %s", strerror(-status));
}

/* Runs an operation with its `nth` allocation or copy failing, then tears everything down. */
static int attempt(const struct operation *operation, int nth, int *left)
{
	int status;

	operation->before();
	inject(nth);
	status = operation->run();
	*left = inject_left();
	if (operation->after)
		operation->after(status);
	drop_all();
	return status;
}

static void sweep(const struct operation *operation, struct rng *rng)
{
	const char *what = copies ? "copies" : "allocations";
	int left, status, failed = 0, errors = 0, step, count, nth;

	attempt(operation, MOST, &left);
	count = MOST - left;
	step = 1 + count / MANY;
	tap_check(left, "more than %d %s", MOST, what);
	for (nth = 1; !tap_failing(); nth += 1 + rng_below(rng, 2 * step - 1)) {
		status = attempt(operation, nth, &left);
		if (left) {
			tap_check(!status, "with no failure: %s", strerror(-status));
			break;
		}
		failed++;
		if (status)
			errors++;
		check_error(operation, status);
	}
	tap_check(failed || !must_fail(operation), "nothing failed");
	/* A failure may cause further ones, which fail as well. */
	tap_note("%d %s failed, %d are made when none fails; %d errors came back", failed, what, count, errors);
	tap_point("%s", operation->name);
}

static bool is_known(const char *name, bool own)
{
	for (size_t i = 0; i < OPERATIONS; i++)
		if (!strcmp(operations[i].name, name))
			return own || !(operations[i].flags & OWN);
	return false;
}

static bool is_wanted(const char *name, char *const wanted[])
{
	if (!*wanted)
		return true;
	while (*wanted)
		if (!strcmp(*wanted++, name))
			return true;
	return false;
}

int main(int argc, char **argv)
{
	struct rng rng = { 1 };
	static char device[32];
	bool own = false;
	int option;

	while ((option = getopt(argc, argv, "cor:")) != -1) {
		if (option == 'r')
			rng.state = strtoull(optarg, NULL, 0);
		else if (option == 'c')
			copies = true;
		else if (option == 'o')
			own = true;
		else
			return 2;
	}
	if (argc - optind < 3)
		tap_bail("usage: fail_nth [-c] [-o] [-r SEED] ADDRESS NETDEV TYPE [OPERATION...]");
	for (char **name = argv + optind + 3; *name; name++)
		if (!is_known(*name, own))
			tap_bail("unknown operation: %s", *name);
	snprintf(device, sizeof(device), "%s0", argv[optind + 2]);
	link_init(device, argv[optind + 1], argv[optind + 2]);
	objects_init(device);
	connections_init(argv[optind]);
	inject_open(copies);
	/* libibverbs loads its drivers when the first device is opened; do not count that. */
	want_open();
	drop_all();
	for (size_t i = 0; i < OPERATIONS; i++)
		if ((own || !(operations[i].flags & OWN)) &&
		    is_wanted(operations[i].name, argv + optind + 3))
			sweep(&operations[i], &rng);
	link_delete();
	return tap_done();
}
