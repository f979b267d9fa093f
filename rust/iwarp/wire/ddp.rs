// SPDX-License-Identifier: GPL-2.0

//! DDP headers (RFC 5041 §4). The octet that DDP reserves for its ULP is RDMAP's.

use zerocopy::byteorder::network_endian::{U32, U64};
use zerocopy_derive::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Control octet: the segment is for a Tagged Buffer.
pub const TAGGED: u8 = 0x80;
/// Control octet: the last segment of its message.
pub const LAST: u8 = 0x40;
/// Control octet: mask of the version.
pub const VERSION_MASK: u8 = 0x03;
/// The version of RFC 5041.
pub const VERSION: u8 = 1;

/// The header of a segment for a Tagged Buffer (RFC 5041 §4.2).
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct TaggedHeader {
    /// [`TAGGED`], [`LAST`], version.
    pub control: u8,
    /// RDMAP version and opcode (RFC 5040 §4.1).
    pub rdmap: u8,
    /// The buffer.
    pub stag: U32,
    /// Tagged Offset of the segment's first octet of payload.
    pub to: U64,
}

/// The header of a segment for an Untagged Buffer (RFC 5041 §4.3).
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct UntaggedHeader {
    /// [`LAST`], version.
    pub control: u8,
    /// RDMAP version and opcode (RFC 5040 §4.1).
    pub rdmap: u8,
    /// The STag to invalidate; zero if the opcode has none.
    pub invalidate: U32,
    /// Queue number.
    pub qn: U32,
    /// Message sequence number within the queue, from 1, modulo 2^32.
    pub msn: U32,
    /// Offset in the message of the segment's first octet of payload.
    pub mo: U32,
}

/// Octets of a tagged header.
pub const TAGGED_LEN: usize = 14;
/// Octets of an untagged header.
pub const UNTAGGED_LEN: usize = 18;

const _: () = assert!(core::mem::size_of::<TaggedHeader>() == TAGGED_LEN);
const _: () = assert!(core::mem::size_of::<UntaggedHeader>() == UNTAGGED_LEN);
