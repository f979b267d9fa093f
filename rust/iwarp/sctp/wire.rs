// SPDX-License-Identifier: GPL-2.0

//! User data of the SCTP chunks that carry DDP (RFC 5043 §5, §12; RFC 6581 §7).

use zerocopy::byteorder::network_endian::U16;
use zerocopy_derive::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The Adaptation Indication of DDP in INIT and INIT-ACK.
pub const ADAPTATION_DDP: u32 = 1;

/// Payload Protocol Identifier of a DDP Segment Chunk.
pub const PPID_SEGMENT: u32 = 16;
/// Payload Protocol Identifier of a DDP Stream Session Control Chunk.
pub const PPID_CONTROL: u32 = 17;

/// The front of a session control chunk. The private data follows.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct ControlHeader {
    /// The DDP-SSN. Both types of chunk begin with it.
    pub ssn: U16,
    /// One of the function codes below.
    pub function: U16,
}

/// Function: the initiator requests a session.
pub const INITIATE: u16 = 1;
/// Function: the responder accepts.
pub const ACCEPT: u16 = 2;
/// Function: the responder rejects.
pub const REJECT: u16 = 3;
/// Function: the sender ends its direction of the session, or refuses it.
pub const TERMINATE: u16 = 4;
/// Function: as [`INITIATE`], with control words.
pub const ENHANCED_INITIATE: u16 = 5;
/// Function: as [`ACCEPT`], with control words.
pub const ENHANCED_ACCEPT: u16 = 6;
/// Function: as [`REJECT`], with control words.
pub const ENHANCED_REJECT: u16 = 7;

/// Octets of the DDP-SSN.
pub const SSN_LEN: usize = 2;
/// Octets in front of the private data.
pub const CONTROL_LEN: usize = 4;
/// Maximum octets of private data, control words included.
pub const PRIVATE_DATA_MAX: usize = 512;

const _: () = assert!(core::mem::size_of::<ControlHeader>() == CONTROL_LEN);
