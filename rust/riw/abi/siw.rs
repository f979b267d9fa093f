// SPDX-License-Identifier: GPL-2.0

//! siw's user ABI, version 1, so that rdma-core's libsiw works with riw.
//!
//! C header: `include/uapi/rdma/siw-abi.h`. The rings are arrays of entries of 64-bit words. The
//! second word of an entry has the flags; [`VALID`] marks which side owns the entry.

use kernel::prelude::*;
use rdma::wc::{WcOpcode, WcStatus};

/// The driver id of siw (`RDMA_DRIVER_SIW`, `include/uapi/rdma/ib_user_ioctl_verbs.h`), for which
/// rdma-core chooses its libsiw.
pub(crate) const DRIVER_ID: u32 = 18;
/// The version of this ABI.
pub(crate) const VERSION: u32 = 1;

/// SGEs of a WR.
pub(crate) const MAX_SGE: usize = 6;
/// Maximum inline data, in bytes: the room of all SGEs but the first.
pub(crate) const MAX_INLINE: usize = 16 * (MAX_SGE - 1);
/// The mmap offset that means "no ring" to libsiw (`SIW_INVAL_UOBJ_KEY`). riw offers its rings
/// above it.
pub(crate) const INVALID_KEY: u64 = 0x09_0000;

/// Words of a send queue entry.
pub(crate) const SQE_WORDS: usize = 15;
/// Words of a receive queue entry.
pub(crate) const RQE_WORDS: usize = 14;
/// Words of a completion queue entry.
pub(crate) const CQE_WORDS: usize = 4;

/// The consumer of the ring owns the entry: the kernel for WRs, the process for CQEs.
pub(crate) const VALID: u16 = 1;
/// The entry contains the data.
pub(crate) const INLINE: u16 = 1 << 1;
/// The WR is signaled.
pub(crate) const SIGNALLED: u16 = 1 << 2;
/// The message is solicited: it triggers an event at the peer.
pub(crate) const SOLICITED: u16 = 1 << 3;
/// The WR waits for all earlier RDMA Reads (read fence).
pub(crate) const READ_FENCE: u16 = 1 << 4;
/// In a CQE: the message invalidated an STag.
pub(crate) const REMOTE_INVALIDATED: u16 = 1 << 5;

/// In the control word of a completion queue: armed for a solicited completion.
pub(crate) const NOTIFY_SOLICITED: u32 = 1;
/// In the control word of a completion queue: armed for any completion.
pub(crate) const NOTIFY_NEXT: u32 = 1 << 1;

/// The opcodes of WRs and completions (`enum siw_opcode`).
pub(crate) const OP_WRITE: u8 = 0;
pub(crate) const OP_READ: u8 = 1;
pub(crate) const OP_SEND: u8 = 3;
pub(crate) const OP_SEND_INVALIDATE: u8 = 5;
const OP_FETCH_ADD: u8 = 6;
const OP_CMP_SWAP: u8 = 7;
const OP_RECEIVE: u8 = 8;
const OP_LOCAL_INVALIDATE: u8 = 10;
const OP_REGISTER: u8 = 11;
/// Not one of siw: only for traces.
const OP_BIND_WINDOW: u8 = 12;

/// Returns the opcode of a WR or completion in trace events.
pub(crate) fn trace_opcode(opcode: WcOpcode) -> u8 {
    match opcode {
        WcOpcode::MaskedFetchAdd => trace::opcode::MASKED_FETCH_ADD,
        WcOpcode::MaskedCmpSwap => trace::opcode::MASKED_COMP_SWAP,
        WcOpcode::ReceiveImmediate => trace::opcode::RECV_WITH_IMM,
        other => wc_opcode(other),
    }
}

/// Returns the opcode of a completion. Processes neither post masked atomic operations nor get
/// Immediate Data by this ABI.
pub(crate) fn wc_opcode(opcode: WcOpcode) -> u8 {
    match opcode {
        WcOpcode::Send => OP_SEND,
        WcOpcode::SendInvalidate => OP_SEND_INVALIDATE,
        WcOpcode::Write => OP_WRITE,
        WcOpcode::Read => OP_READ,
        WcOpcode::LocalInvalidate => OP_LOCAL_INVALIDATE,
        WcOpcode::Register => OP_REGISTER,
        WcOpcode::BindWindow => OP_BIND_WINDOW,
        WcOpcode::FetchAdd | WcOpcode::MaskedFetchAdd => OP_FETCH_ADD,
        WcOpcode::CmpSwap | WcOpcode::MaskedCmpSwap => OP_CMP_SWAP,
        WcOpcode::Receive | WcOpcode::ReceiveImmediate => OP_RECEIVE,
    }
}

/// Returns the status of a completion (`enum siw_wc_status`).
pub(crate) fn wc_status(status: WcStatus) -> u16 {
    match status {
        WcStatus::Success => 0,
        WcStatus::LocalLength => 1,
        WcStatus::LocalProtection => 2,
        WcStatus::LocalOperation => 3,
        WcStatus::Flushed => 4,
        // Not one of siw: only for traces.
        WcStatus::Bind => 10,
        WcStatus::LocalAccess => 6,
        WcStatus::RemoteAccess => 7,
        WcStatus::RemoteInvalid => 8,
    }
}

/// Response of alloc_ucontext (`struct siw_uresp_alloc_ctx`).
#[derive(IntoBytes, zerocopy_derive::Immutable)]
#[repr(C)]
pub(crate) struct UcontextResponse {
    pub(crate) dev_id: u32,
    pub(crate) pad: u32,
}

/// Response of create_cq (`struct siw_uresp_create_cq`).
#[derive(IntoBytes, zerocopy_derive::Immutable)]
#[repr(C)]
pub(crate) struct CqResponse {
    pub(crate) cq_id: u32,
    pub(crate) num_cqe: u32,
    pub(crate) cq_key: u64,
}

/// Response of create_qp (`struct siw_uresp_create_qp`).
#[derive(IntoBytes, zerocopy_derive::Immutable)]
#[repr(C)]
pub(crate) struct QpResponse {
    pub(crate) qp_id: u32,
    pub(crate) num_sqe: u32,
    pub(crate) num_rqe: u32,
    pub(crate) pad: u32,
    pub(crate) sq_key: u64,
    pub(crate) rq_key: u64,
}

/// Response of create_srq (`struct siw_uresp_create_srq`).
#[derive(IntoBytes, zerocopy_derive::Immutable)]
#[repr(C)]
pub(crate) struct SrqResponse {
    pub(crate) num_rqe: u32,
    pub(crate) pad: u32,
    pub(crate) srq_key: u64,
}

/// Request of reg_user_mr (`struct siw_ureq_reg_mr`). riw ignores the proposed key: all bits of its
/// STags are random.
#[derive(FromBytes, IntoBytes, zerocopy_derive::Immutable)]
#[repr(C)]
pub(crate) struct MrRequest {
    pub(crate) stag_key: u8,
    pub(crate) reserved: [u8; 3],
    pub(crate) pad: u32,
}

/// Response of reg_user_mr (`struct siw_uresp_reg_mr`).
#[derive(IntoBytes, zerocopy_derive::Immutable)]
#[repr(C)]
pub(crate) struct MrResponse {
    pub(crate) stag: u32,
    pub(crate) pad: u32,
}

/// Returns the flags in the second word of an entry.
pub(crate) fn flags(word: u64) -> u16 {
    let [a, b, ..] = word.to_ne_bytes();
    u16::from_ne_bytes([a, b])
}

/// The head of a send queue entry (`struct siw_sqe`), copied from the ring. [`MAX_SGE`] SGEs follow
/// (`struct siw_sge`, which has the same layout in riw's own ABI).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sqe {
    /// The `wr_id` of the consumer.
    pub(crate) id: u64,
    /// [`INLINE`], [`SIGNALLED`], [`SOLICITED`], [`READ_FENCE`].
    pub(crate) flags: u16,
    /// The number of SGEs as user space wrote it. It can exceed [`MAX_SGE`].
    pub(crate) sge_count: u8,
    /// The opcode, not validated: any value.
    pub(crate) opcode: u8,
    /// The STag of the peer's region.
    pub(crate) rkey: u32,
    /// The address in the peer's region.
    pub(crate) raddr: u64,
}

impl Sqe {
    /// Words of the head.
    pub(crate) const WORDS: usize = 3;
    /// The offset of the SGEs, in octets. The length of the first SGE is the length of inline data.
    pub(crate) const SGES: usize = 8 * Self::WORDS;
    /// The offset of inline data: it is in the room of all SGEs but the first.
    pub(crate) const INLINE: usize = Self::SGES + size_of::<riw_abi::wr::Sge>();

    /// Returns the head with this control word.
    pub(crate) fn new([id, _, raddr]: [u64; Self::WORDS], control: u64) -> Self {
        let [a, b, sge_count, opcode, e, f, g, h] = control.to_ne_bytes();

        Self {
            id,
            flags: u16::from_ne_bytes([a, b]),
            sge_count,
            opcode,
            rkey: u32::from_ne_bytes([e, f, g, h]),
            raddr,
        }
    }
}

/// The head of a receive queue entry (`struct siw_rqe`), copied from the ring. SGEs follow as in
/// [`Sqe`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rqe {
    /// The `wr_id` of the consumer.
    pub(crate) id: u64,
    /// The number of SGEs as user space wrote it. It can exceed [`MAX_SGE`].
    pub(crate) sge_count: u8,
}

impl Rqe {
    /// Words of the head.
    pub(crate) const WORDS: usize = 2;
    /// The offset of the SGEs, in octets.
    pub(crate) const SGES: usize = 8 * Self::WORDS;

    /// Returns the head with this control word.
    pub(crate) fn new([id, _]: [u64; Self::WORDS], control: u64) -> Self {
        let [_, _, sge_count, ..] = control.to_ne_bytes();

        Self { id, sge_count }
    }
}

/// A completion (`struct siw_cqe`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cqe {
    /// The `wr_id` of the consumer.
    pub(crate) id: u64,
    /// The opcode of the WR: `OP_*`.
    pub(crate) opcode: u8,
    /// The status: `WC_*`.
    pub(crate) status: u16,
    /// The length of the message in bytes.
    pub(crate) bytes: u32,
    /// The STag that a received message invalidated.
    pub(crate) invalidated: Option<u32>,
    /// The number of the queue pair.
    pub(crate) qp: u32,
}

impl Cqe {
    /// Returns the entry for the ring.
    pub(crate) fn words(&self) -> [u64; CQE_WORDS] {
        let flags = if self.invalidated.is_some() {
            VALID | REMOTE_INVALIDATED
        } else {
            VALID
        };
        // The flags of a CQE fit into one byte.
        let [flags, _] = flags.to_le_bytes();
        let [s0, s1] = self.status.to_ne_bytes();
        let [b0, b1, b2, b3] = self.bytes.to_ne_bytes();
        let control = [flags, self.opcode, s0, s1, b0, b1, b2, b3];
        let [i0, i1, i2, i3] = self.invalidated.unwrap_or(0).to_ne_bytes();

        [
            self.id,
            u64::from_ne_bytes(control),
            u64::from_ne_bytes([i0, i1, i2, i3, 0, 0, 0, 0]),
            u64::from(self.qp),
        ]
    }
}
