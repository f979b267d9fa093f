// SPDX-License-Identifier: GPL-2.0

//! The control words of enhanced connection establishment (RFC 6581 §9). They precede the ULP's
//! private data in the startup frames of each lower layer.

use zerocopy::byteorder::network_endian::U16;
use zerocopy_derive::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The control words.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct Enhanced {
    /// IRD in the low 14 bits; [`ENH_PEER_TO_PEER`], [`ENH_RTR_SEND`].
    pub ird: U16,
    /// ORD in the low 14 bits; [`ENH_RTR_WRITE`], [`ENH_RTR_READ`].
    pub ord: U16,
}

/// Mask of the depth in both words.
pub const ENH_DEPTH_MASK: u16 = 0x3fff;
/// Control flag A, in the first word: peer-to-peer model.
pub const ENH_PEER_TO_PEER: u16 = 0x8000;
/// Control flag B, in the first word: the RTR indication may be a zero-length Send.
pub const ENH_RTR_SEND: u16 = 0x4000;
/// Control flag C, in the second word: the RTR indication may be a zero-length RDMA Write.
pub const ENH_RTR_WRITE: u16 = 0x8000;
/// Control flag D, in the second word: the RTR indication may be a zero-length RDMA Read.
pub const ENH_RTR_READ: u16 = 0x4000;

/// Octets of the control words.
pub const ENHANCED_LEN: usize = 4;

const _: () = assert!(core::mem::size_of::<Enhanced>() == ENHANCED_LEN);
