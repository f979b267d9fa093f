// SPDX-License-Identifier: GPL-2.0

//! DDP (RFC 5041): headers, the order of untagged messages, and the edge to the layer below.

pub mod queue;

use crate::error::{DdpTagged, DdpUntagged, Error};
use crate::mpa::marker::Cadence;
use crate::types::split;
use crate::wire::ddp as wire;
use crate::wire::rdmap::ATOMIC_REQUEST_LEN;
use crate::wire::terminate::TERMINATE_MAX;
use core::ops::Range;
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

/// Octets at the front of a segment that are copied before the segment is looked at: the longest DDP
/// header, and the longest header of a message without payload behind it.
pub const FRONT_LEN: usize = wire::UNTAGGED_LEN + TERMINATE_MAX;
const _: () = assert!(TERMINATE_MAX >= ATOMIC_REQUEST_LEN);

/// A DDP segment that the lower layer has found in its stream, whole and right: the ULPDU of one of
/// MPA's FPDUs, or one day a chunk of SCTP (RFC 5043).
pub(crate) struct Ulpdu<'a, S> {
    /// Octets of the segment, headers included.
    pub(crate) len: u16,
    /// The first of them.
    pub(crate) front: [u8; FRONT_LEN],
    /// Where all of them are.
    pub(crate) stream: &'a S,
    /// What lies between them there.
    pub(crate) layout: Cadence,
    /// Where in the frame the segment begins.
    pub(crate) begin: usize,
}

impl<S> Ulpdu<'_, S> {
    /// The first octets, as far as they belong to the segment.
    pub(crate) fn front(&self) -> &[u8] {
        split(&self.front, usize::from(self.len)).0
    }

    /// The octets from `from` on, as ranges of the stream. None is empty.
    pub(crate) fn runs(&self, from: usize) -> impl Iterator<Item = Range<usize>> {
        let layout = self.layout;
        let end = self.begin.saturating_add(usize::from(self.len));
        let mut at = self.begin.saturating_add(from);
        core::iter::from_fn(move || {
            let len = layout.run(at).min(end.saturating_sub(at));
            let start = layout.position(at);
            at = at.saturating_add(len);
            (len != 0).then(|| start..start.saturating_add(len))
        })
    }
}
