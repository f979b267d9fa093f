// SPDX-License-Identifier: GPL-2.0

//! A segment chunk, for the stream to pull: in its turn, or an RDMA Write before it.

use super::super::{
    octets::DeframerOctets,
    segments::{EarlyWrite, Inflow, LinkRx, Pause, Segments},
};
use iwarp::{
    ddp::{FrameHead, Runs, Ulpdu},
    sctp::{early_write, ChunkDeframer, HEAD_LEN},
    Deframed, Deframing, Error, Local, Segment,
};
use kernel::prelude::*;
use net::Unread;

/// A segment chunk whose turn has come.
pub(super) struct SegmentChunk<'a> {
    deframer: &'a mut ChunkDeframer,
    /// Its bytes; only the first [`HEAD_LEN`] if the payload has been placed.
    unread: Unread<'a>,
    is_placed: bool,
    /// The stream does not get it again.
    pub(super) is_taken: bool,
}

impl<'a> SegmentChunk<'a> {
    /// A chunk of `len` bytes. `bytes` are all, or those that are kept if the payload has been
    /// placed. Any context.
    pub(super) fn new(deframer: &'a mut ChunkDeframer, bytes: &'a [u8], len: usize) -> Self {
        Self {
            deframer,
            unread: Unread::head_of(bytes, len),
            is_placed: bytes.len() < len,
            is_taken: false,
        }
    }
}

impl Inflow for SegmentChunk<'_> {
    fn segments<'a>(&'a mut self, _rx: &'a mut LinkRx) -> Option<impl Segments + 'a> {
        Some(self)
    }

    fn discard(&mut self) {
        self.is_taken = true;
    }
}

impl Segments for &mut SegmentChunk<'_> {
    const SHORT: Error = ChunkDeframer::SHORT;

    fn next(&mut self, head: &mut FrameHead) -> Result<Option<Ulpdu>, Error> {
        if self.is_taken {
            return Ok(None);
        }
        match self.deframer.next(&DeframerOctets(self.unread), head)? {
            // The headers are in `head`.
            Deframed::Frame(ulpdu) if self.is_placed => Ok(Some(Ulpdu {
                runs: Runs::new(0, 0),
                ..ulpdu
            })),
            Deframed::Frame(ulpdu) => Ok(Some(ulpdu)),
            // A chunk is a frame.
            Deframed::Incomplete { .. } => Err(Local::LowerLayer.into()),
        }
    }

    fn octets(&self) -> Unread<'_> {
        self.unread
    }

    fn advance(&mut self, _octets: usize) {
        self.is_taken = true;
    }

    fn finish(self, _blocked: bool) -> Result<Pause, Error> {
        Ok(Pause::Event)
    }
}

/// A segment chunk of an RDMA Write whose turn has not come.
pub(super) struct EarlyChunk<'a> {
    bytes: &'a [u8],
    head: &'a [u8],
    write: Segment,
    payload: &'a [u8],
    is_placed: bool,
}

impl<'a> EarlyChunk<'a> {
    /// Returns the chunk `bytes` if it is one. Any context.
    pub(super) fn new(bytes: &'a [u8]) -> Option<Self> {
        let head = bytes.get(..HEAD_LEN)?;
        let (write, payload) = early_write(head, bytes.len())?;

        Some(Self {
            bytes,
            head,
            write,
            payload: bytes.get(payload)?,
            is_placed: false,
        })
    }

    /// Returns the bytes that are to be kept until its turn: those that [`SegmentChunk::new`]
    /// takes. Any context.
    pub(super) fn kept(&self) -> &'a [u8] {
        match self.is_placed {
            true => self.head,
            false => self.bytes,
        }
    }
}

impl Inflow for EarlyChunk<'_> {
    fn early_write(&mut self) -> Option<EarlyWrite<'_>> {
        Some(EarlyWrite::new(
            self.write,
            self.payload.into(),
            &mut self.is_placed,
        ))
    }

    fn segments<'a>(&'a mut self, _rx: &'a mut LinkRx) -> Option<impl Segments + 'a> {
        None::<&mut SegmentChunk<'a>>
    }

    /// The chunk stays whole, until its turn.
    fn discard(&mut self) {}
}
