// SPDX-License-Identifier: GPL-2.0

//! The traits of the crate: its interfaces with the embedder, and of DDP with a lower layer.
//!
//! An embedder supplies a [`Crc32c`] engine, a [`Gather`] to send, and [`Octets`] and a
//! [`Placement`] to receive. A lower layer has a [`Framing`] and a [`Deframing`]; this crate
//! implements both in [`mpa`](crate::mpa) and [`sctp`](crate::sctp).

use crate::ddp::{Header, Ulpdu};
use crate::error::{Error, Rdmap};
use crate::rdmap::atomic::{AtomicRequest, AtomicResponse};
use crate::rdmap::read::ReadRequest;
use crate::rdmap::segment::Segment;
use crate::rdmap::terminate::Terminated;
use core::ops::Range;

/// A CRC32c engine (polynomial 0x1EDC6F41, reflected): the CRC of an FPDU, as iSCSI defines it (RFC
/// 5044 §4.4). The embedder supplies it, because it has a faster one than a portable crate.
pub trait Crc32c {
    /// Continues the CRC `crc` over `data`, as Linux's `crc32c()` does. Inverts neither its input
    /// nor its result.
    fn update(crc: u32, data: &[u8]) -> u32;
}

/// A running CRC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Crc(u32);

impl Crc {
    /// The CRC of no octets: all ones.
    pub const fn new() -> Self {
        Self(!0)
    }

    /// Resumes a CRC from the value of [`Crc::raw`].
    pub const fn from_raw(raw: u32) -> Self {
        Self(raw)
    }

    /// Returns the running value, not inverted.
    pub const fn raw(self) -> u32 {
        self.0
    }

    /// Continues the CRC over `data`.
    #[must_use]
    pub fn update<C: Crc32c>(self, data: &[u8]) -> Self {
        Self(C::update(self.0, data))
    }

    /// Returns the four octets of the FPDU's CRC field.
    pub const fn wire(self) -> [u8; 4] {
        (!self.0).to_le_bytes()
    }
}

impl Default for Crc {
    fn default() -> Self {
        Self::new()
    }
}

/// The sink for the octets of a frame. Calls come in stream order.
pub trait Gather {
    /// The reason the sink refuses octets.
    type Error;

    /// Appends octets that are not payload: headers, markers, pad, CRC. `bytes` is valid only
    /// during the call.
    ///
    /// # Errors
    ///
    /// The octets cannot be taken; the frame is abandoned.
    fn bytes(&mut self, bytes: &[u8]) -> Result<(), Self::Error>;

    /// Appends octets `offset` to `offset` + `len` of the message; `len` is not 0. If `crc` is
    /// given, continues it over them and returns it.
    ///
    /// # Errors
    ///
    /// The octets cannot be taken; the frame is abandoned.
    fn payload(
        &mut self,
        offset: u32,
        len: u32,
        crc: Option<Crc>,
    ) -> Result<Option<Crc>, Self::Error>;
}

/// The sending side of a lower layer: puts each DDP segment in a frame of its own (RFC 5041 §3).
/// The segmenter is its only caller.
pub trait Framing {
    /// Octets of a frame in front of the segment. At most 2, which the compiler checks.
    const PREFIX_LEN: usize;

    /// Returns MULPDU: the longest segment that fits in a frame now, in octets. At least 128, so
    /// that a message without payload is one segment.
    fn mulpdu(&self) -> u16;

    /// Writes one frame to `out`: `head`, and then `len` octets of the message at `offset`. `head`
    /// begins with [`PREFIX_LEN`](Self::PREFIX_LEN) octets, which this fills in; the headers of the
    /// segment follow. The segment is not longer than MULPDU. Returns the octets of the frame.
    ///
    /// # Errors
    ///
    /// Errors of `out`. They leave the framing unchanged, so that the frame can be written again.
    fn emit<G: Gather>(
        &mut self,
        head: &mut [u8],
        offset: u32,
        len: u32,
        out: &mut G,
    ) -> Result<u32, G::Error>;
}

/// The receiving side of a lower layer: takes DDP segments out of their frames.
///
/// A layer over a byte stream finds the frames in it. If the layer below receives messages, a
/// message is one frame, and the stream is that message. Frames come in the order in which they
/// were sent; a layer that receives them in any order has to sort them first.
pub trait Deframing {
    /// Where a segment lies in the received octets.
    type Layout: Layout;

    /// The error for a segment that is too short for its DDP header.
    const SHORT: Error;

    /// Takes the frame at the front of `stream` if it is complete, checks it, and moves past it.
    ///
    /// # Errors
    ///
    /// The frame is invalid, or its octets cannot be read. The stream is then dead.
    fn next<S: Octets>(&mut self, stream: &S) -> Result<Deframed<Self::Layout>, Error>;

    /// Returns whether the stream may end with `unread` octets behind the last frame.
    fn may_end(&self, unread: usize) -> bool;
}

/// The front of a stream.
pub enum Deframed<L> {
    /// A complete, checked frame.
    Frame {
        /// The octets of the stream that it takes.
        octets: usize,
        /// Its segment.
        ulpdu: Ulpdu<L>,
    },
    /// An incomplete frame.
    Incomplete {
        /// Octets that the stream must hold before the next try. More than it holds now.
        needed: usize,
    },
}

/// Where a segment lies in the received octets.
pub trait Layout {
    /// Yields `part` of the segment as ranges of the received octets, in order. No range is empty.
    fn runs(&self, part: Range<usize>) -> impl Iterator<Item = Range<usize>>;
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

/// A message that takes a receive WQE.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taker {
    /// A Send of any kind.
    Send,
    /// Immediate Data (RFC 7306).
    Immediate,
}

/// The embedder's answer to a message that takes a receive WQE.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission {
    /// The message begins now.
    Now,
    /// There is no receive WQE yet. The message, and all that is behind it in the stream, waits.
    Later,
}

/// The embedder's handling of received messages.
///
/// No method is called for a frame that is incomplete or invalid: an FPDU with a wrong CRC or
/// marker (RFC 5044 §6). For a segment with payload the calls are `begin`, any number of `place`,
/// `end`, all within one [`Receiver::consume`](crate::Receiver::consume); before them
/// `take_receive`, if the segment begins a Send. Header fields come from the copy that the CRC
/// covered; the embedder reads the payload a second time.
///
/// An error from any method ends the stream, and
/// [`Receiver::consume`](crate::Receiver::consume) returns it.
pub trait Placement {
    /// The stream's octets.
    type Stream<'s>: Octets;

    /// Observes a segment with `len` octets behind `header`, before anything is checked but its
    /// frame: any field may be invalid. The default does nothing.
    #[inline]
    fn received(&mut self, header: &Header, len: u32) {
        let _ = (header, len);
    }

    /// Takes a receive WQE for `taker`, a message that begins. If no WQE is posted, the embedder
    /// may put the message off, and let the lower layer hold the peer back (RFC 5041 §7.1). Each
    /// later [`Receiver::consume`](crate::Receiver::consume) calls this again, until the message is
    /// admitted or refused. The default admits every message.
    ///
    /// # Errors
    ///
    /// No receive WQE, and the embedder does not wait for one; or it does not take such a message.
    #[inline]
    fn take_receive(&mut self, taker: Taker) -> Result<Admission, Error> {
        let _ = taker;
        Ok(Admission::Now)
    }

    /// Starts a segment with a valid header. The embedder checks state, rights, protection domain
    /// and bounds; a Send has its receive WQE by [`take_receive`](Self::take_receive). Zero-length
    /// RDMA Writes come here too; their STag and offset must not be checked (RFC 5041 §5.2).
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
    /// the Terminate from [`Quote::read_request`](crate::Quote::read_request).
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

    /// Handles Immediate Data (RFC 7306). It has a receive WQE by
    /// [`take_receive`](Self::take_receive), in order with the Sends.
    ///
    /// # Errors
    ///
    /// The reason the message cannot be delivered. The default refuses every message.
    fn immediate(&mut self, data: [u8; 8], solicited: bool, msn: u32) -> Result<(), Error> {
        let _ = (data, solicited, msn);
        Err(Rdmap::UnexpectedOpcode.into())
    }

    /// Handles the peer's Terminate. No other method is called after it; later data is discarded.
    fn terminated(&mut self, terminate: &Terminated);
}
