// SPDX-License-Identifier: GPL-2.0

//! DDP (RFC 5041): headers, the order of untagged messages, and the segments that the layer below
//! hands over.

pub mod queue;

use crate::error::{DdpTagged, DdpUntagged, Error};
use crate::types::split;
use crate::wire::ddp as wire;
use crate::wire::rdmap::ATOMIC_REQUEST_LEN;
use crate::wire::terminate::TERMINATE_MAX;
use zerocopy::FromBytes;

/// A DDP header of either model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Header {
    /// For a Tagged Buffer.
    Tagged(wire::TaggedHeader),
    /// For an Untagged Buffer.
    Untagged(wire::UntaggedHeader),
}

/// Returns the length in octets of a header with the control octet `control`.
pub const fn header_len(control: u8) -> usize {
    if control & wire::TAGGED != 0 {
        wire::TAGGED_LEN
    } else {
        wire::UNTAGGED_LEN
    }
}

impl Header {
    /// Parses the header at the start of `data`. Returns `None` if `data` is too short.
    pub fn parse(data: &[u8]) -> Option<Self> {
        if data.first()? & wire::TAGGED != 0 {
            let (header, _) = wire::TaggedHeader::read_from_prefix(data).ok()?;
            Some(Self::Tagged(header))
        } else {
            let (header, _) = wire::UntaggedHeader::read_from_prefix(data).ok()?;
            Some(Self::Untagged(header))
        }
    }

    /// Returns the control octet.
    pub const fn control(&self) -> u8 {
        match self {
            Self::Tagged(h) => h.control,
            Self::Untagged(h) => h.control,
        }
    }

    /// Returns RDMAP's octet.
    pub const fn rdmap(&self) -> u8 {
        match self {
            Self::Tagged(h) => h.rdmap,
            Self::Untagged(h) => h.rdmap,
        }
    }

    /// Returns whether this is the last segment of its message.
    pub const fn last(&self) -> bool {
        self.control() & wire::LAST != 0
    }

    /// Returns the length of this header in octets.
    pub const fn octets(&self) -> usize {
        header_len(self.control())
    }

    /// Checks the version (RFC 5041 §4.1). Ignores reserved bits.
    ///
    /// # Errors
    ///
    /// Invalid version, of the buffer model that the T bit selects.
    pub const fn check_version(&self) -> Result<(), Error> {
        if self.control() & wire::VERSION_MASK == wire::VERSION {
            return Ok(());
        }
        Err(match self {
            Self::Tagged(_) => Error::DdpTagged(DdpTagged::InvalidVersion),
            Self::Untagged(_) => Error::DdpUntagged(DdpUntagged::InvalidVersion),
        })
    }
}

/// Octets copied from the front of a segment before it is parsed: the longest DDP header and the
/// longest header of a message without payload.
pub const FRONT_LEN: usize = wire::UNTAGGED_LEN + TERMINATE_MAX;
const _: () = assert!(TERMINATE_MAX >= ATOMIC_REQUEST_LEN);

/// A complete, checked DDP segment, as the layer below hands it over.
pub struct Ulpdu<L> {
    /// Length of the segment in octets, headers included.
    pub len: u16,
    /// Copy of its first octets. Octets behind the end of a shorter segment mean nothing.
    pub front: [u8; FRONT_LEN],
    /// Where the segment lies in the received octets.
    pub layout: L,
}

impl<L> Ulpdu<L> {
    /// Returns the copied octets that belong to the segment.
    pub(crate) fn front(&self) -> &[u8] {
        split(&self.front, usize::from(self.len)).0
    }
}
