// SPDX-License-Identifier: GPL-2.0

//! RDMAP's octet in the DDP header, and the RDMAP headers behind it (RFC 5040 §4, RFC 7306 §4 to
//! §6).

use zerocopy::byteorder::network_endian::{U32, U64};
use zerocopy_derive::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Control octet: mask of the version.
pub const VERSION_MASK: u8 = 0xc0;
/// The version of RFC 5040, shifted into position.
pub const VERSION: u8 = 0x40;
/// Control octet: mask of the opcode.
pub const OPCODE_MASK: u8 = 0x0f;

/// Opcode: RDMA Write.
pub const OP_WRITE: u8 = 0x0;
/// Opcode: RDMA Read Request.
pub const OP_READ_REQUEST: u8 = 0x1;
/// Opcode: RDMA Read Response.
pub const OP_READ_RESPONSE: u8 = 0x2;
/// Opcode: Send.
pub const OP_SEND: u8 = 0x3;
/// Opcode: Send with Invalidate.
pub const OP_SEND_INV: u8 = 0x4;
/// Opcode: Send with Solicited Event.
pub const OP_SEND_SE: u8 = 0x5;
/// Opcode: Send with Solicited Event and Invalidate.
pub const OP_SEND_SE_INV: u8 = 0x6;
/// Opcode: Terminate.
pub const OP_TERMINATE: u8 = 0x7;
/// Opcode: Immediate Data.
pub const OP_IMMEDIATE: u8 = 0x8;
/// Opcode: Immediate Data with Solicited Event.
pub const OP_IMMEDIATE_SE: u8 = 0x9;
/// Opcode: Atomic Request.
pub const OP_ATOMIC_REQUEST: u8 = 0xa;
/// Opcode: Atomic Response.
pub const OP_ATOMIC_RESPONSE: u8 = 0xb;

/// Queue of Sends and Immediate Data.
pub const QN_SEND: u32 = 0;
/// Queue of Read Requests and Atomic Requests.
pub const QN_READ_REQUEST: u32 = 1;
/// Queue of Terminates.
pub const QN_TERMINATE: u32 = 2;
/// Queue of Atomic Responses.
pub const QN_ATOMIC_RESPONSE: u32 = 3;

/// RDMA Read Request header (RFC 5040 §4.4).
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct ReadRequestHeader {
    /// The requester's buffer for the response.
    pub sink_stag: U32,
    /// Tagged Offset of the sink.
    pub sink_to: U64,
    /// Octets to read.
    pub len: U32,
    /// The responder's buffer to read from.
    pub src_stag: U32,
    /// Tagged Offset of the source.
    pub src_to: U64,
}

/// Atomic Request header (RFC 7306 §5.2.1).
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct AtomicRequestHeader {
    /// Atomic opcode in the low 4 bits; the rest is reserved.
    pub opcode: U32,
    /// The requester's identifier for the request.
    pub id: U32,
    /// The target.
    pub stag: U32,
    /// Tagged Offset of the target.
    pub to: U64,
    /// Add or swap data.
    pub data: U64,
    /// Add or swap mask.
    pub mask: U64,
    /// Compare data.
    pub compare: U64,
    /// Compare mask.
    pub compare_mask: U64,
}

/// Atomic opcode: masked fetch and add.
pub const ATOMIC_FETCH_ADD: u8 = 0x0;
/// Atomic opcode: masked compare and swap.
pub const ATOMIC_CMP_SWAP: u8 = 0x2;

/// Atomic Response header (RFC 7306 §5.2.2). RFC 7306 is inconsistent: §4 gives 32 octets, figure
/// 6 shows these 12.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct AtomicResponseHeader {
    /// The identifier of the request.
    pub id: U32,
    /// The value of the target before the operation.
    pub original: U64,
}

/// Octets of a Read Request header.
pub const READ_REQUEST_LEN: usize = 28;
/// Octets of an Atomic Request header.
pub const ATOMIC_REQUEST_LEN: usize = 52;
/// Octets of an Atomic Response header.
pub const ATOMIC_RESPONSE_LEN: usize = 12;
/// Octets of Immediate Data.
pub const IMMEDIATE_LEN: usize = 8;

const _: () = assert!(core::mem::size_of::<ReadRequestHeader>() == READ_REQUEST_LEN);
const _: () = assert!(core::mem::size_of::<AtomicRequestHeader>() == ATOMIC_REQUEST_LEN);
const _: () = assert!(core::mem::size_of::<AtomicResponseHeader>() == ATOMIC_RESPONSE_LEN);
