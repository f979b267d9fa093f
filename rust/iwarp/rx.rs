// SPDX-License-Identifier: GPL-2.0

//! The receiver: takes FPDUs off the stream, each when it is there whole and right, and tells the
//! embedder what came and where it goes.

use crate::crc::{Crc, Crc32c};
use crate::error::{Error, Rdmap};
use crate::mpa::deframe::{Deframer, Next};
use crate::rdmap::inbound::Inbound;
use crate::rdmap::read::ReadRequest;
use crate::rdmap::{AtomicRequest, AtomicResponse, Quote, Terminated};
use crate::types::Stag;
use core::ops::Range;

/// How the stream is framed; the outcome of the startup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RxConfig {
    /// CRCs are checked.
    pub crc: bool,
    /// The peer sends markers, because this side asked for them.
    pub markers: bool,
}

/// A segment that carries payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Segment {
    /// Of a Send: into the receive buffer of this message.
    Send {
        /// Message sequence number; the first message is 1, then one more each, modulo 2^32.
        msn: u32,
        /// Offset of the segment in the message, in octets. 0 begins a message; otherwise it is
        /// where the segment before it ended.
        mo: u32,
        /// Payload of the segment, in octets.
        len: u32,
        /// The last of its message, whose length is then `mo` + `len`.
        last: bool,
        /// The sender asks for a solicited event.
        solicited: bool,
        /// The STag that the sender wants invalidated when the message is delivered.
        invalidate: Option<Stag>,
    },
    /// Of an RDMA Write: into a buffer that was advertised to the peer.
    Write {
        /// The buffer.
        stag: Stag,
        /// Tagged Offset of the segment.
        to: u64,
        /// Payload of the segment, in octets. When 0, STag and offset must not be checked.
        len: u32,
        /// The last of its message.
        last: bool,
    },
    /// Of an RDMA Read Response: into the sink of the oldest read outstanding.
    ReadResponse {
        /// The sink.
        stag: Stag,
        /// Tagged Offset of the segment.
        to: u64,
        /// Payload of the segment, in octets.
        len: u32,
        /// The last of its message.
        last: bool,
    },
}

impl Segment {
    /// Payload in octets.
    #[inline]
    pub const fn len(&self) -> u32 {
        match self {
            Self::Send { len, .. } | Self::Write { len, .. } | Self::ReadResponse { len, .. } => {
                *len
            }
        }
    }

    /// Whether it has no payload.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it is the last of its message.
    #[inline]
    pub const fn last(&self) -> bool {
        match self {
            Self::Send { last, .. }
            | Self::Write { last, .. }
            | Self::ReadResponse { last, .. } => *last,
        }
    }
}

/// The octets of the stream that have come and were not consumed, where they lie.
///
/// Others may be able to write to that memory: who sends from pages of its own over a loopback
/// device is one. So nothing is ever borrowed from here, only copied out, and an octet that is
/// copied twice may have changed in between.
pub trait Octets {
    /// How many there are.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies the octets from `at` on to `to`, for which there are enough. `None` when they cannot
    /// be read.
    fn copy(&self, at: usize, to: &mut [u8]) -> Option<()>;

    /// Runs `crc` on over `len` octets from `at` on, which are there. `None` when they cannot be
    /// read.
    fn crc(&self, crc: Crc, at: usize, len: usize) -> Option<Crc>;
}

/// What has become of the octets at the front of the stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// So many of them are consumed.
    Consumed(usize),
    /// None: the FPDU that they begin needs so many, more than there are. An FPDU has
    /// [`FPDU_MAX`](crate::mpa::fpdu::FPDU_MAX) at most.
    Incomplete {
        /// The octets that have to be there before the next try.
        needed: usize,
    },
}

/// What the embedder does with what comes in.
///
/// Nothing is called for an FPDU that is not there whole, or whose CRC or markers are wrong
/// (RFC 5044 §6). For a segment with payload the calls are `begin`, any number of `place`, `end`,
/// all within one [`Receiver::consume`]. What a call is given of headers comes from the copy that
/// the CRC was computed of; payload is read a second time, by the embedder.
///
/// An error from any of these ends the stream, and [`Receiver::consume`] returns it.
pub trait Placement {
    /// Where the stream is.
    type Stream<'s>: Octets;

    /// A segment has come, with a header that is in itself valid. The embedder checks state, rights,
    /// protection domain and bounds, and takes a receive WQE if it is a Send with `mo` 0. A
    /// zero-length RDMA Write comes here too: its STag and offset must not be checked (RFC 5041
    /// §5.2).
    ///
    /// # Errors
    ///
    /// The reason why the segment cannot be placed.
    fn begin(&mut self, segment: &Segment) -> Result<(), Error>;

    /// The next payload of the segment, in order, `offset` octets into it: the octets `from` of
    /// `stream`. Never empty; never past the length of the segment.
    ///
    /// # Errors
    ///
    /// The reason why it cannot be placed.
    fn place(
        &mut self,
        segment: &Segment,
        offset: u32,
        stream: &Self::Stream<'_>,
        from: Range<usize>,
    ) -> Result<(), Error>;

    /// All of the segment is placed. If it is the last, so is the message, and it is to be
    /// delivered.
    ///
    /// # Errors
    ///
    /// The reason why the message cannot be delivered.
    fn end(&mut self, segment: &Segment) -> Result<(), Error>;

    /// A Read Request. The embedder enforces IRD and checks the source; but of a request for 0
    /// octets it must check nothing, and answer it (RFC 5040 §5.2.1).
    ///
    /// # Errors
    ///
    /// The reason why it cannot be answered. If that is found only later, the embedder builds the
    /// Terminate from [`Quote::read_request`].
    fn read_request(&mut self, request: &ReadRequest, msn: u32) -> Result<(), Error>;

    /// An Atomic Request (RFC 7306). It counts as a Read Request for IRD.
    ///
    /// # Errors
    ///
    /// The reason why it cannot be done. Refused unless overridden.
    fn atomic_request(&mut self, request: &AtomicRequest, msn: u32) -> Result<(), Error> {
        let _ = (request, msn);
        Err(Rdmap::UnexpectedOpcode.into())
    }

    /// An Atomic Response (RFC 7306).
    ///
    /// # Errors
    ///
    /// When no request waits for it. Refused unless overridden.
    fn atomic_response(&mut self, response: &AtomicResponse, msn: u32) -> Result<(), Error> {
        let _ = (response, msn);
        Err(Rdmap::UnexpectedOpcode.into())
    }

    /// Immediate Data (RFC 7306). It takes a receive WQE, in order with the Sends.
    ///
    /// # Errors
    ///
    /// When there is no receive WQE. Refused unless overridden.
    fn immediate(&mut self, data: [u8; 8], solicited: bool, msn: u32) -> Result<(), Error> {
        let _ = (data, solicited, msn);
        Err(Rdmap::UnexpectedOpcode.into())
    }

    /// The peer's Terminate. Nothing more is passed on; what still comes is discarded.
    fn terminated(&mut self, terminate: &Terminated);
}

/// The receiving half of a stream, from the first octet behind the startup frame on.
pub struct Receiver<C: Crc32c> {
    mpa: Deframer<C>,
    rdmap: Inbound,
    /// An error or a Terminate has come.
    ended: bool,
}

impl<C: Crc32c> Receiver<C> {
    /// A receiver at the start of the stream.
    pub fn new(config: RxConfig) -> Self {
        Self {
            mpa: Deframer::new(config.crc, config.markers),
            rdmap: Inbound::new(),
            ended: false,
        }
    }

    /// Consumes the FPDU at the front of `stream`, if it is there whole. What is consumed must not
    /// be shown again, everything else must.
    ///
    /// After an error or a Terminate the stream is dead, and whatever comes is consumed.
    ///
    /// # Errors
    ///
    /// The first error of the stream. A wrong CRC goes before all others, so that an error that the
    /// network made is reported as such (RFC 5044 §8).
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

    /// Whether the stream is between FPDUs and inside no message, if `unread` octets have come that
    /// were not consumed: its end here is a graceful one. False once the stream is dead.
    pub fn at_boundary(&self, unread: usize) -> bool {
        !self.ended && self.mpa.may_end(unread) && self.rdmap.at_boundary()
    }

    /// Whether a valid FPDU has come. Before that a responder must not send (RFC 5044 §7.1.2
    /// rule 4).
    pub fn started(&self) -> bool {
        self.mpa.started()
    }

    /// What a Terminate has to quote of the segment at hand: the one whose error `consume` just
    /// returned.
    pub fn quote(&self) -> Quote {
        self.rdmap.quote()
    }
}
