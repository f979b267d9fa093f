// SPDX-License-Identifier: GPL-2.0

//! MPA's startup frames and markers (RFC 5044 §4.2, §7.1.1; RFC 6581 §6).

use zerocopy::byteorder::network_endian::U16;
use zerocopy_derive::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Key of the Request Frame.
pub const KEY_REQUEST: [u8; 16] = *b"MPA ID Req Frame";
/// Key of the Reply Frame.
pub const KEY_REPLY: [u8; 16] = *b"MPA ID Rep Frame";

/// Flag: the sender requests markers in its receive direction.
pub const FLAG_MARKERS: u8 = 0x80;
/// Flag: the sender requires CRCs.
pub const FLAG_CRC: u8 = 0x40;
/// Flag: the connection is rejected. Only in a Reply.
pub const FLAG_REJECT: u8 = 0x20;
/// Flag: the private data begins with [`Enhanced`](super::enhanced::Enhanced). From revision 2 on.
pub const FLAG_ENHANCED: u8 = 0x10;

/// The fixed part of a startup frame.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct StartupHeader {
    /// Key of the frame type.
    pub key: [u8; 16],
    /// The flags above; the rest is reserved.
    pub flags: u8,
    /// Revision of MPA.
    pub revision: u8,
    /// Octets of private data that follow, at most [`PRIVATE_DATA_MAX`].
    pub pd_length: U16,
}

/// A marker (RFC 5044 §4.2).
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct Marker {
    /// Zero.
    pub reserved: U16,
    /// Octets of stream from the start of the FPDU to the start of the marker; the low two bits are
    /// zero.
    pub fpduptr: U16,
}

/// Octets of a marker.
pub const MARKER_LEN: usize = 4;
/// Octets between two markers: markers start every 512 octets.
pub const MARKER_GAP: u32 = 508;
/// Octets of the fixed part of a startup frame.
pub const STARTUP_LEN: usize = 20;
/// Maximum octets of private data, control words included.
pub const PRIVATE_DATA_MAX: usize = 512;

const _: () = assert!(core::mem::size_of::<StartupHeader>() == STARTUP_LEN);
const _: () = assert!(core::mem::size_of::<Marker>() == MARKER_LEN);
