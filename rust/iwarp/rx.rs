// SPDX-License-Identifier: GPL-2.0

//! The receiver: takes complete, checked FPDUs off the stream and tells the embedder where the
//! payload goes.

use crate::crc::{Crc, Crc32c};
use crate::error::{Error, Rdmap};
use crate::mpa::deframe::{Deframer, Next};
use crate::rdmap::inbound::Inbound;
use crate::rdmap::read::ReadRequest;
use crate::rdmap::{AtomicRequest, AtomicResponse, Quote, Terminated};
use crate::types::Stag;
use core::ops::Range;

/// Framing of the stream, as the startup negotiated it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RxConfig {
    /// Check CRCs.
    pub crc: bool,
    /// The peer sends markers, because this side requested them.
    pub markers: bool,
}

/// A segment that carries payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Segment {
    /// A segment of a Send. The payload goes to the receive buffer of this message.
    Send {
        /// Message sequence number, from 1, modulo 2^32.
        msn: u32,
        /// Offset of the segment in the message, in octets. 0 begins a message; any other offset is
        /// the end of the segment before.
        mo: u32,
        /// Payload length in octets.
        len: u32,
        /// The last segment of its message. The message length is then `mo` + `len`.
        last: bool,
        /// The sender requests a solicited event.
        solicited: bool,
        /// The STag to invalidate when the message is delivered.
        invalidate: Option<Stag>,
    },
    /// A segment of an RDMA Write, for a buffer that was advertised to the peer.
    Write {
        /// The buffer.
        stag: Stag,
        /// Tagged Offset of the segment.
        to: u64,
        /// Payload length in octets. If it is 0, STag and offset must not be checked.
        len: u32,
        /// The last segment of its message.
        last: bool,
    },
    /// A segment of an RDMA Read Response, for the sink of the oldest outstanding read.
    ReadResponse {
        /// The sink.
        stag: Stag,
        /// Tagged Offset of the segment.
        to: u64,
        /// Payload length in octets.
        len: u32,
        /// The last segment of its message.
        last: bool,
    },
}

impl Segment {
    /// Returns the payload length in octets.
    #[inline]
    pub const fn len(&self) -> u32 {
        match self {
            Self::Send { len, .. } | Self::Write { len, .. } | Self::ReadResponse { len, .. } => {
                *len
            }
        }
    }

    /// Returns whether the segment has no payload.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether this is the last segment of its message.
    #[inline]
    pub const fn last(&self) -> bool {
        match self {
            Self::Send { last, .. }
            | Self::Write { last, .. }
            | Self::ReadResponse { last, .. } => *last,
        }
    }
}

/// The received octets of the stream that are not consumed yet, in place.
///
/// Others may write to that memory: for example, a process that sends from its own pages over a
/// loopback device. So octets are only copied out, never borrowed, and two copies of one octet may
/// differ.
pub trait Octets {
    /// Returns the number of octets.
    fn len(&self) -> usize;

    /// Returns whether there are no octets.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies the octets from `at` on to `to`. The caller ensures that there are enough. Returns
    /// `None` if they cannot be read.
    fn copy(&self, at: usize, to: &mut [u8]) -> Option<()>;

    /// Continues `crc` over the `len` octets at `at`. The caller ensures that there are enough.
    /// Returns `None` if they cannot be read.
    fn crc(&self, crc: Crc, at: usize, len: usize) -> Option<Crc>;
}

/// The result of one look at the front of the stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// This many octets are consumed.
    Consumed(usize),
    /// Nothing is consumed: the FPDU at the front is incomplete. An FPDU has at most
    /// [`FPDU_MAX`](crate::mpa::fpdu::FPDU_MAX) octets.
    Incomplete {
        /// Octets that the stream must hold before the next try. More than it holds now.
        needed: usize,
    },
}

/// The embedder's handling of received messages.
///
/// No method is called for an FPDU that is incomplete or has a wrong CRC or marker (RFC 5044 §6).
/// For a segment with payload the calls are `begin`, any number of `place`, `end`, all within one
/// [`Receiver::consume`]. Header fields come from the copy that the CRC covered; the embedder reads
/// the payload a second time.
///
/// An error from any method ends the stream, and [`Receiver::consume`] returns it.
pub trait Placement {
    /// The stream's octets.
    type Stream<'s>: Octets;

    /// Starts a segment with a valid header. The embedder checks state, rights, protection domain
    /// and bounds, and takes a receive WQE for a Send with `mo` 0. Zero-length RDMA Writes come
    /// here too; their STag and offset must not be checked (RFC 5041 §5.2).
    ///
    /// # Errors
    ///
    /// The reason the segment cannot be placed.
    fn begin(&mut self, segment: &Segment) -> Result<(), Error>;

    /// Places the next payload of the segment: the octets `from` of `stream`, at `offset` octets
    /// into the segment. `from` is never empty and stays within the segment. Calls are in order.
    ///
    /// # Errors
    ///
    /// The reason the payload cannot be placed.
    fn place(
        &mut self,
        segment: &Segment,
        offset: u32,
        stream: &Self::Stream<'_>,
        from: Range<usize>,
    ) -> Result<(), Error>;

    /// Ends a segment whose payload is placed. After the last segment the embedder delivers the
    /// message.
    ///
    /// # Errors
    ///
    /// The reason the message cannot be delivered.
    fn end(&mut self, segment: &Segment) -> Result<(), Error>;

    /// Handles a Read Request. The embedder enforces IRD and checks the source. It must not check a
    /// request for 0 octets, and must answer it (RFC 5040 §5.2.1).
    ///
    /// # Errors
    ///
    /// The reason the request cannot be answered. If the embedder finds an error later, it builds
    /// the Terminate from [`Quote::read_request`].
    fn read_request(&mut self, request: &ReadRequest, msn: u32) -> Result<(), Error>;

    /// Handles an Atomic Request (RFC 7306). It counts as a Read Request for IRD.
    ///
    /// # Errors
    ///
    /// The reason the request cannot be executed. The default refuses every request.
    fn atomic_request(&mut self, request: &AtomicRequest, msn: u32) -> Result<(), Error> {
        let _ = (request, msn);
        Err(Rdmap::UnexpectedOpcode.into())
    }

    /// Handles an Atomic Response (RFC 7306).
    ///
    /// # Errors
    ///
    /// No outstanding request matches. The default refuses every response.
    fn atomic_response(&mut self, response: &AtomicResponse, msn: u32) -> Result<(), Error> {
        let _ = (response, msn);
        Err(Rdmap::UnexpectedOpcode.into())
    }

    /// Handles Immediate Data (RFC 7306). It takes a receive WQE, in order with the Sends.
    ///
    /// # Errors
    ///
    /// No receive WQE. The default refuses every message.
    fn immediate(&mut self, data: [u8; 8], solicited: bool, msn: u32) -> Result<(), Error> {
        let _ = (data, solicited, msn);
        Err(Rdmap::UnexpectedOpcode.into())
    }

    /// Handles the peer's Terminate. No other method is called after it; later data is discarded.
    fn terminated(&mut self, terminate: &Terminated);
}

/// The receiving half of a stream. It begins behind the startup frame.
pub struct Receiver<C: Crc32c> {
    mpa: Deframer<C>,
    rdmap: Inbound,
    /// An error or a Terminate ended the stream.
    ended: bool,
}

impl<C: Crc32c> Receiver<C> {
    /// Creates a receiver at the start of the stream.
    pub fn new(config: RxConfig) -> Self {
        Self {
            mpa: Deframer::new(config.crc, config.markers),
            rdmap: Inbound::new(),
            ended: false,
        }
    }

    /// Consumes the FPDU at the front of `stream` if it is complete. The caller must not pass
    /// consumed octets again, and must pass all others again.
    ///
    /// After an error or a Terminate the stream is dead, and all further data is consumed.
    ///
    /// # Errors
    ///
    /// The first error of the stream. A wrong CRC takes precedence over all others, so that
    /// corruption by the network is reported as such (RFC 5044 §8).
    pub fn consume<P: Placement>(
        &mut self,
        stream: &P::Stream<'_>,
        placement: &mut P,
    ) -> Result<Progress, Error> {
        if self.ended {
            return Ok(Progress::Consumed(stream.len()));
        }
        let outcome = self.next(stream, placement);
        self.ended |= outcome.is_err();
        outcome
    }

    fn next<P: Placement>(
        &mut self,
        stream: &P::Stream<'_>,
        placement: &mut P,
    ) -> Result<Progress, Error> {
        match self.mpa.next(stream)? {
            Next::Incomplete { needed } => Ok(Progress::Incomplete { needed }),
            Next::Fpdu { octets, ulpdu } => {
                self.ended = !self.rdmap.segment(&ulpdu, placement)?;
                Ok(Progress::Consumed(octets))
            }
        }
    }

    /// Returns whether the stream may end here gracefully: between FPDUs and inside no message.
    /// `unread` is the number of received octets that are not consumed. False once the stream is
    /// dead.
    pub fn at_boundary(&self, unread: usize) -> bool {
        !self.ended && self.mpa.may_end(unread) && self.rdmap.at_boundary()
    }

    /// Returns whether a valid FPDU has been received. Before that a responder must not send (RFC
    /// 5044 §7.1.2 rule 4).
    pub fn started(&self) -> bool {
        self.mpa.started()
    }

    /// Returns the headers that a Terminate quotes, of the segment for which `consume` just
    /// returned an error.
    pub fn quote(&self) -> Quote {
        self.rdmap.quote()
    }
}
