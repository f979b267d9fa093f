// SPDX-License-Identifier: GPL-2.0

//! Handling of received DDP segments: checks headers, decodes messages without payload, and tracks
//! the messages. Enforces the rules of RFC 5041 §7.1 and RFC 5040 §7.2 that need no memory table.

use crate::ddp::queue::Queue;
use crate::ddp::{FrameHead, Header, Runs, Ulpdu, HEAD_LEN, PREFIX_LEN};
use crate::error::{DdpTagged, DdpUntagged, Error, Rdmap};
use crate::rdmap::atomic::{AtomicRequest, AtomicResponse};
use crate::rdmap::content::Content;
use crate::rdmap::read::ReadRequest;
use crate::rdmap::segment::Segment;
use crate::rdmap::terminate::{Quote, Terminate};
use crate::types::{count, split, Stag};
use crate::wire::ddp as wire_ddp;
use crate::wire::rdmap as wire;

/// The state of the receiving side of DDP and RDMAP.
///
/// A peer's segments fall in two lanes: requests (Send, Write, Read Request, Atomic Request,
/// Immediate Data) and responses (Read Response, Atomic Response). Within a lane, a message must be
/// complete before the next begins (RFC 5041 §5.3). Between the lanes, segments may interleave, as
/// they do with adapters that answer reads from a separate queue.
pub(super) struct RdmapReceiver {
    /// The first octets of the frame that came last.
    pub(super) head: FrameHead,
    /// Its segment. Its length is 0 if the frame is incomplete or invalid.
    ulpdu: Ulpdu,
    /// The frame is not taken.
    pub(super) at_front: bool,
    /// Its segment is a valid Read Request.
    is_read_request: bool,
    /// A valid frame has been received.
    pub(super) started: bool,
    /// An error or a Terminate ended the stream.
    pub(super) ended: bool,
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
            head: [0; HEAD_LEN],
            ulpdu: Ulpdu {
                octets: 0,
                len: 0,
                runs: Runs::new(0, 0),
            },
            at_front: false,
            is_read_request: false,
            started: false,
            ended: false,
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

    /// Forgets the frame that came last.
    #[inline]
    pub(super) fn forget(&mut self) {
        self.ulpdu.len = 0;
        self.is_read_request = false;
    }

    /// Takes the next frame, which is valid.
    #[inline]
    pub(super) fn begin(&mut self, ulpdu: Ulpdu) {
        self.ulpdu = ulpdu;
        self.at_front = true;
        self.started = true;
    }

    /// Returns the copied octets of the segment.
    #[inline]
    fn front(&self) -> &[u8] {
        let (_, front) = split(&self.head, PREFIX_LEN);
        split(front, usize::from(self.ulpdu.len)).0
    }

    /// Returns the header of the segment, and the number of octets behind it.
    #[inline]
    pub(super) fn header(&self) -> Option<(Header, u32)> {
        let header = Header::parse(self.front())?;
        let len = usize::from(self.ulpdu.len).saturating_sub(header.octets());
        Some((header, count(len)))
    }

    /// Returns where the octets behind the DDP header, which has `header_len`, lie in the stream.
    #[inline]
    pub(super) fn body(&self, header_len: usize) -> Runs {
        self.ulpdu.runs.clone().behind(header_len)
    }

    /// Returns the headers of the segment.
    pub(super) fn quote(&self) -> Quote {
        let Some((header, _)) = self.header() else {
            return Quote::NONE;
        };
        let (ddp, body) = split(self.front(), header.octets());
        Quote::new(
            Some(self.ulpdu.len),
            ddp,
            self.is_read_request.then_some(body),
        )
    }

    /// Determines the content of a segment with `len` octets behind `header`, and checks that it is
    /// allowed now.
    pub(super) fn classify(&mut self, header: &Header, len: u32) -> Result<Content, Error> {
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

    fn tagged(&self, h: &wire_ddp::TaggedHeader, len: u32) -> Result<Content, Error> {
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
            _ => Ok(Content::Payload(segment)),
        }
    }

    fn untagged(&mut self, h: &wire_ddp::UntaggedHeader, len: u32) -> Result<Content, Error> {
        let qn = h.qn.get();
        if qn > wire::QN_ATOMIC_RESPONSE {
            return Err(DdpUntagged::InvalidQn.into());
        }
        let opcode = Self::opcode(h.rdmap)?;
        if let wire::OP_SEND | wire::OP_SEND_INV | wire::OP_SEND_SE | wire::OP_SEND_SE_INV = opcode
        {
            return self.send(h, opcode, len);
        }
        let (queue, exact) = match opcode {
            wire::OP_READ_REQUEST => (wire::QN_READ_REQUEST, wire::READ_REQUEST_LEN),
            wire::OP_TERMINATE => (wire::QN_TERMINATE, 0),
            wire::OP_IMMEDIATE | wire::OP_IMMEDIATE_SE => (wire::QN_SEND, wire::IMMEDIATE_LEN),
            wire::OP_ATOMIC_REQUEST => (wire::QN_READ_REQUEST, wire::ATOMIC_REQUEST_LEN),
            wire::OP_ATOMIC_RESPONSE => (wire::QN_ATOMIC_RESPONSE, wire::ATOMIC_RESPONSE_LEN),
            _ => return Err(Rdmap::UnexpectedOpcode.into()),
        };
        if qn != queue {
            return Err(DdpUntagged::InvalidQn.into());
        }
        // A Terminate may interrupt any message. Accept it with any MSN, offset and length: it ends
        // the stream, and refusing it would only lose its error code.
        if opcode != wire::OP_TERMINATE {
            self.check_message(h, opcode, count(exact), len)?;
        }
        self.message(opcode, h.msn.get())
    }

    /// Checks that a message without payload may come now, with `len` octets behind its DDP header.
    /// It must have `exact`.
    fn check_message(
        &self,
        h: &wire_ddp::UntaggedHeader,
        opcode: u8,
        exact: u32,
        len: u32,
    ) -> Result<(), Error> {
        let busy = match opcode {
            wire::OP_ATOMIC_RESPONSE => self.response.is_some(),
            _ => self.sends.open() || self.write.is_some(),
        };
        if busy {
            return Err(Rdmap::UnexpectedOpcode.into());
        }
        let last = h.control & wire_ddp::LAST != 0;
        let queue = match opcode {
            wire::OP_ATOMIC_RESPONSE => &self.atomics,
            wire::OP_IMMEDIATE | wire::OP_IMMEDIATE_SE => &self.sends,
            _ => &self.requests,
        };
        queue.check(h.msn.get(), h.mo.get(), len, last)?;
        // MULPDU is never below 128 octets (RFC 5044 §4.5; RFC 5043 §9: 516), so these messages
        // fit in one segment.
        if len > exact {
            return Err(DdpUntagged::TooLong.into());
        }
        if len < exact || !last {
            return Err(Rdmap::CatastrophicStream.into());
        }
        Ok(())
    }

    /// Decodes a message without payload.
    fn message(&mut self, opcode: u8, msn: u32) -> Result<Content, Error> {
        let (_, body) = split(self.front(), wire_ddp::UNTAGGED_LEN);
        let short = Rdmap::CatastrophicStream;
        let content = match opcode {
            wire::OP_READ_REQUEST => Content::ReadRequest {
                request: ReadRequest::parse(body).ok_or(short)?,
                msn,
            },
            wire::OP_ATOMIC_REQUEST => Content::AtomicRequest {
                request: AtomicRequest::parse(body).ok_or(Rdmap::UnexpectedOpcode)?,
                msn,
            },
            wire::OP_ATOMIC_RESPONSE => Content::AtomicResponse {
                response: AtomicResponse::parse(body).ok_or(short)?,
                msn,
            },
            wire::OP_TERMINATE => Content::Terminate(Terminate::parse(body).ok_or(short)?),
            wire::OP_IMMEDIATE | wire::OP_IMMEDIATE_SE => Content::Immediate {
                data: *body.first_chunk().ok_or(short)?,
                solicited: opcode == wire::OP_IMMEDIATE_SE,
                msn,
            },
            _ => return Err(Rdmap::UnexpectedOpcode.into()),
        };
        self.is_read_request = opcode == wire::OP_READ_REQUEST;
        Ok(content)
    }

    fn send(
        &mut self,
        h: &wire_ddp::UntaggedHeader,
        opcode: u8,
        len: u32,
    ) -> Result<Content, Error> {
        if h.qn.get() != wire::QN_SEND {
            return Err(DdpUntagged::InvalidQn.into());
        }
        if self.write.is_some() {
            return Err(Rdmap::UnexpectedOpcode.into());
        }
        let msn = h.msn.get();
        let mo = h.mo.get();
        let last = h.control & wire_ddp::LAST != 0;
        self.sends.check(msn, mo, len, last)?;
        if self.sends.open() && opcode != self.send_opcode {
            return Err(Rdmap::UnexpectedOpcode.into());
        }
        self.send_opcode = opcode;
        let invalidate = matches!(opcode, wire::OP_SEND_INV | wire::OP_SEND_SE_INV);
        Ok(Content::Payload(Segment::Send {
            msn,
            mo,
            len,
            last,
            solicited: matches!(opcode, wire::OP_SEND_SE | wire::OP_SEND_SE_INV),
            invalidate: invalidate.then(|| Stag(h.invalidate.get())),
        }))
    }

    /// Advances past the segment, which has this content. Returns the octets of its frame.
    #[inline]
    pub(super) fn advance(&mut self, content: &Content) -> usize {
        match *content {
            Content::Payload(Segment::Send { len, last, .. }) => self.sends.advance(len, last),
            Content::Payload(Segment::Write { stag, last, .. }) => {
                self.write = (!last).then_some(self.write.unwrap_or(stag));
            }
            Content::Payload(Segment::ReadResponse { stag, last, .. }) => {
                self.response = (!last).then_some(self.response.unwrap_or(stag));
            }
            Content::ReadRequest { .. } | Content::AtomicRequest { .. } => {
                self.requests.advance(0, true);
            }
            Content::AtomicResponse { .. } => self.atomics.advance(0, true),
            Content::Immediate { .. } => self.sends.advance(0, true),
            Content::Terminate(_) => {}
        }
        self.ended = matches!(content, Content::Terminate(_));
        self.at_front = false;
        self.ulpdu.octets
    }
}
