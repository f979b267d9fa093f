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
#include "common/tap.h"
#include "rpcrdma/suite.h"
#include "rpcrdma_client/tests.h"

const char *server, *server6;

static const struct test tests[] = {
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
	char **arguments = suite_arguments(argc, argv, 3);

	client = side_parse(arguments[0]);
	server = arguments[1];
	server6 = arguments[2];
	suite_run(tests, sizeof(tests) / sizeof(tests[0]), NULL);
	return tap_done();
}
