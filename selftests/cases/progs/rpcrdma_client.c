// SPDX-License-Identifier: GPL-2.0
/*
 * A client of the kernel's NFS server that speaks RPC-over-RDMA version 1 (RFC 8166, RFC 8797), and
 * checks the server by messages that the kernel's own client never sends. Its messages are made and
 * parsed by this program alone.
 *
 *     rpcrdma_client [-r SEED] [-t TEST] CLIENT SERVER SERVER6
 *
 * CLIENT is `ADDRESS` or `ADDRESS%NAMESPACE`, SERVER and SERVER6 are the server's addresses. The server
 * exports as its root a folder with the files of rpcrdma_client/tests.h. TEST is the name of
 * one of the tests below.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/tap.h"
#include "rpcrdma_client/tests.h"

struct rng rng = { 1 };
const char *server, *server6;

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {
	{ "headers", test_headers },
	{ "read_chunks", test_read_chunks },
	{ "write_chunks", test_write_chunks },
	{ "protection", test_protection },
	{ "sizes", test_sizes },
	{ "invalidation", test_invalidation },
	{ "sequences", test_sequences },
	{ "back_channel", test_back_channel },
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
	if (argc - optind != 3)
		return 2;
	tap_note("seed %llu", (unsigned long long)rng.state);
	client = side_parse(argv[optind]);
	server = argv[optind + 1];
	server6 = argv[optind + 2];

	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		if (!only || !strcmp(only, tests[i].name))
			tests[i].run();
	return tap_done();
}
