// SPDX-License-Identifier: GPL-2.0

//! The segmenter: cuts messages into FPDUs and hands out header octets and payload ranges.

use crate::crc::{Crc, Crc32c};
use crate::mpa::fpdu::{mulpdu, Framer, LENGTH_LEN};
use crate::rdmap::read::ReadRequest;
use crate::rdmap::{AtomicRequest, AtomicResponse, Terminate};
use crate::types::{copy, count, split, Stag};
use crate::wire::ddp as wire_ddp;
use crate::wire::rdmap as wire;
use crate::wire::terminate::TERMINATE_MAX;
use zerocopy::byteorder::network_endian::{U32, U64};
use zerocopy::IntoBytes;

/// How the stream is framed; the outcome of the startup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TxConfig {
    /// CRCs are sent. Otherwise their field is zero.
    pub crc: bool,
    /// Markers are sent, because the peer asked for them.
    pub markers: bool,
    /// Octets that a TCP segment takes now.
    pub emss: u32,
}

/// A message to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message {
    /// A Send of any of the four types (RFC 5040 §5.3).
    Send {
        /// With Solicited Event.
        solicited: bool,
        /// With Invalidate of this STag of the peer's.
        invalidate: Option<Stag>,
    },
    /// An RDMA Write (RFC 5040 §5.1).
    Write {
        /// The peer's buffer.
        stag: Stag,
        /// Tagged Offset of the first octet.
        to: u64,
    },
    /// An RDMA Read Request.
    ReadRequest(ReadRequest),
    /// An RDMA Read Response, with the sink that the request named.
    ReadResponse {
        /// The requester's buffer.
        stag: Stag,
        /// Tagged Offset of the first octet.
        to: u64,
    },
    /// A Terminate. Nothing can be sent after it.
    Terminate(Terminate),
    /// Immediate Data (RFC 7306 §6).
    Immediate {
        /// The data.
        data: [u8; 8],
        /// With Solicited Event.
        solicited: bool,
    },
    /// An Atomic Request (RFC 7306 §5.2.1).
    AtomicRequest(AtomicRequest),
    /// An Atomic Response (RFC 7306 §5.2.2).
    AtomicResponse(AtomicResponse),
}

/// Why a message cannot be started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Busy {
    /// Another message is not sent whole yet.
    Message,
    /// A Terminate was started: no message may follow it (RFC 5040 §5.4).
    Terminated,
}

/// An FPDU that was emitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Emitted {
    /// It is the last of its message.
    pub last: bool,
    /// Its octets, everything included.
    pub bytes: u32,
}

/// Where the octets of an FPDU go. Calls come in the order of the stream.
pub trait Gather {
    /// Why octets cannot be taken.
    type Error;

    /// Appends octets of the protocol's own: headers, markers, pad, CRC. They live as long as
    /// the call.
    ///
    /// # Errors
    ///
    /// When they cannot be taken; the FPDU is given up.
    fn bytes(&mut self, bytes: &[u8]) -> Result<(), Self::Error>;

    /// Appends octets `offset` to `offset` + `len` of the message; `len` is not 0. If `crc` is
    /// given, runs it on over them and returns it.
    ///
    /// # Errors
    ///
    /// When they cannot be taken; the FPDU is given up.
    fn payload(
        &mut self,
        offset: u32,
        len: u32,
        crc: Option<Crc>,
    ) -> Result<Option<Crc>, Self::Error>;
}

/// Room for the longest head: length field, DDP header, the longest header behind it.
const HEAD_MAX: usize = LENGTH_LEN + wire_ddp::UNTAGGED_LEN + TERMINATE_MAX;

/// The message at hand.
#[derive(Clone, Copy)]
struct Active {
    message: Message,
    msn: u32,
    len: u32,
    offset: u32,
}

/// The sending half of a stream, from the first octet behind the startup frame on.
pub struct Segmenter<C: Crc32c> {
    framer: Framer<C>,
    markers: bool,
    mulpdu: u16,
    active: Option<Active>,
    terminated: bool,
    /// The next MSN of queues 0 to 3.
    sends: u32,
    requests: u32,
    terminates: u32,
    atomics: u32,
}

impl<C: Crc32c> Segmenter<C> {
    /// A segmenter at the start of the stream.
    pub fn new(config: TxConfig) -> Self {
        Self {
            framer: Framer::new(config.crc, config.markers),
            markers: config.markers,
            mulpdu: mulpdu(config.emss, config.markers),
            active: None,
            terminated: false,
            sends: 1,
            requests: 1,
            terminates: 1,
            atomics: 1,
        }
    }

    /// The TCP segment size is now `emss` octets. Counts from the next FPDU on.
    pub fn set_emss(&mut self, emss: u32) {
        self.mulpdu = mulpdu(emss, self.markers);
    }

    /// Whether `len` octets of payload go in one FPDU, whatever the message.
    pub fn takes_at_once(&self, len: u32) -> bool {
        len <= u32::from(self.mulpdu).saturating_sub(count(wire_ddp::UNTAGGED_LEN))
    }

    /// Starts `message` with `len` octets of payload. `len` is ignored for messages that have
    /// none. A message of length 0 is one FPDU (RFC 5041 §5.2).
    ///
    /// A Terminate takes the place of a message that is not sent whole: it goes out next.
    ///
    /// # Errors
    ///
    /// A message is at hand, or a Terminate was started before.
    pub fn start(&mut self, message: Message, len: u32) -> Result<(), Busy> {
        if self.terminated {
            return Err(Busy::Terminated);
        }
        let terminate = matches!(message, Message::Terminate(_));
        if self.active.is_some() && !terminate {
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
        self.active = Some(Active {
            message,
            msn,
            len,
            offset: 0,
        });
        Ok(())
    }

    /// Whether a Terminate was started.
    pub const fn terminated(&self) -> bool {
        self.terminated
    }

    /// Whether a message is not sent whole.
    pub const fn busy(&self) -> bool {
        self.active.is_some()
    }

    /// Octets of payload that have been emitted of the message at hand; 0 if there is none.
    pub const fn offset(&self) -> u32 {
        match &self.active {
            Some(active) => active.offset,
            None => 0,
        }
    }

    /// The MSN that the next Send or Immediate Data will have.
    pub const fn next_send(&self) -> u32 {
        self.sends
    }

    /// The MSN that the next Read Request or Atomic Request will have.
    pub const fn next_request(&self) -> u32 {
        self.requests
    }

    /// Emits one FPDU of the message at hand to `out`. Returns `None` when there is no message.
    ///
    /// # Errors
    ///
    /// Those of `out`. The FPDU then counts as not emitted: whatever `out` took of it is to be
    /// dropped, and the next call emits it again, from its start.
    pub fn poll_transmit<G: Gather>(&mut self, out: &mut G) -> Result<Option<Emitted>, G::Error> {
        let Some(active) = &mut self.active else {
            return Ok(None);
        };
        let mut head = Head::new();
        let (part, last) = active.head(self.mulpdu, &mut head);
        let bytes = self
            .framer
            .emit(head.as_mut_bytes(), active.offset, part, out)?;
        active.offset = active.offset.saturating_add(part);
        if last {
            self.active = None;
        }
        Ok(Some(Emitted { last, bytes }))
    }
}

/// Takes the next sequence number of a queue (RFC 5041 §4.3).
fn next(msn: &mut u32) -> u32 {
    let this = *msn;
    *msn = this.wrapping_add(1);
    this
}

impl Active {
    /// Writes the headers of the next segment. Returns the octets of payload that it carries and
    /// whether it is the last.
    fn head(&self, mulpdu: u16, head: &mut Head) -> (u32, bool) {
        let left = self.len.saturating_sub(self.offset);
        let room = |header: usize| u32::from(mulpdu).saturating_sub(count(header));
        let tagged = |opcode: u8, stag: Stag, to: u64, head: &mut Head| {
            let part = left.min(room(wire_ddp::TAGGED_LEN));
            let last = part == left;
            let header = wire_ddp::Tagged {
                control: wire_ddp::TAGGED | control(last),
                rdmap: wire::VERSION | opcode,
                stag: U32::new(stag.0),
                to: U64::new(to.wrapping_add(u64::from(self.offset))),
            };
            head.push(header.as_bytes());
            (part, last)
        };
        let untagged = |opcode: u8, qn: u32, invalidate: Option<Stag>, head: &mut Head| {
            let part = left.min(room(wire_ddp::UNTAGGED_LEN));
            let last = part == left;
            let header = wire_ddp::Untagged {
                control: control(last),
                rdmap: wire::VERSION | opcode,
                invalidate: U32::new(invalidate.map_or(0, |stag| stag.0)),
                qn: U32::new(qn),
                msn: U32::new(self.msn),
                mo: U32::new(self.offset),
            };
            head.push(header.as_bytes());
            (part, last)
        };
        match &self.message {
            Message::Write { stag, to } => tagged(wire::OP_WRITE, *stag, *to, head),
            Message::ReadResponse { stag, to } => tagged(wire::OP_READ_RESPONSE, *stag, *to, head),
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
                untagged(opcode, wire::QN_SEND, *invalidate, head)
            }
            Message::Immediate { data, solicited } => {
                let opcode = if *solicited {
                    wire::OP_IMMEDIATE_SE
                } else {
                    wire::OP_IMMEDIATE
                };
                let out = untagged(opcode, wire::QN_SEND, None, head);
                head.push(data);
                out
            }
            Message::ReadRequest(request) => {
                let out = untagged(wire::OP_READ_REQUEST, wire::QN_READ_REQUEST, None, head);
                head.push(request.wire().as_bytes());
                out
            }
            Message::AtomicRequest(request) => {
                let out = untagged(wire::OP_ATOMIC_REQUEST, wire::QN_READ_REQUEST, None, head);
                head.push(request.wire().as_bytes());
                out
            }
            Message::AtomicResponse(response) => {
                let (opcode, qn) = (wire::OP_ATOMIC_RESPONSE, wire::QN_ATOMIC_RESPONSE);
                let out = untagged(opcode, qn, None, head);
                head.push(response.wire().as_bytes());
                out
            }
            Message::Terminate(terminate) => {
                let out = untagged(wire::OP_TERMINATE, wire::QN_TERMINATE, None, head);
                let mut body = [0; TERMINATE_MAX];
                let len = terminate.emit(&mut body);
                head.push(split(&body, len).0);
                out
            }
        }
    }
}

/// DDP's control octet, but for the T bit.
const fn control(last: bool) -> u8 {
    if last {
        wire_ddp::LAST | wire_ddp::VERSION
    } else {
        wire_ddp::VERSION
    }
}

/// The octets of an FPDU in front of its payload. The length field is left open.
struct Head {
    bytes: [u8; HEAD_MAX],
    len: usize,
}

impl Head {
    const fn new() -> Self {
        Self {
            bytes: [0; HEAD_MAX],
            len: LENGTH_LEN,
        }
    }

    fn push(&mut self, part: &[u8]) {
        if let Some(room) = self.bytes.get_mut(self.len..) {
            self.len = self.len.saturating_add(copy(room, part));
        }
    }

    fn as_mut_bytes(&mut self) -> &mut [u8] {
        self.bytes.get_mut(..self.len).unwrap_or(&mut [])
    }
}
