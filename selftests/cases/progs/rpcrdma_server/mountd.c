// SPDX-License-Identifier: GPL-2.0
#include "mountd.h"

#include <endian.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../common/tap.h"
#include "../rpcrdma/xdr.h"
#include "nfs.h"
#include "rpc.h"

#define PROGRAM 100005
#define VERSION_3 3

enum mount_procedure { MOUNT_NULL, MOUNT_MNT, MOUNT_UMNT = 3 };

#define CALL_BYTES 4096
#define LAST_FRAGMENT 0x80000000	/* in a record mark (RFC 5531, section 11) */

static bool read_all(int fd, void *to, size_t length)
{
	return recv(fd, to, length, MSG_WAITALL) == (ssize_t)length;
}

/* Makes the reply to a call. */
static void serve(struct xdr *call, struct xdr *reply)
{
	uint32_t xid, program, version, procedure, length;

	xid = xdr_get(call);
	xdr_get(call);
	xdr_get(call);
	program = xdr_get(call);
	version = xdr_get(call);
	procedure = xdr_get(call);
	for (int i = 0; i < 2; i++) {
		xdr_get(call);
		xdr_get_opaque(call, &length);
	}
	if (program != PROGRAM || version != VERSION_3) {
		rpc_put_accepted(reply, xid, ACCEPT_PROG_UNAVAIL);
		return;
	}
	switch (procedure) {
	case MOUNT_NULL:
	case MOUNT_UMNT:
		rpc_put_accepted(reply, xid, ACCEPT_SUCCESS);
		break;
	case MOUNT_MNT:
		rpc_put_accepted(reply, xid, ACCEPT_SUCCESS);
		xdr_put(reply, NFS_OK);
		nfs_put_root(reply);
		/* the flavors of authentication */
		xdr_put(reply, 1);
		xdr_put(reply, AUTH_SYS);
		break;
	default:
		rpc_put_accepted(reply, xid, ACCEPT_PROC_UNAVAIL);
	}
}

/* Serves a client until it closes the connection, or sends what this server does not understand. */
static void serve_client(int fd)
{
	uint8_t in[CALL_BYTES], out[CALL_BYTES];
	struct xdr call, reply;
	uint32_t mark;

	while (read_all(fd, &mark, sizeof(mark))) {
		mark = be32toh(mark);
		if (!(mark & LAST_FRAGMENT) || (mark & ~LAST_FRAGMENT) > sizeof(in))
			return;
		call = xdr_of(in, mark & ~LAST_FRAGMENT);
		if (!read_all(fd, in, call.size))
			return;
		reply = xdr_of(out, sizeof(out));
		xdr_put(&reply, 0);
		serve(&call, &reply);
		xdr_patch(&reply, 0, LAST_FRAGMENT | (reply.at - WORD));
		if (call.failed || send(fd, out, reply.at, MSG_NOSIGNAL) != (ssize_t)reply.at)
			return;
	}
}

static int listener;

static void *thread(void *unused)
{
	int fd;

	(void)unused;
	while ((fd = accept(listener, NULL, NULL)) >= 0) {
		serve_client(fd);
		close(fd);
	}
	tap_bail("accept");
}

uint16_t mountd_start(const struct side *side)
{
	struct sockaddr_in6 any = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT };
	socklen_t length = sizeof(any);
	pthread_t unused;

	netns_enter(side->netns);
	listener = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	netns_leave();
	if (listener < 0 || bind(listener, (struct sockaddr *)&any, sizeof(any)) ||
	    listen(listener, 4) || getsockname(listener, (struct sockaddr *)&any, &length) ||
	    pthread_create(&unused, NULL, thread, NULL))
		tap_bail("a listener for MOUNT");
	return ntohs(any.sin6_port);
}
