// SPDX-License-Identifier: GPL-2.0

//! The Terminate header (RFC 5040 §4.8). The quoted parts follow it: the length of the DDP segment
//! (2 octets), its DDP header, its RDMAP header.

use zerocopy_derive::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Header control: the length of the DDP segment is valid.
pub const HDR_LENGTH: u8 = 0x80;
/// Header control: the DDP header is included.
pub const HDR_DDP: u8 = 0x40;
/// Header control: the RDMAP header is included.
pub const HDR_RDMAP: u8 = 0x20;

/// The fixed part.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct TerminateHeader {
    /// Layer in the upper, error type in the lower 4 bits.
    pub layer_etype: u8,
    /// Error code.
    pub code: u8,
    /// The flags above; the rest is reserved.
    pub hdrct: u8,
    /// Zero.
    pub reserved: u8,
}

/// Octets of the fixed part.
pub const TERMINATE_LEN: usize = 4;
/// Maximum octets of a Terminate header: with all parts, for an untagged segment.
pub const TERMINATE_MAX: usize = 52;

const _: () = assert!(core::mem::size_of::<TerminateHeader>() == TERMINATE_LEN);
const _: () = assert!(
    TERMINATE_MAX == TERMINATE_LEN + 2 + super::ddp::UNTAGGED_LEN + super::rdmap::READ_REQUEST_LEN
);
