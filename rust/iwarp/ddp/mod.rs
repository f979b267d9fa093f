// SPDX-License-Identifier: GPL-2.0

//! DDP (RFC 5041): headers, the order of untagged messages, and the edge to the layer below.

pub mod queue;

use crate::error::{DdpTagged, DdpUntagged, Error};
use crate::wire::ddp as wire;
use zerocopy::FromBytes;

/// A DDP header of either model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Header {
    /// For a Tagged Buffer.
    Tagged(wire::Tagged),
    /// For an Untagged Buffer.
    Untagged(wire::Untagged),
}

/// Octets of the header that begins with the octet `control`.
pub const fn header_len(control: u8) -> usize {
    if control & wire::TAGGED != 0 {
        wire::TAGGED_LEN
    } else {
        wire::UNTAGGED_LEN
    }
}

impl Header {
    /// The header at the start of `data`, or `None` when `data` is too short for it.
    pub fn parse(data: &[u8]) -> Option<Self> {
        if data.first()? & wire::TAGGED != 0 {
            let (header, _) = wire::Tagged::read_from_prefix(data).ok()?;
            Some(Self::Tagged(header))
        } else {
            let (header, _) = wire::Untagged::read_from_prefix(data).ok()?;
            Some(Self::Untagged(header))
        }
    }

    /// The control octet.
    pub const fn control(&self) -> u8 {
        match self {
            Self::Tagged(h) => h.control,
            Self::Untagged(h) => h.control,
        }
    }

    /// The octet that is RDMAP's.
    pub const fn rdmap(&self) -> u8 {
        match self {
            Self::Tagged(h) => h.rdmap,
            Self::Untagged(h) => h.rdmap,
        }
    }

    /// Whether this is the last segment of its message.
    pub const fn last(&self) -> bool {
        self.control() & wire::LAST != 0
    }

    /// Octets of this header.
    pub const fn octets(&self) -> usize {
        header_len(self.control())
    }

    /// Checks the version (RFC 5041 §4.1); reserved bits are not looked at.
    ///
    /// # Errors
    ///
    /// Invalid version, of the model that the T bit names.
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

/// Whether the stream goes on after a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum More {
    /// It does.
    Continue,
    /// It does not: what follows is to be discarded.
    Stop,
}

/// Takes the DDP segments that a lower layer finds in its stream: MPA's FPDUs, or one day the
/// chunks of SCTP (RFC 5043).
///
/// Calls come as `start`, any number of `data`, `end`. After an error from `start` or `data` the
/// rest of the segment is not passed on, and no further segment is.
pub trait SegmentSink {
    /// A segment of `len` octets, header included, begins.
    ///
    /// # Errors
    ///
    /// When no segment can have this length.
    fn start(&mut self, len: u16) -> Result<(), Error>;

    /// The next octets of the segment, in order; never empty, never more than announced.
    ///
    /// # Errors
    ///
    /// When header or payload are not acceptable.
    fn data(&mut self, data: &[u8]) -> Result<(), Error>;

    /// The segment is complete and its check value, if there is one, was right.
    ///
    /// # Errors
    ///
    /// When the segment is not acceptable as a whole.
    fn end(&mut self) -> Result<More, Error>;
}
