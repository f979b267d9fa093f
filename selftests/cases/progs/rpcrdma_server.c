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
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "common/tap.h"
#include "rpcrdma_server/tests.h"

struct rng rng = { 1 };

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {
	{ "basics", test_basics },
	{ "arguments", test_arguments },
	{ "results", test_results },
	{ "stags", test_stags },
	{ "credits", test_credits },
	{ "replies", test_replies },
	{ "connections", test_connections },
	{ "load", test_load },
};

int main(int argc, char **argv)
{
	const char *only = NULL;
	int option;

	while ((option = getopt(argc, argv, "r:t:")) != -1) {
		if (option == 'r')
			rng.state = strtoull(optarg, NULL, 0);
		else if (option == 't')
			only = optarg;
		else
			return 2;
	}
	if (argc - optind != 4)
		return 2;
	tap_note("seed %llu", (unsigned long long)rng.state);
	client = side_parse(argv[optind]);
	server = side_parse(argv[optind + 1]);
	server6 = (struct side){ .addr = argv[optind + 2], .netns = server.netns };
	folder = argv[optind + 3];
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		tap_bail("a mount namespace");

	session_listen(&server);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		if (only && strcmp(only, tests[i].name))
			continue;
		settings_reset();
		files_forget();
		tests[i].run();
	}
	session_close();
	return tap_done();
}
