// SPDX-License-Identifier: GPL-2.0

//! Opcodes of WRs and completions in events that siw's user ABI does not have.

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
