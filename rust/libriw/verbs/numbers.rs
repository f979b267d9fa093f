// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

//! libriw passes opcodes, statuses and flags on without a translation: riw's ABI has the numbers of
//! `infiniband/verbs.h`. `selftests/provider/check_layout` compares the latter with the header.

use crate::ffi::verbs::*;
use riw_abi::cqe::{self, status};
use riw_abi::wr::{self, flags};

const fn byte(number: u8) -> u32 {
    u32::from_le_bytes([number, 0, 0, 0])
}

const fn flag(flag: u16) -> u32 {
    let [low, high] = flag.to_le_bytes();

    u32::from_le_bytes([low, high, 0, 0])
}

/// WRs.
const _: () = {
    assert!(byte(wr::opcode::WRITE) == IBV_WR_RDMA_WRITE);
    assert!(byte(wr::opcode::WRITE_WITH_IMM) == IBV_WR_RDMA_WRITE_WITH_IMM);
    assert!(byte(wr::opcode::SEND) == IBV_WR_SEND);
    assert!(byte(wr::opcode::READ) == IBV_WR_RDMA_READ);
    assert!(byte(wr::opcode::COMPARE_SWAP) == IBV_WR_ATOMIC_CMP_AND_SWP);
    assert!(byte(wr::opcode::FETCH_ADD) == IBV_WR_ATOMIC_FETCH_AND_ADD);
    assert!(byte(wr::opcode::LOCAL_INVALIDATE) == IBV_WR_LOCAL_INV);
    assert!(byte(wr::opcode::BIND_MW) == IBV_WR_BIND_MW);
    assert!(byte(wr::opcode::SEND_WITH_INVALIDATE) == IBV_WR_SEND_WITH_INV);

    assert!(flag(flags::FENCE) == IBV_SEND_FENCE);
    assert!(flag(flags::SIGNALED) == IBV_SEND_SIGNALED);
    assert!(flag(flags::SOLICITED) == IBV_SEND_SOLICITED);
    assert!(flag(flags::INLINE) == IBV_SEND_INLINE);
};

/// Completions.
const _: () = {
    assert!(byte(cqe::opcode::SEND) == IBV_WC_SEND);
    assert!(byte(cqe::opcode::WRITE) == IBV_WC_RDMA_WRITE);
    assert!(byte(cqe::opcode::READ) == IBV_WC_RDMA_READ);
    assert!(byte(cqe::opcode::COMPARE_SWAP) == IBV_WC_COMP_SWAP);
    assert!(byte(cqe::opcode::FETCH_ADD) == IBV_WC_FETCH_ADD);
    assert!(byte(cqe::opcode::BIND_MW) == IBV_WC_BIND_MW);
    assert!(byte(cqe::opcode::LOCAL_INVALIDATE) == IBV_WC_LOCAL_INV);
    assert!(byte(cqe::opcode::RECEIVE) == IBV_WC_RECV);
    assert!(byte(cqe::opcode::RECEIVE_WRITE_WITH_IMM) == IBV_WC_RECV_RDMA_WITH_IMM);

    assert!(byte(status::SUCCESS) == IBV_WC_SUCCESS);
    assert!(byte(status::LOCAL_LENGTH) == IBV_WC_LOC_LEN_ERR);
    assert!(byte(status::LOCAL_OPERATION) == IBV_WC_LOC_QP_OP_ERR);
    assert!(byte(status::LOCAL_PROTECTION) == IBV_WC_LOC_PROT_ERR);
    assert!(byte(status::FLUSHED) == IBV_WC_WR_FLUSH_ERR);
    assert!(byte(status::BIND) == IBV_WC_MW_BIND_ERR);
    assert!(byte(status::LOCAL_ACCESS) == IBV_WC_LOC_ACCESS_ERR);
    assert!(byte(status::REMOTE_INVALID) == IBV_WC_REM_INV_REQ_ERR);
    assert!(byte(status::REMOTE_ACCESS) == IBV_WC_REM_ACCESS_ERR);
    assert!(byte(status::REMOTE_OPERATION) == IBV_WC_REM_OP_ERR);
    assert!(byte(status::GENERAL) == IBV_WC_GENERAL_ERR);
};
