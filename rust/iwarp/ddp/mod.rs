// SPDX-License-Identifier: GPL-2.0

//! DDP (RFC 5041): headers, the order of untagged messages, and the segments that the layer below
//! hands over.

pub mod queue;

use crate::error::{DdpTagged, DdpUntagged, Error};
use crate::types::size;
use crate::wire::ddp as wire;
use crate::wire::mpa::{MARKER_GAP, MARKER_LEN};
use crate::wire::rdmap::ATOMIC_REQUEST_LEN;
use crate::wire::terminate::TERMINATE_MAX;
use core::ops::Range;
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

/// Octets of a segment that are copied before it is parsed: the longest DDP header and the longest
/// header of a message without payload.
pub const FRONT_LEN: usize = wire::UNTAGGED_LEN + TERMINATE_MAX;
const _: () = assert!(TERMINATE_MAX >= ATOMIC_REQUEST_LEN);
/// Octets that a lower layer puts in front of a segment: a length, or a number.
pub const PREFIX_LEN: usize = 2;
/// Octets of a frame that are copied before it is parsed.
pub const HEAD_LEN: usize = PREFIX_LEN + FRONT_LEN;
/// A copy of the first octets of a frame, without markers: what the lower layer puts in front, then
/// the segment. Octets behind the end of a shorter frame mean nothing.
pub type FrameHead = [u8; HEAD_LEN];

/// A complete, checked DDP segment at the front of the received octets, as the layer below hands it
/// over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ulpdu {
    /// The octets of the stream that its frame takes.
    pub octets: usize,
    /// Length of the segment in octets, headers included.
    pub len: u16,
    /// Where the segment lies in the received octets. Empty if its payload has been placed: its
    /// headers are in the copy of the first octets.
    pub runs: Runs,
}

/// Where a part of a segment lies in the received octets: yields ranges of them, in order. No range
/// is empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Runs {
    /// Position of the next octet of the part.
    at: usize,
    /// Octets of the part from there on.
    left: usize,
    /// Octets from there on that no marker interrupts. Not 0.
    until: usize,
}

impl Runs {
    /// `len` octets from `at` on, which nothing interrupts.
    #[inline]
    pub const fn new(at: usize, len: usize) -> Self {
        Self::between_markers(at, len, usize::MAX)
    }

    /// `len` octets from `at` on, without the markers between them. The first marker comes behind
    /// `until` octets, which is not 0.
    #[inline]
    pub const fn between_markers(at: usize, len: usize, until: usize) -> Self {
        Self {
            at,
            left: len,
            until,
        }
    }

    /// Returns the part behind the first `len` octets of this one.
    #[inline]
    #[must_use]
    pub fn behind(mut self, len: usize) -> Self {
        let mut len = len.min(self.left);
        while len != 0 {
            len = len.saturating_sub(self.pass(len).len());
        }
        self
    }

    /// Passes the next octets, as many as no marker interrupts, but at most `max`. Returns where
    /// they are.
    #[inline]
    fn pass(&mut self, max: usize) -> Range<usize> {
        let len = self.until.min(max);
        let start = self.at;
        self.at = start.saturating_add(len);
        self.left = self.left.saturating_sub(len);
        let run = start..self.at;
        self.until = self.until.saturating_sub(len);
        if self.until == 0 {
            self.at = self.at.saturating_add(MARKER_LEN);
            self.until = size(MARKER_GAP);
        }
        run
    }
}

impl Iterator for Runs {
    type Item = Range<usize>;

    #[inline]
    fn next(&mut self) -> Option<Range<usize>> {
        (self.left != 0).then(|| self.pass(self.left))
    }
}
