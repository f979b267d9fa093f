// SPDX-License-Identifier: GPL-2.0

//! The receiver: takes the stream in any split and tells the embedder what came and where it goes.

use crate::crc::Crc32c;
use crate::error::{Error, Rdmap};
use crate::mpa::deframe::Deframer;
use crate::rdmap::inbound::{Bound, Inbound};
use crate::rdmap::read::ReadRequest;
use crate::rdmap::{AtomicRequest, AtomicResponse, Quote, Terminated};
use crate::types::Stag;

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

/// What the embedder does with what comes in.
///
/// For a segment the calls are `begin`, any number of `place`, `end`. Payload is placed as it
/// comes, before the CRC behind it is known; nothing is delivered (`end` and the calls for
/// messages without payload) before the CRC was right. RFC 5040 §5.5 (rules 4 to 6) leaves the
/// contents of a buffer open until delivery; but RFC 5044 §6 wants the CRC checked before DDP
/// sees a header, so a header damaged on its way can have payload placed where else on this stream
/// the embedder permits it, before the stream ends with the CRC error.
///
/// An error from any of these ends the stream, and [`Receiver::consume`] returns it; see there for
/// when.
pub trait Placement {
    /// A segment's header is here, and in itself valid. The embedder checks state, rights,
    /// protection domain and bounds, and takes a receive WQE if it is a Send with `mo` 0. A
    /// zero-length RDMA Write comes here too: its STag and offset must not be checked (RFC 5041
    /// §5.2).
    ///
    /// # Errors
    ///
    /// The reason why the segment cannot be placed.
    fn begin(&mut self, segment: &Segment) -> Result<(), Error>;

    /// The next payload of the segment, in order, `offset` octets into it. Never empty; never
    /// past the length of the segment.
    ///
    /// # Errors
    ///
    /// The reason why it cannot be placed.
    fn place(&mut self, segment: &Segment, offset: u32, data: &[u8]) -> Result<(), Error>;

    /// The segment is complete and its CRC right. If it is the last, so is the message, and it is
    /// to be delivered.
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
}

impl<C: Crc32c> Receiver<C> {
    /// A receiver at the start of the stream.
    pub fn new(config: RxConfig) -> Self {
        Self {
            mpa: Deframer::new(config.crc, config.markers),
            rdmap: Inbound::new(),
        }
    }

    /// Takes the next `data` of the stream, in any split. Returns how much was taken: all of it.
    ///
    /// After an error or a Terminate the stream is dead, and later calls discard what they get.
    ///
    /// # Errors
    ///
    /// The first error of the stream. One that was found in a segment whose FPDU has a CRC is
    /// returned when the FPDU is there whole and the CRC was right, so that an error that the
    /// network made is reported as such (RFC 5044 §8); until then the rest of the FPDU is
    /// skipped without further calls of `placement`. Without CRC it is returned at once, but not
    /// before the first FPDU is there whole: a responder may not answer until then (RFC 5044
    /// §7.1.2).
    pub fn consume<P: Placement>(
        &mut self,
        data: &[u8],
        placement: &mut P,
    ) -> Result<usize, Error> {
        let mut sink = Bound::new(&mut self.rdmap, placement);
        self.mpa.feed(data, &mut sink)?;
        Ok(data.len())
    }

    /// Whether the stream is between FPDUs and inside no message: the end of the stream here is a
    /// graceful one. False once the stream is dead.
    pub fn at_boundary(&self) -> bool {
        self.mpa.at_boundary() && self.rdmap.at_boundary()
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
