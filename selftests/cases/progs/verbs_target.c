// SPDX-License-Identifier: GPL-2.0
/*
 * An ordinary user of verbs, as the target of any kind of peer.
 *
 *     verbs_target [-l LENGTH] ADDRESS PORT
 *
 * One region of LENGTH bytes (8 KiB), starting 100 bytes into a page, is registered under several
 * keys. The private data of its accept has them: struct offer, big endian. Each connection has 16
 * receives of 4096 bytes; if one that was not obeyed contains data, the target reports it at the
 * end (`1 touched receive 0`). A received message is a command:
 *
 *     E...                         SEND the message back
 *     R stag(4) offset(8) size(4)  READ from the peer
 *     G                            SEND `ok` if the bytes around the region are intact
 *     L                            SEND from a region that does not exist
 *     A offset(4)                  add 1 to the 8 bytes there in the region, again and again
 *     a                            no longer; SEND how often: count(8)
 *     D                            disconnect
 *
 * Events are lines on stdout that name the connection by its number: `1 established`, `1
 * disconnected`, `1 READ success, request 2` (its second READ), `async 5`. The program runs until
 * it is killed. With the address 0.0.0.0 connections can arrive by several devices; the region is
 * registered with each.
 */
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/access.h"
#include "common/pair.h"
#include "common/post.h"
#include "common/random.h"
#include "common/region.h"
#include "common/tap.h"

#define RECEIVES 16
#define ROOM 4096
#define CONNECTIONS 512
#define DEPTH 4
#define DEVICES 2

struct offer {
	uint64_t addr;
	uint32_t length;
	uint32_t all, readable, writable, local, other_pd, revocable;
	/* For atomic operations; the second one in another PD. */
	uint32_t atomic, other_atomic;
} __attribute__((packed));

/* A device by which connections have arrived. */
struct device {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct offer offer;
};

struct connection {
	int number;
	struct device *device;
	struct rdma_cm_id *id;
	struct ibv_cq *cq;
	uint8_t *memory;		/* receive slots, then send slots */
	struct ibv_mr *mr;
	unsigned int sends, reads;
};

static struct device devices[DEVICES];
static struct region region;
static uint32_t region_length = 8192;
static int count;
static pthread_t adder;
static atomic_bool adding;

static uint32_t key(struct ibv_pd *in, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(in, region.bytes, region_length, access);

	if (!mr)
		tap_bail("ibv_reg_mr, access %#x", access);
	return htobe32(mr->rkey);
}

/* A peer may invalidate these regions, too. */
#define ATOMIC (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND)

static void prepare(struct device *device, struct ibv_context *ctx)
{
	struct offer *offer = &device->offer;
	struct ibv_pd *pd = ibv_alloc_pd(ctx), *other_pd = ibv_alloc_pd(ctx);

	device->channel = ibv_create_comp_channel(ctx);
	if (!pd || !other_pd || !device->channel)
		tap_bail("resources");
	device->context = ctx;
	device->pd = pd;
	offer->addr = htobe64((uintptr_t)region.bytes);
	offer->length = htobe32(region_length);
	offer->all = key(pd, ALL);
	offer->readable = key(pd, IBV_ACCESS_REMOTE_READ);
	offer->writable = key(pd, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	offer->local = key(pd, IBV_ACCESS_LOCAL_WRITE);
	offer->other_pd = key(other_pd, REVOCABLE);
	offer->revocable = key(pd, REVOCABLE);
	offer->atomic = key(pd, ATOMIC);
	offer->other_atomic = key(other_pd, ATOMIC);
}

/* Returns the device of a connection. The first one makes the region. */
static struct device *device_of(struct ibv_context *ctx)
{
	struct rng rng = { 2026 };

	for (int i = 0; i < DEVICES; i++) {
		if (devices[i].context == ctx)
			return &devices[i];
		if (devices[i].context)
			continue;
		if (!region.map)
			region_make(&region, &rng, region_length, 100);
		prepare(&devices[i], ctx);
		return &devices[i];
	}
	tap_bail("more than %d devices", DEVICES);
}

/* The contents of a receive before anything is placed in it. */
#define BLANK 0xa5

static void post_again(struct connection *c, uint64_t slot)
{
	struct ibv_sge sge = { (uintptr_t)c->memory + slot * ROOM, ROOM, c->mr->lkey };

	memset(c->memory + slot * ROOM, BLANK, ROOM);
	post_recv(c->id->qp, slot, &sge, 1);
}

static void connection_open(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .sq_sig_all = 1 };
	struct connection *c = calloc(1, sizeof(*c));

	c->device = device_of(id->verbs);
	c->number = ++count;
	c->id = id;
	id->context = c;
	c->memory = aligned_alloc(4096, 2 * RECEIVES * ROOM);
	c->mr = ibv_reg_mr(c->device->pd, c->memory, 2 * RECEIVES * ROOM, ALL);
	c->cq = ibv_create_cq(id->verbs, 4 * RECEIVES, c, c->device->channel, 0);
	init.send_cq = init.recv_cq = c->cq;
	init.cap.max_send_wr = init.cap.max_recv_wr = RECEIVES;
	init.cap.max_send_sge = init.cap.max_recv_sge = 1;
	if (!c->mr || !c->cq || rdma_create_qp(id, c->device->pd, &init))
		tap_bail("connection %d", c->number);
	ibv_req_notify_cq(c->cq, 0);
	for (int i = 0; i < RECEIVES; i++)
		post_again(c, i);
}

/* Reports the first receive of an ended connection with data that was not obeyed. */
static void show_touched(const struct connection *c)
{
	for (int i = 0; i < RECEIVES * ROOM; i++)
		if (c->memory[i] != BLANK) {
			printf("%d touched receive %d\n", c->number, i / ROOM);
			return;
		}
}

static void connection_close(struct connection *c)
{
	rdma_destroy_qp(c->id);
	ibv_destroy_cq(c->cq);
	ibv_dereg_mr(c->mr);
	rdma_destroy_id(c->id);
	free(c->memory);
	free(c);
}

/* Returns a send slot that is not in use, for up to the queue's capacity. */
static uint8_t *send_slot(struct connection *c)
{
	return c->memory + (RECEIVES + c->sends++ % RECEIVES) * ROOM;
}

static void answer(struct connection *c, const void *data, uint32_t length)
{
	uint8_t *slot = send_slot(c);
	struct ibv_sge sge = { (uintptr_t)slot, length, c->mr->lkey };

	memcpy(slot, data, length);
	if (post_send(c->id->qp, 1, IBV_WR_SEND, &sge, 1, 0, 0))
		printf("%d cannot SEND\n", c->number);
}

static void fail_locally(struct connection *c)
{
	struct ibv_sge sge = { (uintptr_t)send_slot(c), 1, c->mr->lkey ^ 0x100 };

	if (post_send(c->id->qp, 1, IBV_WR_SEND, &sge, 1, 0, 0))
		printf("%d cannot SEND\n", c->number);
}

static void read_peer(struct connection *c, const uint8_t *command)
{
	uint32_t stag, length;
	uint64_t offset;
	struct ibv_sge sge = { (uintptr_t)send_slot(c), 0, c->mr->lkey };

	memcpy(&stag, command + 1, 4);
	memcpy(&offset, command + 5, 8);
	memcpy(&length, command + 13, 4);
	sge.length = be32toh(length);
	if (sge.length > ROOM)
		sge.length = ROOM;
	if (post_rdma(c->id->qp, ++c->reads, IBV_WR_RDMA_READ, &sge, 1, 0, be64toh(offset), be32toh(stag)))
		printf("%d cannot READ\n", c->number);
}

static bool guards_intact(void)
{
	memcpy(region_wanted(&region, region.bytes), region.bytes, region_length);
	return !memcmp(region.map, region.wanted, region.map_length);
}

/* Adds until it is stopped. Returns how often. */
static void *add(void *word)
{
	uintptr_t added = 0;

	for (; atomic_load_explicit(&adding, memory_order_relaxed); added++)
		__atomic_fetch_add((uint64_t *)word, 1, __ATOMIC_SEQ_CST);
	return (void *)added;
}

static void start_adding(const uint8_t *command)
{
	uint32_t offset;

	memcpy(&offset, command + 1, 4);
	offset = be32toh(offset);
	if (atomic_exchange(&adding, true) || offset > region_length - 8 ||
	    pthread_create(&adder, NULL, add, region.bytes + offset))
		tap_bail("cannot add at %u", offset);
}

static void stop_adding(struct connection *c)
{
	uint64_t added;
	void *result;

	if (!atomic_exchange(&adding, false) || pthread_join(adder, &result))
		tap_bail("nothing adds");
	added = htobe64((uintptr_t)result);
	answer(c, &added, sizeof(added));
}

static void obey(struct connection *c, const uint8_t *command, uint32_t length)
{
	switch (length ? *command : 0) {
	case 'E':
		answer(c, command, length);
		break;
	case 'R':
		read_peer(c, command);
		break;
	case 'G':
		answer(c, guards_intact() ? "ok" : "no", 2);
		break;
	case 'L':
		fail_locally(c);
		break;
	case 'A':
		start_adding(command);
		break;
	case 'a':
		stop_adding(c);
		break;
	case 'D':
		rdma_disconnect(c->id);
		break;
	}
}

static const char *opcode_name(const struct ibv_wc *wc)
{
	switch (wc->opcode) {
	case IBV_WC_RDMA_READ:
		return "READ";
	case IBV_WC_SEND:
		return "SEND";
	default:
		return "RECV";
	}
}

static void show(const struct connection *c, const struct ibv_wc *wc)
{
	printf("%d %s %s, request %llu\n", c->number, opcode_name(wc), ibv_wc_status_str(wc->status),
	       (unsigned long long)wc->wr_id);
}

static void on_completion(struct device *device)
{
	struct connection *c;
	struct ibv_cq *cq;
	struct ibv_wc wc;

	if (ibv_get_cq_event(device->channel, &cq, (void **)&c))
		return;
	ibv_ack_cq_events(cq, 1);
	ibv_req_notify_cq(cq, 0);
	while (ibv_poll_cq(cq, 1, &wc) > 0) {
		/* A flush adds nothing to the earlier completion. */
		if (wc.status != IBV_WC_WR_FLUSH_ERR)
			show(c, &wc);
		if (wc.status != IBV_WC_SUCCESS || wc.opcode != IBV_WC_RECV)
			continue;
		obey(c, c->memory + wc.wr_id * ROOM, wc.byte_len);
		post_again(c, wc.wr_id);
	}
}

static void on_async(struct device *device)
{
	struct ibv_async_event event;

	if (ibv_get_async_event(device->context, &event))
		return;
	printf("async %s\n", ibv_event_type_str(event.event_type));
	ibv_ack_async_event(&event);
}

static void on_cm(struct rdma_event_channel *events)
{
	struct rdma_conn_param param = {
		.responder_resources = DEPTH, .initiator_depth = DEPTH,
		.private_data_len = sizeof(struct offer),
	};
	struct rdma_cm_event *event;
	struct connection *c = NULL;
	struct rdma_cm_id *id;
	enum rdma_cm_event_type type;
	int status;

	if (rdma_get_cm_event(events, &event))
		return;
	id = event->id;
	type = event->event;
	status = event->status;
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST)
		printf("request with %u bytes\n", event->param.conn.private_data_len);
	rdma_ack_cm_event(event);
	switch (type) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		if (count == CONNECTIONS)
			tap_bail("more than %d connections", CONNECTIONS);
		connection_open(id);
		c = id->context;
		param.private_data = &c->device->offer;
		if (rdma_accept(id, &param)) {
			printf("%d cannot accept\n", count);
			connection_close(id->context);
		}
		break;
	default:
		c = id->context;
		printf("%d %s %d\n", c ? c->number : 0, rdma_event_str(type), status);
		if (c && type != RDMA_CM_EVENT_ESTABLISHED && type != RDMA_CM_EVENT_TIMEWAIT_EXIT) {
			struct ibv_wc wc;

			rdma_disconnect(id);
			while (ibv_poll_cq(c->cq, 1, &wc) > 0)
				if (wc.status != IBV_WC_WR_FLUSH_ERR)
					show(c, &wc);
			if (qp_reaches(id->qp, IBV_QPS_ERR, 5000)) {
				show_touched(c);
				printf("%d QP in ERROR\n", c->number);
			} else {
				printf("%d QP in state %d\n", c->number, qp_state(id->qp));
			}
			connection_close(c);
		}
	}
}

static void start(struct rdma_event_channel *events, char *address, char *port)
{
	struct rdma_addrinfo hints = {
		.ai_flags = RAI_NUMERICHOST | RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP,
	}, *info;
	struct rdma_cm_id *id;

	if (rdma_create_id(events, &id, NULL, RDMA_PS_TCP) || rdma_getaddrinfo(address, port, &hints, &info))
		tap_bail("address");
	if (rdma_bind_addr(id, info->ai_src_addr) || rdma_listen(id, 64))
		tap_bail("rdma_listen");
	rdma_freeaddrinfo(info);
	puts("listening");
}

int main(int argc, char **argv)
{
	struct rdma_event_channel *events = rdma_create_event_channel();
	struct pollfd fds[1 + 2 * DEVICES];
	int option;

	while ((option = getopt(argc, argv, "l:")) != -1) {
		if (option != 'l')
			return 2;
		region_length = atoi(optarg);
	}
	if (argc - optind != 2 || !events)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	start(events, argv[optind], argv[optind + 1]);
	for (;;) {
		fds[0] = (struct pollfd){ .fd = events->fd, .events = POLLIN };
		for (int i = 0; i < DEVICES; i++) {
			bool used = devices[i].context;

			fds[1 + 2 * i] = (struct pollfd){
				.fd = used ? devices[i].channel->fd : -1, .events = POLLIN,
			};
			fds[2 + 2 * i] = (struct pollfd){
				.fd = used ? devices[i].context->async_fd : -1, .events = POLLIN,
			};
		}
		if (poll(fds, 1 + 2 * DEVICES, -1) < 0 && errno != EINTR)
			return 1;
		for (int i = 0; i < DEVICES; i++) {
			if (fds[1 + 2 * i].revents)
				on_completion(&devices[i]);
			if (fds[2 + 2 * i].revents)
				on_async(&devices[i]);
		}
		if (fds[0].revents)
			on_cm(events);
	}
}
