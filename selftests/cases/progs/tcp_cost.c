// SPDX-License-Identifier: GPL-2.0
/*
 * Sends messages on a fresh connection of TCP alone, both ends in this process, and prints the
 * nanoseconds that a message took, as message_cost does for RDMA.
 *
 *     tcp_cost SIZE COUNT tls|open ACTIVE PASSIVE
 *
 * tls: the kernel encrypts, with fixed keys for AES-256-GCM, as tlshd would give it. A message has
 * arrived when its last byte has.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/ktls.h"
#include "common/pair.h"
#include "common/tap.h"

/* Messages before the measurement, so that the caches of the kernel and TCP's buffers are warm. */
#define WARM_UP 64

static char *message, *arrived;
static size_t size;
static int from, to;

static struct sockaddr_in address(const struct side *side)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };

	if (inet_pton(AF_INET, side->addr, &addr.sin_addr) != 1)
		tap_bail("inet_pton %s", side->addr);
	return addr;
}

static int new_socket(const struct side *side)
{
	int sock;

	netns_enter(side->netns);
	sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	netns_leave();
	if (sock < 0)
		tap_bail("socket: %m");
	return sock;
}

static void connect_both(const struct side *active, const struct side *passive)
{
	struct sockaddr_in addr = address(passive);
	socklen_t len = sizeof(addr);
	int listener = new_socket(passive);

	if (bind(listener, (struct sockaddr *)&addr, len) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&addr, &len))
		tap_bail("listen: %m");
	from = new_socket(active);
	if (connect(from, (struct sockaddr *)&addr, len))
		tap_bail("connect: %m");
	to = accept(listener, NULL, NULL);
	if (to < 0)
		tap_bail("accept: %m");
	close(listener);
}

static void encrypt(int sock, int direction)
{
	if (ktls_begin(sock) || ktls_set_key(sock, direction))
		tap_bail("keys: %m");
}

/* Takes the result of a call that does not wait. Returns the bytes. */
static size_t count_of(ssize_t result, const char *what)
{
	if (result > 0)
		return result;
	if (!result || errno != EAGAIN)
		tap_bail("%s: %m", what);
	return 0;
}

static void send_one(void)
{
	int64_t deadline = now_ms() + PATIENCE;
	size_t sent = 0, received = 0;

	while (received < size) {
		size_t before = sent + received;

		if (sent < size)
			sent += count_of(send(from, message + sent, size - sent, MSG_DONTWAIT), "send");
		received += count_of(recv(to, arrived + received, size - received, MSG_DONTWAIT), "recv");
		if (sent + received > before)
			continue;
		if (now_ms() > deadline)
			tap_bail("a message has not arrived");
		/* Lets the kernel's threads run, as the machine has one CPU. */
		sched_yield();
	}
	if (arrived[size - 1] != message[size - 1])
		tap_bail("another byte has arrived");
}

static void run(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		message[size - 1] = i;
		send_one();
	}
}

int main(int argc, char **argv)
{
	int on = 1;
	int64_t begin;
	uint32_t count;
	struct side active, passive;

	if (argc != 6)
		return 2;
	size = strtoul(argv[1], NULL, 0);
	count = strtoul(argv[2], NULL, 0);
	if (!size || !count)
		return 2;
	active = side_parse(argv[4]);
	passive = side_parse(argv[5]);
	message = calloc(2, size);
	if (!message)
		tap_bail("no memory");
	arrived = message + size;

	connect_both(&active, &passive);
	if (setsockopt(from, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)))
		tap_bail("TCP_NODELAY: %m");
	if (!strcmp(argv[3], "tls")) {
		encrypt(from, TLS_TX);
		encrypt(to, TLS_RX);
	}
	run(WARM_UP);
	begin = now_ns();
	run(count);
	printf("%.1f\n", (double)(now_ns() - begin) / count);
	if (memcmp(message, arrived, size))
		tap_bail("other bytes have arrived");
	return 0;
}
