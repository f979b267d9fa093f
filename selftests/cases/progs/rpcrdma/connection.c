// SPDX-License-Identifier: GPL-2.0
#include "connection.h"

#include <inttypes.h>
#include <rdma/siw-abi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/clock.h"
#include "../common/completion.h"
#include "../common/post.h"
#include "../common/rings.h"
#include "../common/tap.h"

/* --- set-up */

static void *memory(size_t bytes)
{
	void *at = calloc(1, bytes);

	if (!at)
		tap_bail("memory");
	return at;
}

static struct ibv_mr *own(struct connection *c, void *at, size_t bytes)
{
	struct ibv_mr *mr = ibv_reg_mr(c->pd, at, bytes, IBV_ACCESS_LOCAL_WRITE);

	if (!mr)
		tap_bail("ibv_reg_mr of %zu bytes", bytes);
	return mr;
}

/* Makes the CQ of the Receives, and finds its ring. */
static void make_rcq(struct connection *c)
{
	struct ring before[RINGS_MAX], made[RINGS_MAX];
	int count = rings_find(before);

	c->arrivals = ibv_create_comp_channel(c->id->verbs);
	if (!c->arrivals)
		tap_bail("ibv_create_comp_channel");
	c->rcq = ibv_create_cq(c->id->verbs, RECEIVES + 1, NULL, c->arrivals, 0);
	if (!c->rcq)
		tap_bail("ibv_create_cq");
	if (rings_find_new(before, count, made) != 1 ||
	    made[0].bytes < c->rcq->cqe * sizeof(struct siw_cqe))
		tap_bail("the ring of a CQ");
	c->received = (const struct siw_cqe *)made[0].at;
}

static void make_qp(struct connection *c)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = SENDS, .max_recv_wr = RECEIVES, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};

	c->pd = ibv_alloc_pd(c->id->verbs);
	c->scq = ibv_create_cq(c->id->verbs, SENDS + 1, NULL, NULL, 0);
	if (!c->pd || !c->scq)
		tap_bail("a PD and a CQ");
	make_rcq(c);
	init.send_cq = c->scq;
	init.recv_cq = c->rcq;
	if (rdma_create_qp(c->id, c->pd, &init))
		tap_bail("rdma_create_qp");
	c->qp = c->id->qp;
}

static int post_slot(struct connection *c, uint64_t slot)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)c->receives + slot * c->receive,
		.length = c->receive,
		.lkey = c->receive_mr->lkey,
	};

	return post_recv(c->qp, slot, &sge, 1);
}

void connection_prepare(struct connection *c, uint32_t receive)
{
	c->receive = receive ? receive : RECEIVE_BYTES;
	make_qp(c);
	c->receives = memory((size_t)RECEIVES * c->receive);
	c->receive_mr = own(c, c->receives, (size_t)RECEIVES * c->receive);
	c->sends = memory(SENDS * SEND_BYTES);
	c->send_mr = own(c, c->sends, SENDS * SEND_BYTES);
	for (int i = 0; i < RECEIVES; i++)
		if (post_slot(c, i))
			tap_bail("posting a Receive");
}

void connection_close(struct connection *c)
{
	bool all;

	rdma_disconnect(c->id);
	rdma_destroy_qp(c->id);
	all = !ibv_dereg_mr(c->send_mr);
	all &= !ibv_dereg_mr(c->receive_mr);
	all &= !ibv_destroy_cq(c->scq);
	all &= !ibv_destroy_cq(c->rcq);
	all &= !ibv_destroy_comp_channel(c->arrivals);
	all &= !ibv_dealloc_pd(c->pd);
	all &= !rdma_destroy_id(c->id);
	rdma_destroy_event_channel(c->events);
	free(c->receives);
	free(c->sends);
	tap_check(all, "an object of a connection cannot be destroyed");
}

/* --- messages */

/* Takes completions until no more than `left` work requests of the send queue are outstanding. */
static bool drain(struct connection *c, uint64_t left)
{
	while (c->posted - c->completed > left) {
		if (!cq_expect(c->scq, c->completed, IBV_WC_SUCCESS, NULL))
			return false;
		c->completed++;
	}
	return true;
}

static bool send_message(struct connection *c, enum ibv_wr_opcode opcode, const void *bytes,
			 size_t length, uint32_t stag)
{
	uint8_t *slot = c->sends + c->posted % SENDS * SEND_BYTES;
	struct ibv_sge sge = { .addr = (uintptr_t)slot, .length = length, .lkey = c->send_mr->lkey };
	int status;

	if (length > SEND_BYTES)
		tap_bail("a message of %zu bytes", length);
	if (!drain(c, SENDS - 1))
		return false;
	memcpy(slot, bytes, length);
	status = post_send(c->qp, c->posted, opcode, &sge, length ? 1 : 0, IBV_SEND_SIGNALED, stag);
	if (!tap_check(!status, "posting a Send of %zu bytes: %s", length, strerror(status)))
		return false;
	c->posted++;
	return true;
}

bool connection_send(struct connection *c, const void *bytes, size_t length)
{
	return send_message(c, IBV_WR_SEND, bytes, length, 0);
}

bool connection_send_invalidating(struct connection *c, const void *bytes, size_t length,
				  uint32_t stag)
{
	return send_message(c, IBV_WR_SEND_WITH_INV, bytes, length, stag);
}

bool connection_try_rdma(struct connection *c, enum ibv_wr_opcode opcode, struct ibv_sge *sge,
			 uint64_t remote_addr, uint32_t stag, enum ibv_wc_status *status)
{
	struct ibv_wc wc;
	int error;

	if (!drain(c, 0))
		return false;
	error = post_rdma(c->qp, c->posted, opcode, sge, 1, IBV_SEND_SIGNALED, remote_addr, stag);
	if (!tap_check(!error, "posting an RDMA operation: %s", strerror(error)))
		return false;
	c->posted++;
	if (!tap_check(cq_next(c->scq, &wc, PATIENCE), "no completion of an RDMA operation"))
		return false;
	c->completed++;
	*status = wc.status;
	return true;
}

bool connection_rdma(struct connection *c, enum ibv_wr_opcode opcode, struct ibv_sge *sge,
		     uint64_t remote_addr, uint32_t stag)
{
	enum ibv_wc_status status;

	return connection_try_rdma(c, opcode, sge, remote_addr, stag, &status) &&
	       tap_check(status == IBV_WC_SUCCESS, "RDMA %s of %u bytes, STag %#x: %s",
			 opcode == IBV_WR_RDMA_READ ? "Read" : "Write", sge->length, stag,
			 ibv_wc_status_str(status));
}

/* Takes the message of a Receive that has succeeded, and posts it again. */
static bool take_message(struct connection *c, const struct ibv_wc *wc, struct message *message)
{
	message->length = wc->byte_len;
	memcpy(message->bytes, c->receives + wc->wr_id * c->receive, wc->byte_len);
	/* Stock libsiw does not report the STag in the completion. */
	message->invalidated = c->received[c->receives_done++ % c->rcq->cqe].inval_stag;
	return tap_check(!post_slot(c, wc->wr_id), "posting a Receive again");
}

bool connection_receive(struct connection *c, struct message *message)
{
	struct ibv_wc wc;

	return tap_check(cq_next(c->rcq, &wc, PATIENCE), "no message of the peer") &&
	       tap_check(wc.status == IBV_WC_SUCCESS, "instead of a message of the peer: %s",
			 ibv_wc_status_str(wc.status)) &&
	       take_message(c, &wc, message);
}

bool connection_poll(struct connection *c, struct message *message)
{
	struct ibv_wc wc;

	return ibv_poll_cq(c->rcq, 1, &wc) > 0 && wc.status == IBV_WC_SUCCESS &&
	       take_message(c, &wc, message);
}

bool connection_silent(struct connection *c)
{
	struct ibv_wc wc;

	if (!cq_next(c->rcq, &wc, SILENCE))
		return true;
	return tap_check(false, "the peer is not silent: %u bytes, %s", wc.byte_len,
			 ibv_wc_status_str(wc.status));
}

/* --- the end of a connection */

/*
 * Adds up the device's counters of Terminates, which may be a few milliseconds old. Returns false if
 * the device has none.
 */
static bool read_terminates(const struct connection *c, enum way way, uint64_t *sum)
{
	static const char *const layers[] = { "rdmap", "ddp", "mpa" };
	char path[256];
	uint64_t value;
	bool read;
	FILE *file;

	*sum = 0;
	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof(path),
			 "/sys/class/infiniband/%s/ports/1/hw_counters/%s_terminates_%s",
			 ibv_get_device_name(c->id->verbs->device), way == SENT ? "tx" : "rx",
			 layers[i]);
		file = fopen(path, "r");
		if (!file)
			return false;
		read = fscanf(file, "%" SCNu64, &value) == 1;
		fclose(file);
		if (!read)
			return false;
		*sum += value;
	}
	return true;
}

#define COUNTER_AGE 20

uint64_t terminates(const struct connection *c, enum way way)
{
	uint64_t now;

	sleep_ms(COUNTER_AGE);
	return read_terminates(c, way, &now) ? now : 0;
}

bool terminated(const struct connection *c, enum way way, uint64_t before)
{
	int64_t end = now_ms() + PATIENCE;
	uint64_t now;
	bool read;

	while ((read = read_terminates(c, way, &now)) && now == before && now_ms() < end)
		sleep_ms(1);
	return tap_check(read, "the device does not count Terminates") &&
	       tap_check(now == before + 1, "%" PRIu64 " Terminates were %s, wanted 1",
			 now - before, way == SENT ? "sent" : "received");
}

bool connection_fails(struct connection *c, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	if (!cm_expect(c->events, RDMA_CM_EVENT_DISCONNECTED, NULL, NULL, NULL))
		return false;
	rdma_disconnect(c->id);
	return tap_check(cq_next(c->rcq, &wc, PATIENCE), "the Receives are not flushed") &&
	       tap_check(wc.status == status, "a Receive: %s, wanted %s", ibv_wc_status_str(wc.status),
			 ibv_wc_status_str(status));
}

bool connection_ends(struct connection *c)
{
	return connection_fails(c, IBV_WC_WR_FLUSH_ERR);
}
