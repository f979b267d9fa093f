// SPDX-License-Identifier: GPL-2.0
/*
 * One end of a connection between two machines. The end that asks checks each operation: what arrives, and what
 * the completions at the other end say.
 *
 *     exchange serve ADDRESS PORT	one connection
 *     exchange ask ADDRESS PORT	connects, and writes TAP
 *
 * The server offers its memory: the private data of its accept has a struct offer, in network byte order. For each
 * receive that completes it sends a struct echo back, and then that memory, as many bytes as the completion says.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <string.h>

#include "common/access.h"
#include "common/clock.h"
#include "common/completion.h"
#include "common/post.h"
#include "common/random.h"
#include "common/tap.h"

#define LENGTH 65536
#define DEPTH 8

struct offer {
	uint64_t addr;
	uint32_t key;
	uint32_t revocable;	/* another key of the same memory */
};

/* In network byte order. */
struct echo {
	uint32_t length;
	uint32_t flags;
	uint32_t number;	/* the immediate data, or the key that was invalidated */
};

static struct rdma_cm_id *id;
static _Alignas(4096) uint8_t memory[LENGTH], copy[LENGTH];
static struct ibv_mr *memory_mr, *copy_mr, *echo_mr;
static struct echo echo;

static struct rdma_cm_id *endpoint(const char *address, const char *port, int flags)
{
	struct rdma_addrinfo *info, hints = {
		.ai_flags = flags | RAI_NUMERICHOST, .ai_port_space = RDMA_PS_TCP,
	};
	struct ibv_qp_init_attr init = {
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 2, .max_recv_sge = 2 },
		.qp_type = IBV_QPT_RC,
	};
	struct rdma_cm_id *made;

	if (rdma_getaddrinfo(address, port, &hints, &info) || rdma_create_ep(&made, info, NULL, &init))
		tap_bail("an endpoint at %s: %m", address);
	rdma_freeaddrinfo(info);
	return made;
}

static struct ibv_mr *registered(void *at, size_t length, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(id->pd, at, length, access);

	if (!mr)
		tap_bail("ibv_reg_mr: %m");
	return mr;
}

/* The end that asks has no need of rights of the peer. */
static void register_memory(int access)
{
	memory_mr = registered(memory, LENGTH, access);
	copy_mr = registered(copy, LENGTH, IBV_ACCESS_LOCAL_WRITE);
	echo_mr = registered(&echo, sizeof(echo), IBV_ACCESS_LOCAL_WRITE);
}

static struct ibv_sge sge_of(const struct ibv_mr *mr, uint32_t length)
{
	return (struct ibv_sge){ (uintptr_t)mr->addr, length, mr->lkey };
}

static void send_echo(const struct ibv_wc *wc)
{
	struct ibv_sge answer[] = { sge_of(echo_mr, sizeof(echo)), sge_of(memory_mr, wc->byte_len) };
	struct ibv_wc sent;

	echo.length = htonl(wc->byte_len);
	echo.flags = htonl(wc->wc_flags);
	echo.number = wc->wc_flags & IBV_WC_WITH_INV ? htonl(wc->invalidated_rkey) :
		      wc->wc_flags & IBV_WC_WITH_IMM ? wc->imm_data : 0;
	if (post_send(id->qp, 0, IBV_WR_SEND, answer, 2, IBV_SEND_SIGNALED, 0))
		tap_bail("ibv_post_send: %m");
	if (rdma_get_send_comp(id, &sent) != 1 || sent.status != IBV_WC_SUCCESS)
		tap_bail("the echo: %s", ibv_wc_status_str(sent.status));
}

static void serve(const char *address, const char *port)
{
	struct rdma_cm_id *listener = endpoint(address, port, RAI_PASSIVE);
	struct rdma_conn_param param = { .responder_resources = DEPTH, .initiator_depth = DEPTH };
	struct ibv_sge receive;
	struct offer offer;
	struct ibv_wc wc;

	if (rdma_listen(listener, 1) || rdma_get_request(listener, &id))
		tap_bail("a connection: %m");
	register_memory(REVOCABLE | IBV_ACCESS_REMOTE_ATOMIC);
	offer.addr = htobe64((uintptr_t)memory);
	offer.key = htonl(memory_mr->rkey);
	offer.revocable = htonl(registered(memory, LENGTH, REVOCABLE)->rkey);
	param.private_data = &offer;
	param.private_data_len = sizeof(offer);
	receive = sge_of(memory_mr, LENGTH);
	if (post_recv(id->qp, 0, &receive, 1) || rdma_accept(id, &param))
		tap_bail("rdma_accept: %m");
	/* The receives are flushed when the peer disconnects. */
	while (rdma_get_recv_comp(id, &wc) == 1 && wc.status == IBV_WC_SUCCESS) {
		if (post_recv(id->qp, 0, &receive, 1))
			tap_bail("ibv_post_recv: %m");
		send_echo(&wc);
	}
	if (wc.status != IBV_WC_WR_FLUSH_ERR)
		tap_bail("a receive: %s", ibv_wc_status_str(wc.status));
}

static struct rng rng = { .state = 1 };
static struct offer remote;

static void connect_to(const char *address, const char *port)
{
	struct rdma_conn_param param = { .responder_resources = DEPTH, .initiator_depth = DEPTH };

	id = endpoint(address, port, 0);
	register_memory(IBV_ACCESS_LOCAL_WRITE);
	if (rdma_connect(id, &param))
		tap_bail("rdma_connect: %m");
	if (id->event->param.conn.private_data_len < sizeof(remote))
		tap_bail("%u bytes of private data", id->event->param.conn.private_data_len);
	memcpy(&remote, id->event->param.conn.private_data, sizeof(remote));
	remote.addr = be64toh(remote.addr);
	remote.key = ntohl(remote.key);
	remote.revocable = ntohl(remote.revocable);
}

/* An RDMA Write from `memory`, or an RDMA Read to `copy`, and its completion. */
static void access_remote(enum ibv_wr_opcode opcode, uint32_t length)
{
	struct ibv_sge sge = sge_of(opcode == IBV_WR_RDMA_READ ? copy_mr : memory_mr, length);

	tap_check(!post_rdma(id->qp, opcode, opcode, &sge, 1, IBV_SEND_SIGNALED, remote.addr, remote.key),
		  "ibv_post_send");
	cq_expect(id->send_cq, opcode, IBV_WC_SUCCESS, NULL);
}

static void write_and_read(void)
{
	rng_fill(&rng, memory, LENGTH);
	access_remote(IBV_WR_RDMA_WRITE, LENGTH);
	access_remote(IBV_WR_RDMA_READ, LENGTH);
	tap_check(!memcmp(copy, memory, LENGTH), "the bytes differ");
	tap_point("an RDMA Read fetches what an RDMA Write has placed");
}

/* Sends a message with random bytes. Its echo must have them, these flags and this number. */
static void echoed(enum ibv_wr_opcode opcode, uint32_t length, uint32_t flags, uint32_t number)
{
	struct ibv_sge answer[] = { sge_of(echo_mr, sizeof(echo)), sge_of(copy_mr, LENGTH) };
	struct ibv_sge sge = sge_of(memory_mr, length);
	struct ibv_send_wr *bad, wr = {
		.wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { remote.addr, remote.key },
	};
	struct ibv_wc wc = {};

	if (flags & IBV_WC_WITH_INV)
		wr.invalidate_rkey = number;
	else
		wr.imm_data = htonl(number);
	rng_fill(&rng, memory, length);
	memset(copy, 0, length);
	tap_check(!post_recv(id->qp, 2, answer, 2), "ibv_post_recv");
	tap_check(!ibv_post_send(id->qp, &wr, &bad), "ibv_post_send");
	cq_expect(id->send_cq, 1, IBV_WC_SUCCESS, NULL);
	cq_expect(id->recv_cq, 2, IBV_WC_SUCCESS, &wc);
	tap_check(wc.byte_len == sizeof(echo) + length, "an echo of %u bytes", wc.byte_len);
	tap_check(ntohl(echo.length) == length && ntohl(echo.flags) == flags && ntohl(echo.number) == number,
		  "length %u, flags %#x, number %#x; wanted %u, %#x, %#x", ntohl(echo.length),
		  ntohl(echo.flags), ntohl(echo.number), length, flags, number);
	tap_check(!memcmp(copy, memory, length), "the bytes differ");
}

/* Returns the old value. */
static uint64_t atomic(enum ibv_wr_opcode opcode, uint64_t compare_add, uint64_t swap)
{
	struct ibv_sge sge = sge_of(copy_mr, sizeof(uint64_t));
	uint64_t old;

	tap_check(!post_atomic(id->qp, 3, opcode, &sge, remote.addr, remote.key, compare_add, swap),
		  "ibv_post_send");
	cq_expect(id->send_cq, 3, IBV_WC_SUCCESS, NULL);
	memcpy(&old, copy, sizeof(old));
	return old;
}

static void expect_value(uint64_t value, uint64_t wanted, const char *what)
{
	tap_check(value == wanted, "%s: %#jx, wanted %#jx", what, (uintmax_t)value, (uintmax_t)wanted);
}

static void atomics(void)
{
	const uint64_t first = 0x1122334455667788, second = 0x2233445566778899, third = 0x0102030405060708;
	uint64_t last;

	memcpy(memory, &first, sizeof(first));
	access_remote(IBV_WR_RDMA_WRITE, sizeof(first));
	expect_value(atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, second - first, 0), first, "fetch and add");
	expect_value(atomic(IBV_WR_ATOMIC_CMP_AND_SWP, second, third), second, "compare and swap");
	expect_value(atomic(IBV_WR_ATOMIC_CMP_AND_SWP, second, first), third, "one that fails");
	access_remote(IBV_WR_RDMA_READ, sizeof(last));
	memcpy(&last, copy, sizeof(last));
	expect_value(last, third, "at the end");
	tap_point("atomic operations change the number, and return the old one");
}

static void ask(void)
{
	write_and_read();
	echoed(IBV_WR_SEND, 1, 0, 0);
	echoed(IBV_WR_SEND, 50000, 0, 0);
	tap_point("a Send arrives as it was sent");
	echoed(IBV_WR_RDMA_WRITE_WITH_IMM, 0, IBV_WC_WITH_IMM, 0);
	echoed(IBV_WR_RDMA_WRITE_WITH_IMM, 50000, IBV_WC_WITH_IMM, 0x01020304);
	tap_point("immediate data arrive behind their RDMA Write");
	atomics();
	echoed(IBV_WR_SEND_WITH_INV, 100, IBV_WC_WITH_INV, remote.revocable);
	tap_point("a Send with Invalidate names the key");
}

int main(int argc, char **argv)
{
	if (argc != 4 || (strcmp(argv[1], "serve") && strcmp(argv[1], "ask")))
		tap_bail("usage: exchange serve|ask ADDRESS PORT");
	if (!strcmp(argv[1], "serve")) {
		serve(argv[2], argv[3]);
		return 0;
	}
	connect_to(argv[2], argv[3]);
	ask();
	rdma_disconnect(id);
	return tap_done();
}
