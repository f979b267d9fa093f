// SPDX-License-Identifier: GPL-2.0

//! RDMA Read (RFC 5040 §5.2): the request, and the requester's state of an outstanding read.

use crate::error::{DdpTagged, Error, Rdmap};
use crate::types::Stag;
use crate::wire::rdmap as wire;
use zerocopy::byteorder::network_endian::{U32, U64};
use zerocopy::FromBytes;

/// An RDMA Read Request (RFC 5040 §4.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadRequest {
    /// The requester's buffer for the response. The responder copies the STag unchecked.
    pub sink_stag: Stag,
    /// Tagged Offset of the sink.
    pub sink_to: u64,
    /// Octets to read. If it is 0, source STag and offset must not be checked.
    pub len: u32,
    /// The responder's buffer to read from.
    pub src_stag: Stag,
    /// Tagged Offset of the source.
    pub src_to: u64,
}

impl ReadRequest {
    /// Returns the rest of the request after `done` octets of its response were sent. A Terminate
    /// quotes this rest (RFC 5040 §4.8).
    #[must_use]
    pub const fn advanced(self, done: u32) -> Self {
        let done = if done < self.len { done } else { self.len };
        // A `const` version of `u64::from`.
        let [a, b, c, d] = done.to_be_bytes();
        let by = u64::from_be_bytes([0, 0, 0, 0, a, b, c, d]);
        Self {
            sink_to: self.sink_to.wrapping_add(by),
            len: self.len.saturating_sub(done),
            src_to: self.src_to.wrapping_add(by),
            ..self
        }
    }

    /// Parses a request header. Returns `None` if `data` is too short.
    pub(crate) fn parse(data: &[u8]) -> Option<Self> {
        let (h, _) = wire::ReadRequestHeader::read_from_prefix(data).ok()?;
        Some(Self {
            sink_stag: Stag(h.sink_stag.get()),
            sink_to: h.sink_to.get(),
            len: h.len.get(),
            src_stag: Stag(h.src_stag.get()),
            src_to: h.src_to.get(),
        })
    }

    /// Builds the header.
    pub(crate) fn wire(&self) -> wire::ReadRequestHeader {
        wire::ReadRequestHeader {
            sink_stag: U32::new(self.sink_stag.0),
            sink_to: U64::new(self.sink_to),
            len: U32::new(self.len),
            src_stag: U32::new(self.src_stag.0),
            src_to: U64::new(self.src_to),
        }
    }
}

/// A Read Request whose response is incomplete. The requester keeps one for each outstanding read,
/// in order: responses come in the order of the requests (RFC 5040 §5.5 rule 20).
///
/// ```
/// use iwarp::{DdpTagged, Outstanding, Stag};
///
/// let sink = Stag(0x0100);
/// let mut read = Outstanding::new(sink, 0x1000, 1500);
/// assert_eq!(read.accept(sink, 0x1000, 1000, false), Ok(false));
/// // The next segment must begin where this one ends.
/// assert_eq!(
///     read.accept(sink, 0x1400, 500, true),
///     Err(DdpTagged::Bounds.into())
/// );
/// assert_eq!(read.accept(sink, 0x13e8, 500, true), Ok(true));
/// assert_eq!(read.done(), 1500);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outstanding {
    sink_stag: Stag,
    sink_to: u64,
    len: u32,
    done: u32,
}

impl Outstanding {
    /// Creates the state for a request of `len` octets, to be placed at `sink_to` of `sink_stag`.
    pub const fn new(sink_stag: Stag, sink_to: u64, len: u32) -> Self {
        Self {
            sink_stag,
            sink_to,
            len,
            done: 0,
        }
    }

    /// Returns the octets accepted so far.
    pub const fn done(&self) -> u32 {
        self.done
    }

    /// Accepts a Read Response segment before it is placed. Returns whether it completes the read.
    ///
    /// The segment must go to the requested place, directly behind the segment before it, and the
    /// last segment must end where the request ends. So a response can neither exceed the buffer
    /// nor leave a gap that would be reported as read. STag and offset of an empty segment are not
    /// checked (RFC 5041 §5.2).
    ///
    /// # Errors
    ///
    /// Wrong STag; wrong offset or more octets than requested (both reported as bounds); an end
    /// before all octets. An error changes nothing.
    pub fn accept(&mut self, stag: Stag, to: u64, len: u32, last: bool) -> Result<bool, Error> {
        if len != 0 {
            if stag != self.sink_stag {
                return Err(DdpTagged::InvalidStag.into());
            }
            if to != self.sink_to.wrapping_add(u64::from(self.done)) {
                return Err(DdpTagged::Bounds.into());
            }
        }
        let done = match self.done.checked_add(len) {
            Some(done) if done <= self.len => done,
            _ => return Err(DdpTagged::Bounds.into()),
        };
        if last && done != self.len {
            return Err(Rdmap::CatastrophicStream.into());
        }
        self.done = done;
        Ok(last)
    }
}
