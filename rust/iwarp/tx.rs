// SPDX-License-Identifier: GPL-2.0

//! The segmenter: cuts messages into DDP segments and hands out header octets and payload ranges.

use crate::ddp::Header;
use crate::rdmap::message::Message;
use crate::traits::{Framing, Gather};
use crate::types::{copy, count, split, Stag};
use crate::wire::ddp as wire_ddp;
use crate::wire::rdmap as wire;
use crate::wire::terminate::TERMINATE_MAX;
use zerocopy::byteorder::network_endian::{U32, U64};
use zerocopy::IntoBytes;

/// The reason a message cannot be started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Busy {
    /// Another message is not completely sent.
    Message,
    /// A Terminate was started; no message may follow it (RFC 5040 §5.4).
    Terminated,
}

/// An emitted frame: the FPDU of MPA.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Emitted {
    /// The last frame of its message.
    pub last: bool,
    /// Its length in octets, with all that the framing adds to the segment.
    pub bytes: u32,
    /// The DDP header of its segment.
    pub header: Header,
    /// Octets of its segment behind the DDP header.
    pub len: u32,
}

/// The message being sent.
#[derive(Clone, Copy)]
struct CurrentMessage {
    message: Message,
    msn: u32,
    len: u32,
    offset: u32,
}

/// The sending half of a stream. It begins behind the startup frame.
pub struct Segmenter<F> {
    framing: F,
    current: Option<CurrentMessage>,
    terminated: bool,
    /// The next MSNs of queues 0 to 3.
    sends: u32,
    requests: u32,
    terminates: u32,
    atomics: u32,
}

impl<F: Framing> Segmenter<F> {
    /// Creates a segmenter at the start of the stream.
    pub fn new(framing: F) -> Self {
        Self {
            framing,
            current: None,
            terminated: false,
            sends: 1,
            requests: 1,
            terminates: 1,
            atomics: 1,
        }
    }

    /// Returns the framing, for properties of one lower layer, such as the segment size of TCP.
    pub fn framing_mut(&mut self) -> &mut F {
        &mut self.framing
    }

    /// Returns whether `len` octets of payload fit in one segment of any message type.
    pub fn takes_at_once(&self, len: u32) -> bool {
        len <= room(self.framing.mulpdu(), wire_ddp::UNTAGGED_LEN)
    }

    /// Starts `message` with `len` octets of payload. `len` is ignored for messages without
    /// payload. A message of length 0 is one segment (RFC 5041 §5.2).
    ///
    /// A Terminate replaces a message that is not completely sent, and goes out next.
    ///
    /// # Errors
    ///
    /// Another message is being sent, or a Terminate was started before.
    pub fn start(&mut self, message: Message, len: u32) -> Result<(), Busy> {
        if self.terminated {
            return Err(Busy::Terminated);
        }
        let terminate = matches!(message, Message::Terminate(_));
        if self.current.is_some() && !terminate {
            return Err(Busy::Message);
        }
        self.terminated = terminate;
        let (len, msn) = match message {
            Message::Write { .. } | Message::ReadResponse { .. } => (len, 0),
            Message::Send { .. } => (len, next(&mut self.sends)),
            Message::Immediate { .. } => (0, next(&mut self.sends)),
            Message::ReadRequest(_) | Message::AtomicRequest(_) => (0, next(&mut self.requests)),
            Message::Terminate(_) => (0, next(&mut self.terminates)),
            Message::AtomicResponse(_) => (0, next(&mut self.atomics)),
        };
        self.current = Some(CurrentMessage {
            message,
            msn,
            len,
            offset: 0,
        });
        Ok(())
    }

    /// Returns whether a Terminate was started.
    pub const fn terminated(&self) -> bool {
        self.terminated
    }

    /// Returns whether a message is not completely sent.
    pub const fn busy(&self) -> bool {
        self.current.is_some()
    }

    /// Returns the octets of payload emitted so far of the current message; 0 if there is none.
    pub const fn offset(&self) -> u32 {
        match &self.current {
            Some(current) => current.offset,
            None => 0,
        }
    }

    /// Returns the MSN of the next Read Request or Atomic Request.
    pub const fn next_request(&self) -> u32 {
        self.requests
    }

    /// Emits one frame of the current message to `out`. Returns `None` if there is no message.
    ///
    /// # Errors
    ///
    /// Errors of `out`. The frame then counts as not emitted: the caller drops its octets from
    /// `out`, and the next call emits it again from its start.
    pub fn poll_transmit<G: Gather>(&mut self, out: &mut G) -> Result<Option<Emitted>, G::Error> {
        let Some(current) = &mut self.current else {
            return Ok(None);
        };
        let mut head = Head::new::<F>();
        let (part, last) = current.next_part(self.framing.mulpdu());
        let header = current.header(last);
        head.push_header(&header);
        let body = current.push_body(&mut head);
        let bytes = self
            .framing
            .emit(head.as_mut_bytes(), current.offset, part, out)?;
        current.offset = current.offset.saturating_add(part);
        if last {
            self.current = None;
        }
        Ok(Some(Emitted {
            last,
            bytes,
            header,
            len: body.saturating_add(part),
        }))
    }
}

/// Takes the next sequence number of a queue (RFC 5041 §4.3).
fn next(msn: &mut u32) -> u32 {
    let this = *msn;
    *msn = this.wrapping_add(1);
    this
}

impl CurrentMessage {
    /// Returns the octets of payload of the next segment, and whether it is the last of the
    /// message.
    #[inline]
    fn next_part(&self, mulpdu: u16) -> (u32, bool) {
        let header = if self.message.is_tagged() {
            wire_ddp::TAGGED_LEN
        } else {
            wire_ddp::UNTAGGED_LEN
        };
        let left = self.len.saturating_sub(self.offset);
        let part = left.min(room(mulpdu, header));
        (part, part == left)
    }

    /// Returns the DDP header of the next segment. `last`: it is the last of the message.
    fn header(&self, last: bool) -> Header {
        match &self.message {
            Message::Write { stag, to } => self.tagged(wire::OP_WRITE, *stag, *to, last),
            Message::ReadResponse { stag, to } => {
                self.tagged(wire::OP_READ_RESPONSE, *stag, *to, last)
            }
            Message::Send {
                solicited,
                invalidate,
            } => {
                let opcode = match (*solicited, invalidate.is_some()) {
                    (false, false) => wire::OP_SEND,
                    (false, true) => wire::OP_SEND_INV,
                    (true, false) => wire::OP_SEND_SE,
                    (true, true) => wire::OP_SEND_SE_INV,
                };
                self.untagged(opcode, wire::QN_SEND, *invalidate, last)
            }
            Message::Immediate { solicited, .. } => {
                let opcode = if *solicited {
                    wire::OP_IMMEDIATE_SE
                } else {
                    wire::OP_IMMEDIATE
                };
                self.untagged(opcode, wire::QN_SEND, None, last)
            }
            Message::ReadRequest(_) => {
                self.untagged(wire::OP_READ_REQUEST, wire::QN_READ_REQUEST, None, last)
            }
            Message::AtomicRequest(_) => {
                self.untagged(wire::OP_ATOMIC_REQUEST, wire::QN_READ_REQUEST, None, last)
            }
            Message::AtomicResponse(_) => self.untagged(
                wire::OP_ATOMIC_RESPONSE,
                wire::QN_ATOMIC_RESPONSE,
                None,
                last,
            ),
            Message::Terminate(_) => {
                self.untagged(wire::OP_TERMINATE, wire::QN_TERMINATE, None, last)
            }
        }
    }

    /// Writes the octets of a message without payload that follow the DDP header. Returns their
    /// number.
    fn push_body(&self, head: &mut Head) -> u32 {
        match &self.message {
            Message::Write { .. } | Message::ReadResponse { .. } | Message::Send { .. } => 0,
            Message::Immediate { data, .. } => head.push(data),
            Message::ReadRequest(request) => head.push(request.wire().as_bytes()),
            Message::AtomicRequest(request) => head.push(request.wire().as_bytes()),
            Message::AtomicResponse(response) => head.push(response.wire().as_bytes()),
            Message::Terminate(terminate) => {
                let mut body = [0; TERMINATE_MAX];
                let len = terminate.emit(&mut body);
                head.push(split(&body, len).0)
            }
        }
    }

    /// Returns a tagged DDP header. `to` is the Tagged Offset of the message.
    #[inline]
    fn tagged(&self, opcode: u8, stag: Stag, to: u64, last: bool) -> Header {
        Header::Tagged(wire_ddp::TaggedHeader {
            control: wire_ddp::TAGGED | control(last),
            rdmap: wire::VERSION | opcode,
            stag: U32::new(stag.0),
            to: U64::new(to.wrapping_add(u64::from(self.offset))),
        })
    }

    /// Returns an untagged DDP header.
    #[inline]
    fn untagged(&self, opcode: u8, qn: u32, invalidate: Option<Stag>, last: bool) -> Header {
        Header::Untagged(wire_ddp::UntaggedHeader {
            control: control(last),
            rdmap: wire::VERSION | opcode,
            invalidate: U32::new(invalidate.map_or(0, |stag| stag.0)),
            qn: U32::new(qn),
            msn: U32::new(self.msn),
            mo: U32::new(self.offset),
        })
    }
}

/// Returns the octets of payload that fit in a segment behind a DDP header of `header` octets.
#[inline]
fn room(mulpdu: u16, header: usize) -> u32 {
    u32::from(mulpdu).saturating_sub(count(header))
}

/// Returns DDP's control octet without the T bit.
const fn control(last: bool) -> u8 {
    if last {
        wire_ddp::LAST | wire_ddp::VERSION
    } else {
        wire_ddp::VERSION
    }
}

/// Maximum octets that a framing writes in front of a segment.
const PREFIX_MAX: usize = 2;
/// Maximum octets of a frame in front of its payload: the framing's, the DDP header, the longest
/// header behind it.
const HEAD_MAX: usize = PREFIX_MAX + wire_ddp::UNTAGGED_LEN + TERMINATE_MAX;

/// The octets of a frame in front of its payload. The framing fills in its own, the first ones.
struct Head {
    bytes: [u8; HEAD_MAX],
    len: usize,
}

impl Head {
    const fn new<F: Framing>() -> Self {
        const { assert!(F::PREFIX_LEN <= PREFIX_MAX) };
        Self {
            bytes: [0; HEAD_MAX],
            len: F::PREFIX_LEN,
        }
    }

    /// Appends `part`. Returns its length in octets.
    fn push(&mut self, part: &[u8]) -> u32 {
        let pushed = match self.bytes.get_mut(self.len..) {
            Some(room) => copy(room, part),
            None => 0,
        };
        self.len = self.len.saturating_add(pushed);
        count(pushed)
    }

    fn push_header(&mut self, header: &Header) {
        match header {
            Header::Tagged(header) => self.push(header.as_bytes()),
            Header::Untagged(header) => self.push(header.as_bytes()),
        };
    }

    fn as_mut_bytes(&mut self) -> &mut [u8] {
        self.bytes.get_mut(..self.len).unwrap_or(&mut [])
    }
}
