// SPDX-License-Identifier: GPL-2.0

//! Segment chunks (RFC 5043 §5.2.2): a DDP-SSN and a segment. A chunk is a frame.

use super::chunk::ssn;
use super::session::FIRST_SSN;
use super::wire::SSN_LEN;
use crate::ddp::{FrameHead, Runs, Ulpdu, HEAD_LEN};
use crate::error::{Error, Local, Sctp};
use crate::traits::{Deframed, Deframing, Framing, Gather, Octets};
use crate::types::{copy, count};

/// Minimum MULPDU, however small the packets (RFC 5043 §9).
pub const MULPDU_MIN: u16 = 516;
/// Octets of a packet that segments leave free, so that a SACK fits in it (RFC 5043 §9).
pub const BUNDLE_ROOM: u32 = 16;

/// Returns the longest segment for chunks with at most `chunk` octets of user data, which IP and
/// SCTP do not fragment. Chunks are padded to four octets.
pub fn mulpdu(chunk: u32) -> u16 {
    let room = (chunk & !3)
        .saturating_sub(BUNDLE_ROOM)
        .saturating_sub(count(SSN_LEN));
    u16::try_from(room).unwrap_or(u16::MAX).max(MULPDU_MIN)
}

/// The sending side of an open session.
pub struct ChunkFramer {
    /// The DDP-SSN of the next chunk.
    next: u16,
    mulpdu: u16,
}

impl ChunkFramer {
    /// Creates a framer for a session whose first chunk, a session control chunk, is sent. A chunk
    /// has at most `chunk` octets of user data without fragmentation.
    pub fn new(chunk: u32) -> Self {
        Self {
            next: FIRST_SSN.wrapping_add(1),
            mulpdu: mulpdu(chunk),
        }
    }

    /// Sets the octets of user data that a chunk can have, from the next chunk on.
    pub fn set_chunk(&mut self, chunk: u32) {
        self.mulpdu = mulpdu(chunk);
    }

    /// Returns the DDP-SSN of the next chunk. When all segments are sent, it is the DDP-SSN of the
    /// Terminate Chunk, for [`SessionEvent::Close`](super::SessionEvent::Close).
    pub const fn next_ssn(&self) -> u16 {
        self.next
    }
}

impl Framing for ChunkFramer {
    const PREFIX_LEN: usize = SSN_LEN;

    #[inline]
    fn mulpdu(&self) -> u16 {
        self.mulpdu
    }

    /// Writes one chunk. An error leaves the DDP-SSN unchanged.
    fn emit<G: Gather>(
        &mut self,
        head: &mut [u8],
        offset: u32,
        len: u32,
        out: &mut G,
    ) -> Result<u32, G::Error> {
        copy(head, &self.next.to_be_bytes());
        out.bytes(head)?;
        if len != 0 {
            out.payload(offset, len, None)?;
        }
        self.next = self.next.wrapping_add(1);
        Ok(count(head.len()).saturating_add(len))
    }
}

/// The receiving side of an open session. A stream is one chunk, in the order of the DDP-SSNs:
/// those for which [`Session::handle`](super::Session::handle) returned
/// [`SessionAction::Deliver`](super::SessionAction::Deliver).
pub struct ChunkDeframer {
    /// The DDP-SSN of the next chunk.
    next: u16,
}

impl ChunkDeframer {
    /// Creates a deframer for a session whose first chunk, a session control chunk, has been
    /// received.
    pub const fn new() -> Self {
        Self {
            next: FIRST_SSN.wrapping_add(1),
        }
    }
}

impl Default for ChunkDeframer {
    fn default() -> Self {
        Self::new()
    }
}

impl Deframing for ChunkDeframer {
    const SHORT: Error = Error::Sctp(Sctp::Length);

    /// Takes the segment out of the chunk `stream`. A chunk is never incomplete.
    ///
    /// # Errors
    ///
    /// The chunk has no DDP-SSN, is longer than any segment, or is not the next one; or its octets
    /// cannot be read.
    fn next<S: Octets>(&mut self, stream: &S, head: &mut FrameHead) -> Result<Deframed, Error> {
        let octets = stream.len();
        let segment = octets.checked_sub(SSN_LEN).ok_or(Sctp::Length)?;
        let len = u16::try_from(segment).map_err(|_| Sctp::Length)?;
        let (head, _) = head.split_at_mut(octets.min(HEAD_LEN));
        stream.copy(0, head).ok_or(Local::LowerLayer)?;
        if ssn(head)? != self.next {
            return Err(Sctp::Order.into());
        }
        self.next = self.next.wrapping_add(1);
        Ok(Deframed::Frame(Ulpdu {
            octets,
            len,
            runs: Runs::new(SSN_LEN, segment),
        }))
    }

    /// Returns whether nothing of a chunk is left.
    fn may_end(&self, unread: usize) -> bool {
        unread == 0
    }
}
