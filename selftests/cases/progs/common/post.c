// SPDX-License-Identifier: GPL-2.0
#include "post.h"

int post_recv(struct ibv_qp *qp, uint64_t wr_id, struct ibv_sge *sge, int num_sge)
{
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = sge, .num_sge = num_sge }, *bad;

	return ibv_post_recv(qp, &wr, &bad);
}

int post_srq_recv(struct ibv_srq *srq, uint64_t wr_id, struct ibv_sge *sge, int num_sge)
{
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = sge, .num_sge = num_sge }, *bad;

	return ibv_post_srq_recv(srq, &wr, &bad);
}

/*
 * The union members for SEND_WITH_INV and RDMA overlap. Stock libsiw takes the key to invalidate
 * from the RDMA member, other providers from invalidate_rkey: set both.
 */
int post_send(struct ibv_qp *qp, uint64_t wr_id, enum ibv_wr_opcode opcode, struct ibv_sge *sge,
	      int num_sge, unsigned int flags, uint32_t rkey)
{
	struct ibv_send_wr wr = {
		.wr_id = wr_id, .sg_list = sge, .num_sge = num_sge,
		.opcode = opcode, .send_flags = flags,
	}, *bad;

	if (opcode == IBV_WR_SEND_WITH_INV) {
		wr.invalidate_rkey = rkey;
		wr.wr.rdma.rkey = rkey;
	}
	return ibv_post_send(qp, &wr, &bad);
}

int post_rdma(struct ibv_qp *qp, uint64_t wr_id, enum ibv_wr_opcode opcode, struct ibv_sge *sge,
	      int num_sge, unsigned int flags, uint64_t remote_addr, uint32_t rkey)
{
	struct ibv_send_wr wr = {
		.wr_id = wr_id, .sg_list = sge, .num_sge = num_sge,
		.opcode = opcode, .send_flags = flags,
		.wr.rdma = { .remote_addr = remote_addr, .rkey = rkey },
	}, *bad;

	return ibv_post_send(qp, &wr, &bad);
}

int post_atomic(struct ibv_qp *qp, uint64_t wr_id, enum ibv_wr_opcode opcode, const struct ibv_sge *sge,
		uint64_t remote_addr, uint32_t rkey, uint64_t compare_add, uint64_t swap)
{
	struct ibv_sge result = { sge->addr, 8, sge->lkey };
	struct ibv_send_wr wr = {
		.wr_id = wr_id, .sg_list = &result, .num_sge = 1,
		.opcode = opcode, .send_flags = IBV_SEND_SIGNALED,
		.wr.atomic = {
			.remote_addr = remote_addr, .rkey = rkey,
			.compare_add = compare_add, .swap = swap,
		},
	}, *bad;

	return ibv_post_send(qp, &wr, &bad);
}
