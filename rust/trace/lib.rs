// SPDX-License-Identifier: GPL-2.0

//! The trace events of riw: system `riw` in tracefs, perf and bpftrace.
//!
//! One function per event. All functions may be called in any context, with any lock held. A
//! disabled event costs one instruction, a no-op. Arguments are computed only if the event is
//! enabled, by a [`Source`] or a closure. For [`cm_phase`] the caller tests [`cm_phase_enabled`]
//! first.
//!
//! `events.h` defines the events, their fields and their formats. On a kernel without tracepoints
//! the functions do nothing.
//!
//! C header: [`include/linux/tracepoint.h`](srctree/include/linux/tracepoint.h)

#![crate_name = "trace"]
#![deny(missing_docs)]
#![cfg_attr(not(CONFIG_TRACEPOINTS), allow(unused_unsafe))]

mod cm;
mod cq;
mod post;
mod qp;
mod stream;
mod tracepoint;

pub use cm::{cm_phase, cm_phase_enabled, CmPhase, PhaseChange};
pub use cq::{cq_arm, cq_notify, wr_complete, Completed};
pub use post::{doorbell, recv_doorbell, srq_doorbell, srq_wr_post, wr_post, PostedWr};
pub use qp::{qp_state, stream_error, terminate_rx, terminate_tx, Source};
pub use stream::{fpdu_rx, fpdu_tx, place, wr_begin, Begun, Placed};

/// Opcodes of WRs and completions in events that siw's user ABI does not have.
pub mod opcode {
    use riw_bindings as bindings;

    // CAST: Small constants.
    /// RDMA Write with Immediate.
    pub const WRITE_WITH_IMM: u8 = bindings::riw_wr_opcode_RIW_WR_WRITE_WITH_IMM as u8;
    /// Receive of Immediate Data.
    pub const RECV_WITH_IMM: u8 = bindings::riw_wr_opcode_RIW_WR_RECV_WITH_IMM as u8;
    /// Masked atomic comparison and swap.
    pub const MASKED_COMP_SWAP: u8 = bindings::riw_wr_opcode_RIW_WR_MASKED_COMP_SWAP as u8;
    /// Masked atomic addition.
    pub const MASKED_FETCH_ADD: u8 = bindings::riw_wr_opcode_RIW_WR_MASKED_FETCH_ADD as u8;
}
