/* SPDX-License-Identifier: GPL-2.0 */
/* Posts single work requests. Each function returns the verb's result: 0 or an errno. */
#ifndef POST_H
#define POST_H

#include <infiniband/verbs.h>

int post_recv(struct ibv_qp *qp, uint64_t wr_id, struct ibv_sge *sge, int num_sge);
int post_srq_recv(struct ibv_srq *srq, uint64_t wr_id, struct ibv_sge *sge, int num_sge);

/* SEND; with IBV_WR_SEND_WITH_INV `rkey` is the key to invalidate. */
int post_send(struct ibv_qp *qp, uint64_t wr_id, enum ibv_wr_opcode opcode, struct ibv_sge *sge,
	      int num_sge, unsigned int flags, uint32_t rkey);

/* RDMA WRITE or READ. */
int post_rdma(struct ibv_qp *qp, uint64_t wr_id, enum ibv_wr_opcode opcode, struct ibv_sge *sge,
	      int num_sge, unsigned int flags, uint64_t remote_addr, uint32_t rkey);

/* An atomic operation, whose result takes the first 8 bytes of `sge`. Its completion is signaled. */
int post_atomic(struct ibv_qp *qp, uint64_t wr_id, enum ibv_wr_opcode opcode, const struct ibv_sge *sge,
		uint64_t remote_addr, uint32_t rkey, uint64_t compare_add, uint64_t swap);

#endif
