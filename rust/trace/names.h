/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The enums of the trace events, and the names that they are printed by. A list has a macro for
 * each value, which events.h defines for each use of the list.
 */
#ifndef RIW_TRACE_NAMES_H
#define RIW_TRACE_NAMES_H

#include <rdma/siw-abi.h>

#define RIW_CM_PHASES							\
	riw_name(RIW_CM_NEW, "NEW")					\
	riw_name(RIW_CM_CONNECTING, "CONNECTING")			\
	riw_name(RIW_CM_AWAIT_REPLY, "AWAIT_REPLY")			\
	riw_name(RIW_CM_AWAIT_REQUEST, "AWAIT_REQUEST")			\
	riw_name(RIW_CM_QUEUED, "QUEUED")				\
	riw_name(RIW_CM_REPORTED, "REPORTED")				\
	riw_name(RIW_CM_AWAIT_FIRST, "AWAIT_FIRST")			\
	riw_name(RIW_CM_RDMA, "RDMA")					\
	riw_last(RIW_CM_CLOSED, "CLOSED")

#define RIW_QP_STATES							\
	riw_name(RIW_QP_IDLE, "IDLE")					\
	riw_name(RIW_QP_RTS, "RTS")					\
	riw_name(RIW_QP_DRAINING, "DRAINING")				\
	riw_name(RIW_QP_CLOSING, "CLOSING")				\
	riw_name(RIW_QP_TERMINATE, "TERMINATE")				\
	riw_last(RIW_QP_ERROR, "ERROR")

#define RIW_QP_EVENTS							\
	riw_name(RIW_QP_ESTABLISHED, "ESTABLISHED")			\
	riw_name(RIW_QP_CLOSE, "CLOSE")					\
	riw_name(RIW_QP_DRAINED, "DRAINED")				\
	riw_name(RIW_QP_ABORT, "ABORT")					\
	riw_name(RIW_QP_PEER_CLOSED, "PEER_CLOSED")			\
	riw_name(RIW_QP_PEER_CLOSED_EARLY, "PEER_CLOSED_EARLY")		\
	riw_name(RIW_QP_FAILED, "FAILED")				\
	riw_name(RIW_QP_TERMINATE_RECEIVED, "TERMINATE_RECEIVED")	\
	riw_name(RIW_QP_LOST, "LOST")					\
	riw_last(RIW_QP_RESET, "RESET")

/* RFC 5040, section 4.3; RFC 7306, section 4. */
#define RIW_RDMAP_OPCODES						\
	riw_name(RIW_RDMAP_WRITE, "WRITE")				\
	riw_name(RIW_RDMAP_READ_REQUEST, "READ_REQUEST")		\
	riw_name(RIW_RDMAP_READ_RESPONSE, "READ_RESPONSE")		\
	riw_name(RIW_RDMAP_SEND, "SEND")				\
	riw_name(RIW_RDMAP_SEND_INV, "SEND_INV")			\
	riw_name(RIW_RDMAP_SEND_SE, "SEND_SE")				\
	riw_name(RIW_RDMAP_SEND_SE_INV, "SEND_SE_INV")			\
	riw_name(RIW_RDMAP_TERMINATE, "TERMINATE")			\
	riw_name(RIW_RDMAP_IMMEDIATE, "IMMEDIATE")			\
	riw_name(RIW_RDMAP_IMMEDIATE_SE, "IMMEDIATE_SE")		\
	riw_name(RIW_RDMAP_ATOMIC_REQUEST, "ATOMIC_REQUEST")		\
	riw_last(RIW_RDMAP_ATOMIC_RESPONSE, "ATOMIC_RESPONSE")

/* The layers of a Terminate (RFC 5040, section 4.8). */
#define RIW_LAYERS							\
	riw_name(RIW_LAYER_RDMAP, "RDMAP")				\
	riw_name(RIW_LAYER_DDP, "DDP")					\
	riw_last(RIW_LAYER_MPA, "MPA")

/* The lists above begin with value 0. */
#define riw_name(value, name) value,
#define riw_last(value, name) value,
enum riw_cm_phase { RIW_CM_PHASES };
enum riw_qp_state { RIW_QP_STATES };
enum riw_qp_event { RIW_QP_EVENTS };
enum riw_rdmap_opcode { RIW_RDMAP_OPCODES };
enum riw_layer { RIW_LAYERS };
#undef riw_name
#undef riw_last

/* Opcodes that siw's user ABI lacks, above its own. */
enum riw_wr_opcode {
	RIW_WR_WRITE_WITH_IMM = 64,
	RIW_WR_RECV_WITH_IMM,
	RIW_WR_MASKED_COMP_SWAP,
	RIW_WR_MASKED_FETCH_ADD,
};

/* Opcodes of WRs and completions, by the names of enum ib_wr_opcode and enum ib_wc_opcode. */
#define RIW_WC_OPCODES							\
	riw_name(RIW_WR_WRITE_WITH_IMM, "RDMA_WRITE_WITH_IMM")		\
	riw_name(RIW_WR_RECV_WITH_IMM, "RECV_RDMA_WITH_IMM")		\
	riw_name(RIW_WR_MASKED_COMP_SWAP, "MASKED_COMP_SWAP")		\
	riw_name(RIW_WR_MASKED_FETCH_ADD, "MASKED_FETCH_ADD")		\
	riw_name(SIW_OP_WRITE, "RDMA_WRITE")				\
	riw_name(SIW_OP_READ, "RDMA_READ")				\
	riw_name(SIW_OP_SEND, "SEND")					\
	riw_name(SIW_OP_SEND_REMOTE_INV, "SEND_WITH_INV")		\
	riw_name(SIW_OP_FETCH_AND_ADD, "FETCH_ADD")			\
	riw_name(SIW_OP_COMP_AND_SWAP, "COMP_SWAP")			\
	riw_name(SIW_OP_INVAL_STAG, "LOCAL_INV")			\
	riw_name(SIW_OP_REG_MR, "REG_MR")				\
	riw_name(SIW_NUM_OPCODES, "BIND_MW")				\
	riw_last(SIW_OP_RECEIVE, "RECV")

/* Statuses of the user ABI, by the names of enum ib_wc_status. */
#define RIW_WC_STATUSES							\
	riw_name(SIW_WC_SUCCESS, "SUCCESS")				\
	riw_name(SIW_WC_LOC_LEN_ERR, "LOC_LEN_ERR")			\
	riw_name(SIW_WC_LOC_PROT_ERR, "LOC_PROT_ERR")			\
	riw_name(SIW_WC_LOC_QP_OP_ERR, "LOC_QP_OP_ERR")			\
	riw_name(SIW_WC_WR_FLUSH_ERR, "WR_FLUSH_ERR")			\
	riw_name(SIW_NUM_WC_STATUS, "MW_BIND_ERR")			\
	riw_name(SIW_WC_LOC_ACCESS_ERR, "LOC_ACCESS_ERR")		\
	riw_name(SIW_WC_REM_ACCESS_ERR, "REM_ACCESS_ERR")		\
	riw_name(SIW_WC_REM_INV_REQ_ERR, "REM_INV_REQ_ERR")		\
	riw_last(SIW_WC_GENERAL_ERR, "GENERAL_ERR")

#define RIW_WR_FLAGS							\
	riw_name(SIW_WQE_INLINE, "INLINE")				\
	riw_name(SIW_WQE_SIGNALLED, "SIGNALED")				\
	riw_name(SIW_WQE_SOLICITED, "SOLICITED")			\
	riw_last(SIW_WQE_READ_FENCE, "FENCE")

#endif
