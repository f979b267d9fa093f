// SPDX-License-Identifier: GPL-2.0

//! Handling of received DDP segments: checks headers, places payload, and decodes messages without
//! payload. Enforces the rules of RFC 5041 §7.1 and RFC 5040 §7.2 that need no memory table.

use crate::ddp::queue::Queue;
use crate::ddp::{Header, Ulpdu, FRONT_LEN};
use crate::error::{DdpTagged, DdpUntagged, Error, Rdmap};
use crate::rdmap::atomic::{AtomicRequest, AtomicResponse};
use crate::rdmap::read::ReadRequest;
use crate::rdmap::segment::Segment;
use crate::rdmap::terminate::{Quote, Terminate};
use crate::traits::{Deframing, Layout, Placement, Taker};
use crate::types::{count, split, Stag};
use crate::wire::ddp as wire_ddp;
use crate::wire::rdmap as wire;
use core::ops::Range;

/// The type of a segment, from its DDP header.
#[derive(Clone, Copy)]
enum SegmentKind {
    /// A segment with payload.
    Payload(Segment),
    /// Messages that consist of one header.
    ReadRequest,
    AtomicRequest,
    AtomicResponse,
    Immediate {
        solicited: bool,
    },
    Terminate,
}

impl SegmentKind {
    /// Returns the message without payload that has this opcode, its queue, and the octets of its
    /// header: 0 for a Terminate, whose length varies.
    #[inline]
    const fn without_payload(opcode: u8) -> Option<(Self, u32, usize)> {
        Some(match opcode {
            wire::OP_READ_REQUEST => (
                Self::ReadRequest,
                wire::QN_READ_REQUEST,
                wire::READ_REQUEST_LEN,
            ),
            wire::OP_TERMINATE => (Self::Terminate, wire::QN_TERMINATE, 0),
            wire::OP_IMMEDIATE | wire::OP_IMMEDIATE_SE => {
                let solicited = opcode == wire::OP_IMMEDIATE_SE;
                (
                    Self::Immediate { solicited },
                    wire::QN_SEND,
                    wire::IMMEDIATE_LEN,
                )
            }
            wire::OP_ATOMIC_REQUEST => (
                Self::AtomicRequest,
                wire::QN_READ_REQUEST,
                wire::ATOMIC_REQUEST_LEN,
            ),
            wire::OP_ATOMIC_RESPONSE => (
                Self::AtomicResponse,
                wire::QN_ATOMIC_RESPONSE,
                wire::ATOMIC_RESPONSE_LEN,
            ),
            _ => return None,
        })
    }
}

/// A segment whose headers are checked.
#[derive(Clone, Copy)]
pub(super) struct Accepted {
    kind: SegmentKind,
    /// Where its payload begins: octets of its DDP header.
    body: usize,
}

impl Accepted {
    /// Returns the kind of the message that the segment begins, if it takes a receive WQE.
    #[inline]
    pub(super) const fn takes_receive(&self) -> Option<Taker> {
        match self.kind {
            SegmentKind::Payload(Segment::Send { mo: 0, .. }) => Some(Taker::Send),
            SegmentKind::Immediate { .. } => Some(Taker::Immediate),
            _ => None,
        }
    }
}

/// The state of the receiving side of DDP and RDMAP.
///
/// A peer's segments fall in two lanes: requests (Send, Write, Read Request, Atomic Request,
/// Immediate Data) and responses (Read Response, Atomic Response). Within a lane, a message must be
/// complete before the next begins (RFC 5041 §5.3). Between the lanes, segments may interleave, as
/// they do with adapters that answer reads from a separate queue.
pub(super) struct RdmapReceiver {
    /// Length of the current segment, headers included, in octets.
    len: u16,
    /// Its first octets.
    front: [u8; FRONT_LEN],
    /// Its type, if its header is valid.
    kind: Option<SegmentKind>,
    /// Sequence number of an untagged segment.
    msn: u32,
    /// Queue 0.
    sends: Queue,
    /// The opcode of the incomplete Send.
    send_opcode: u8,
    /// Queue 1.
    requests: Queue,
    /// Queue 3.
    atomics: Queue,
    /// The buffer of the incomplete RDMA Write.
    write: Option<Stag>,
    /// The buffer of the incomplete Read Response.
    response: Option<Stag>,
}

impl RdmapReceiver {
    pub(super) const fn new() -> Self {
        Self {
            len: 0,
            front: [0; FRONT_LEN],
            kind: None,
            msn: 0,
            sends: Queue::new(),
            send_opcode: 0,
            requests: Queue::new(),
            atomics: Queue::new(),
            write: None,
            response: None,
        }
    }

    /// Returns whether no message is incomplete.
    pub(super) fn at_boundary(&self) -> bool {
        !self.sends.open() && self.write.is_none() && self.response.is_none()
    }

    /// Returns the headers of the current segment.
    pub(super) fn quote(&self) -> Quote {
        let front = split(&self.front, usize::from(self.len)).0;
        let Some(header) = Header::parse(front) else {
            return Quote::NONE;
        };
        let (ddp, body) = split(front, header.octets());
        let rdmap = matches!(self.kind, Some(SegmentKind::ReadRequest)).then_some(body);
        Quote::new(Some(self.len), ddp, rdmap)
    }

    /// Takes the headers of the next segment, and checks them.
    pub(super) fn accept<D: Deframing, P: Placement>(
        &mut self,
        ulpdu: &Ulpdu<D::Layout>,
        placement: &mut P,
    ) -> Result<Accepted, Error> {
        self.len = ulpdu.len;
        self.front = ulpdu.front;
        self.kind = None;
        let header = Header::parse(ulpdu.front()).ok_or(D::SHORT)?;
        let body = header.octets();
        let len = count((body..usize::from(ulpdu.len)).len());
        placement.received(&header, len);
        let kind = self.classify(&header, len)?;
        self.kind = Some(kind);
        Ok(Accepted { kind, body })
    }

    /// Handles the segment that [`Self::accept`] has returned last, with this `layout` in `stream`:
    /// lets `placement` place its payload and deliver its message. Returns whether the stream
    /// continues; it ends after a Terminate.
    pub(super) fn segment<L: Layout, P: Placement>(
        &mut self,
        accepted: Accepted,
        layout: &L,
        stream: &P::Stream<'_>,
        placement: &mut P,
    ) -> Result<bool, Error> {
        let len = usize::from(self.len);
        let (_, body) = split(split(&self.front, len).0, accepted.body);
        let payload = accepted.body..len;

        let msn = self.msn;
        let short = Error::Rdmap(Rdmap::CatastrophicStream);
        match accepted.kind {
            SegmentKind::Payload(segment) => {
                self.place(&segment, layout.runs(payload), stream, placement)?;
            }
            SegmentKind::ReadRequest => {
                self.requests.advance(0, true);
                placement.read_request(&ReadRequest::parse(body).ok_or(short)?, msn)?;
            }
            SegmentKind::AtomicRequest => {
                let unknown = Error::Rdmap(Rdmap::UnexpectedOpcode);
                self.requests.advance(0, true);
                placement.atomic_request(&AtomicRequest::parse(body).ok_or(unknown)?, msn)?;
            }
            SegmentKind::AtomicResponse => {
                self.atomics.advance(0, true);
                placement.atomic_response(&AtomicResponse::parse(body).ok_or(short)?, msn)?;
            }
            SegmentKind::Immediate { solicited } => {
                self.sends.advance(0, true);
                let data = *body.first_chunk().ok_or(short)?;
                placement.immediate(data, solicited, msn)?;
            }
            SegmentKind::Terminate => {
                placement.terminated(&Terminate::parse(body).ok_or(short)?);
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Lets `placement` place the payload of `segment`, the octets `runs` of `stream`, and deliver
    /// the message that it completes.
    #[inline]
    fn place<P: Placement>(
        &mut self,
        segment: &Segment,
        runs: impl Iterator<Item = Range<usize>>,
        stream: &P::Stream<'_>,
        placement: &mut P,
    ) -> Result<(), Error> {
        placement.begin(segment)?;
        let mut offset = 0;
        for run in runs {
            let len = count(run.len());
            placement.place(segment, offset, stream, run)?;
            offset = offset.saturating_add(len);
        }
        self.advance(segment);
        placement.end(segment)
    }

    /// Determines the type of a segment with `len` octets behind `header`, and checks that it is
    /// allowed now.
    fn classify(&mut self, header: &Header, len: u32) -> Result<SegmentKind, Error> {
        header.check_version()?;
        match header {
            Header::Tagged(h) => self.tagged(h, len),
            Header::Untagged(h) => self.untagged(h, len),
        }
    }

    /// Checks RDMAP's version and returns the opcode. Version 0 of the RDMA Consortium belongs to
    /// MPA revision 0, which is never negotiated here (RFC 5040 §4.1).
    fn opcode(octet: u8) -> Result<u8, Error> {
        if octet & wire::VERSION_MASK != wire::VERSION {
            return Err(Rdmap::InvalidVersion.into());
        }
        Ok(octet & wire::OPCODE_MASK)
    }

    fn tagged(&self, h: &wire_ddp::TaggedHeader, len: u32) -> Result<SegmentKind, Error> {
        let stag = Stag(h.stag.get());
        let to = h.to.get();
        let last = h.control & wire_ddp::LAST != 0;
        let (open, segment) = match Self::opcode(h.rdmap)? {
            wire::OP_WRITE => {
                if self.sends.open() {
                    return Err(Rdmap::UnexpectedOpcode.into());
                }
                #[rustfmt::skip]
                let segment = Segment::Write { stag, to, len, last };
                (self.write, segment)
            }
            wire::OP_READ_RESPONSE => {
                #[rustfmt::skip]
                let segment = Segment::ReadResponse { stag, to, len, last };
                (self.response, segment)
            }
            _ => return Err(Rdmap::UnexpectedOpcode.into()),
        };
        // All segments of a message name the same buffer (RFC 5041 §4.2). The STag of an empty
        // segment is not checked (§5.2).
        match open {
            Some(begun) if begun != stag && len != 0 => Err(DdpTagged::InvalidStag.into()),
            _ => Ok(SegmentKind::Payload(segment)),
        }
    }

    fn untagged(&mut self, h: &wire_ddp::UntaggedHeader, len: u32) -> Result<SegmentKind, Error> {
        let qn = h.qn.get();
        if qn > wire::QN_ATOMIC_RESPONSE {
            return Err(DdpUntagged::InvalidQn.into());
        }
        let opcode = Self::opcode(h.rdmap)?;
        if let wire::OP_SEND | wire::OP_SEND_INV | wire::OP_SEND_SE | wire::OP_SEND_SE_INV = opcode
        {
            return self.send(h, opcode, len);
        }
        let (kind, queue, exact) =
            SegmentKind::without_payload(opcode).ok_or(Rdmap::UnexpectedOpcode)?;
        if qn != queue {
            return Err(DdpUntagged::InvalidQn.into());
        }
        self.msn = h.msn.get();
        // A Terminate may interrupt any message. Accept it with any MSN and offset: it ends the
        // stream, and refusing it would only lose its error code.
        if matches!(kind, SegmentKind::Terminate) {
            return Ok(kind);
        }
        let busy = if matches!(kind, SegmentKind::AtomicResponse) {
            self.response.is_some()
        } else {
            self.sends.open() || self.write.is_some()
        };
        if busy {
            return Err(Rdmap::UnexpectedOpcode.into());
        }
        let last = h.control & wire_ddp::LAST != 0;
        let queue = match kind {
            SegmentKind::AtomicResponse => &self.atomics,
            SegmentKind::Immediate { .. } => &self.sends,
            _ => &self.requests,
        };
        queue.check(self.msn, h.mo.get(), len, last)?;
        // MULPDU is never below 128 octets (RFC 5044 §4.5; RFC 5043 §9: 516), so these messages fit
        // in one segment.
        let exact = count(exact);
        if len > exact {
            return Err(DdpUntagged::TooLong.into());
        }
        if len < exact || !last {
            return Err(Rdmap::CatastrophicStream.into());
        }
        Ok(kind)
    }

    fn send(
        &mut self,
        h: &wire_ddp::UntaggedHeader,
        opcode: u8,
        len: u32,
    ) -> Result<SegmentKind, Error> {
        if h.qn.get() != wire::QN_SEND {
            return Err(DdpUntagged::InvalidQn.into());
        }
        if self.write.is_some() {
            return Err(Rdmap::UnexpectedOpcode.into());
        }
        self.msn = h.msn.get();
        let mo = h.mo.get();
        let last = h.control & wire_ddp::LAST != 0;
        self.sends.check(self.msn, mo, len, last)?;
        if self.sends.open() && opcode != self.send_opcode {
            return Err(Rdmap::UnexpectedOpcode.into());
        }
        self.send_opcode = opcode;
        let invalidate = matches!(opcode, wire::OP_SEND_INV | wire::OP_SEND_SE_INV);
        Ok(SegmentKind::Payload(Segment::Send {
            msn: self.msn,
            mo,
            len,
            last,
            solicited: matches!(opcode, wire::OP_SEND_SE | wire::OP_SEND_SE_INV),
            invalidate: invalidate.then(|| Stag(h.invalidate.get())),
        }))
    }

    /// Advances the message state past a segment with payload.
    fn advance(&mut self, segment: &Segment) {
        match *segment {
            Segment::Send { len, last, .. } => self.sends.advance(len, last),
            Segment::Write { stag, last, .. } => {
                self.write = (!last).then_some(self.write.unwrap_or(stag));
            }
            Segment::ReadResponse { stag, last, .. } => {
                self.response = (!last).then_some(self.response.unwrap_or(stag));
            }
        }
    }
}
