// SPDX-License-Identifier: GPL-2.0
/*
 * Serves a folder by 9P2000.L over RDMA, to one client after the other, until it is killed.
 *
 *     p9_server ADDRESS PORT FOLDER
 *
 * Each message is one Send. Requests are done in the order in which they come. Prints a line when it
 * listens, and when a connection begins and ends.
 */
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "p9_server/files.h"

/* Requests that a client may send at a time, and the longest message. */
#define DEPTH 32
#define LONGEST (128 * 1024)

static const char dialect[] = "9P2000.L";
static uint8_t *requests, *reply;
static uint32_t longest;	/* message of this connection */

static void die(const char *what)
{
	printf("failed: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint8_t *memory(size_t bytes)
{
	uint8_t *at = aligned_alloc(4096, bytes);

	if (!at)
		die("memory");
	return at;
}

/* Agrees on the longest message and on the dialect. */
static int version(struct message *m, struct message *to)
{
	uint32_t theirs = get32(m);
	char text[32];

	get_string(m, text, sizeof(text));
	longest = theirs < LONGEST ? theirs : LONGEST;
	put32(to, longest);
	put_string(to, strcmp(text, dialect) ? "unknown" : dialect);
	files_forget();
	return 0;
}

/* Does a request. Returns the length of the reply, or 0 if the request is no message. */
static uint32_t answer(uint8_t *request, uint32_t bytes)
{
	struct message m = { request, request + bytes, false };
	struct message header = { reply, reply + P9_HEADER, false };
	struct message to = { reply + P9_HEADER, reply + longest, false };
	uint32_t length = get32(&m);
	uint8_t type = get8(&m);
	uint16_t tag = get16(&m);
	int error;

	if (m.overrun || length != bytes)
		return 0;
	error = type == TVERSION ? version(&m, &to) : files_do(type, &m, &to);
	if (!error && (m.overrun || to.overrun))
		error = EINVAL;
	if (error) {
		to = (struct message){ reply + P9_HEADER, reply + longest, false };
		put32(&to, error);
	}
	put32(&header, to.at - reply);
	put8(&header, error ? RLERROR : type + 1);
	put16(&header, tag);
	return to.at - reply;
}

static bool post_receive(struct rdma_cm_id *id, struct ibv_mr *mr, uint64_t number)
{
	uint8_t *at = requests + number * LONGEST;

	return !rdma_post_recv(id, (void *)(uintptr_t)number, at, LONGEST, mr);
}

/* Serves a connection until it ends. Returns the number of requests. */
static long serve(struct rdma_cm_id *id, struct ibv_mr *in, struct ibv_mr *out)
{
	struct ibv_wc wc;
	uint32_t length;
	long count;

	for (count = 0; rdma_get_recv_comp(id, &wc) == 1 && !wc.status; count++) {
		length = answer(requests + wc.wr_id * LONGEST, wc.byte_len);
		if (!length || !post_receive(id, in, wc.wr_id))
			break;
		if (rdma_post_send(id, NULL, reply, length, out, 0) ||
		    rdma_get_send_comp(id, &wc) != 1 || wc.status)
			break;
	}
	return count;
}

static void connection(struct rdma_cm_id *id)
{
	struct ibv_mr *in = rdma_reg_msgs(id, requests, DEPTH * LONGEST);
	struct ibv_mr *out = rdma_reg_msgs(id, reply, LONGEST);
	long count;

	if (!in || !out)
		die("rdma_reg_msgs");
	for (uint64_t i = 0; i < DEPTH; i++)
		if (!post_receive(id, in, i))
			die("rdma_post_recv");
	longest = LONGEST;
	if (rdma_accept(id, NULL))
		die("rdma_accept");
	printf("connected\n");
	count = serve(id, in, out);
	files_forget();
	rdma_disconnect(id);
	/* The QP goes first: it may still receive. */
	rdma_destroy_qp(id);
	rdma_dereg_mr(in);
	rdma_dereg_mr(out);
	rdma_destroy_ep(id);
	printf("closed after %ld requests\n", count);
}

static struct rdma_cm_id *listen_at(const char *address, const char *port)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = 1, .max_recv_wr = DEPTH, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE | RAI_NUMERICHOST,
				       .ai_port_space = RDMA_PS_TCP };
	struct rdma_addrinfo *info;
	struct rdma_cm_id *id;

	if (rdma_getaddrinfo(address, port, &hints, &info))
		die("rdma_getaddrinfo");
	if (rdma_create_ep(&id, info, NULL, &attr) || rdma_listen(id, 4))
		die("rdma_listen");
	rdma_freeaddrinfo(info);
	return id;
}

int main(int argc, char **argv)
{
	struct rdma_cm_id *listener, *id;

	if (argc != 4) {
		fprintf(stderr, "usage: p9_server ADDRESS PORT FOLDER\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!files_export(argv[3]))
		die(argv[3]);
	requests = memory(DEPTH * LONGEST);
	reply = memory(LONGEST);
	listener = listen_at(argv[1], argv[2]);
	printf("listening\n");
	for (;;) {
		if (rdma_get_request(listener, &id))
			die("rdma_get_request");
		connection(id);
	}
}
