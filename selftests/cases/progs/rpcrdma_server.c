// SPDX-License-Identifier: GPL-2.0
/*
 * A server of NFS version 3 over RPC-over-RDMA version 1 (RFC 8166, RFC 8797) for the kernel's NFS
 * client, and applications that use the client's mount. Checks each call of the client, and what
 * the client does with replies that the kernel's own server never sends. Messages are made and
 * parsed by this program alone.
 *
 *     rpcrdma_server [-r SEED] [-t TEST] CLIENT SERVER SERVER6 FOLDER
 *
 * CLIENT and SERVER are `ADDRESS` or `ADDRESS%NAMESPACE`; the server has the address SERVER6, too.
 * The client mounts on FOLDER, in a mount namespace of this program: no mount outlives it. TEST is
 * the name of one of the tests below.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <sys/mount.h>

#include "common/tap.h"
#include "rpcrdma/suite.h"
#include "rpcrdma_server/tests.h"

static const struct test tests[] = {
	{ "basics", test_basics },
	{ "arguments", test_arguments },
	{ "results", test_results },
	{ "stags", test_stags },
	{ "credits", test_credits },
	{ "replies", test_replies },
	{ "connections", test_connections },
	{ "load", test_load },
};

static void forget_all(void)
{
	settings_reset();
	files_forget();
}

int main(int argc, char **argv)
{
	char **arguments = suite_arguments(argc, argv, 4);

	client = side_parse(arguments[0]);
	server = side_parse(arguments[1]);
	server6 = (struct side){ .addr = arguments[2], .netns = server.netns };
	folder = arguments[3];
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		tap_bail("a mount namespace");

	session_listen(&server);
	suite_run(tests, sizeof(tests) / sizeof(tests[0]), forget_all);
	session_close();
	return tap_done();
}
