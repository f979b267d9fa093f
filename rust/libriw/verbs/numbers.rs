// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

//! libriw passes opcodes, statuses and flags on without a translation: riw's ABI has the numbers of
//! `infiniband/verbs.h`. `selftests/provider/check_layout` compares the latter with the header.

use crate::ffi::verbs::*;
use riw_abi::cqe::{self, status};
use riw_abi::wr::{self, flags};

/// Checks at compile time that numbers of riw's ABI are those of verbs.
macro_rules! assert_same {
    ($($own:expr => $verbs:expr,)+) => {
        // CAST: To a wider type. `u32::from` cannot be called here.
        #[allow(clippy::as_conversions)]
        const _: () = {
            $(assert!($own as u32 == $verbs);)+
        };
    };
}

// WRs.
assert_same! {
    wr::opcode::WRITE => IBV_WR_RDMA_WRITE,
    wr::opcode::WRITE_WITH_IMM => IBV_WR_RDMA_WRITE_WITH_IMM,
    wr::opcode::SEND => IBV_WR_SEND,
    wr::opcode::READ => IBV_WR_RDMA_READ,
    wr::opcode::COMPARE_SWAP => IBV_WR_ATOMIC_CMP_AND_SWP,
    wr::opcode::FETCH_ADD => IBV_WR_ATOMIC_FETCH_AND_ADD,
    wr::opcode::LOCAL_INVALIDATE => IBV_WR_LOCAL_INV,
    wr::opcode::BIND_MW => IBV_WR_BIND_MW,
    wr::opcode::SEND_WITH_INVALIDATE => IBV_WR_SEND_WITH_INV,

    flags::FENCE => IBV_SEND_FENCE,
    flags::SIGNALED => IBV_SEND_SIGNALED,
    flags::SOLICITED => IBV_SEND_SOLICITED,
    flags::INLINE => IBV_SEND_INLINE,
}

// Completions.
assert_same! {
    cqe::opcode::SEND => IBV_WC_SEND,
    cqe::opcode::WRITE => IBV_WC_RDMA_WRITE,
    cqe::opcode::READ => IBV_WC_RDMA_READ,
    cqe::opcode::COMPARE_SWAP => IBV_WC_COMP_SWAP,
    cqe::opcode::FETCH_ADD => IBV_WC_FETCH_ADD,
    cqe::opcode::BIND_MW => IBV_WC_BIND_MW,
    cqe::opcode::LOCAL_INVALIDATE => IBV_WC_LOCAL_INV,
    cqe::opcode::RECEIVE => IBV_WC_RECV,
    cqe::opcode::RECEIVE_WRITE_WITH_IMM => IBV_WC_RECV_RDMA_WITH_IMM,

    status::SUCCESS => IBV_WC_SUCCESS,
    status::LOCAL_LENGTH => IBV_WC_LOC_LEN_ERR,
    status::LOCAL_OPERATION => IBV_WC_LOC_QP_OP_ERR,
    status::LOCAL_PROTECTION => IBV_WC_LOC_PROT_ERR,
    status::FLUSHED => IBV_WC_WR_FLUSH_ERR,
    status::BIND => IBV_WC_MW_BIND_ERR,
    status::LOCAL_ACCESS => IBV_WC_LOC_ACCESS_ERR,
    status::REMOTE_INVALID => IBV_WC_REM_INV_REQ_ERR,
    status::REMOTE_ACCESS => IBV_WC_REM_ACCESS_ERR,
    status::REMOTE_OPERATION => IBV_WC_REM_OP_ERR,
    status::GENERAL => IBV_WC_GENERAL_ERR,
}
