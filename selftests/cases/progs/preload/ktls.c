// SPDX-License-Identifier: GPL-2.0
/*
 * Preload for programs that use TCP: the kernel encrypts their connections in both directions, with fixed keys and
 * without a handshake. Both ends need it. A program ends if a connection cannot have TLS.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../common/ktls.h"

static int is_tcp(int sock)
{
	int protocol = 0;
	socklen_t len = sizeof(protocol);

	return !getsockopt(sock, SOL_SOCKET, SO_PROTOCOL, &protocol, &len) && protocol == IPPROTO_TCP;
}

static void encrypt(int sock)
{
	if (ktls_begin(sock) || ktls_set_key(sock, TLS_TX) || ktls_set_key(sock, TLS_RX)) {
		perror("error: no TLS for a connection");
		_exit(EXIT_FAILURE);
	}
}

/* Returns the function of the C library that one here replaces. */
static void *original(const char *name)
{
	void *found = dlsym(RTLD_NEXT, name);

	if (!found) {
		fprintf(stderr, "error: no function %s\n", name);
		_exit(EXIT_FAILURE);
	}
	return found;
}

int connect(int sock, const struct sockaddr *addr, socklen_t len)
{
	int (*connect_open)(int, const struct sockaddr *, socklen_t) = original("connect");
	int result = connect_open(sock, addr, len);

	if (is_tcp(sock) && (!result || errno == EINPROGRESS))
		/* One that is still in progress has no TLS: this fails then. */
		encrypt(sock);
	return result;
}

int accept(int sock, struct sockaddr *addr, socklen_t *len)
{
	int (*accept_open)(int, struct sockaddr *, socklen_t *) = original("accept");
	int new = accept_open(sock, addr, len);

	if (new >= 0 && is_tcp(new))
		encrypt(new);
	return new;
}
