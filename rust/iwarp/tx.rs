// SPDX-License-Identifier: GPL-2.0

//! The segmenter: cuts messages into FPDUs and hands out header octets and payload ranges.

use crate::mpa::fpdu::{mulpdu, Framer, LENGTH_LEN};
use crate::rdmap::message::Message;
use crate::traits::{Crc32c, Gather};
use crate::types::{copy, count, split, Stag};
use crate::wire::ddp as wire_ddp;
use crate::wire::rdmap as wire;
use crate::wire::terminate::TERMINATE_MAX;
use zerocopy::byteorder::network_endian::{U32, U64};
use zerocopy::IntoBytes;

/// Framing of the stream, as the startup negotiated it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TxConfig {
    /// Send CRCs. Otherwise the CRC field is zero.
    pub crc: bool,
    /// Send markers, because the peer requested them.
    pub markers: bool,
    /// The current TCP segment size in octets.
    pub emss: u32,
}

/// The reason a message cannot be started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Busy {
    /// Another message is not completely sent.
    Message,
    /// A Terminate was started; no message may follow it (RFC 5040 §5.4).
    Terminated,
}

/// An emitted FPDU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Emitted {
    /// The last FPDU of its message.
    pub last: bool,
    /// Its length in octets, markers and CRC included.
    pub bytes: u32,
}

/// The longest head in octets: length field, DDP header, the longest header behind it.
const HEAD_MAX: usize = LENGTH_LEN + wire_ddp::UNTAGGED_LEN + TERMINATE_MAX;

/// The message being sent.
#[derive(Clone, Copy)]
struct Active {
    message: Message,
    msn: u32,
    len: u32,
    offset: u32,
}

/// The sending half of a stream. It begins behind the startup frame.
pub struct Segmenter<C: Crc32c> {
    framer: Framer<C>,
    markers: bool,
    mulpdu: u16,
    active: Option<Active>,
    terminated: bool,
    /// The next MSNs of queues 0 to 3.
    sends: u32,
    requests: u32,
    terminates: u32,
    atomics: u32,
}

impl<C: Crc32c> Segmenter<C> {
    /// Creates a segmenter at the start of the stream.
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

    /// Sets the TCP segment size to `emss` octets, from the next FPDU on.
    pub fn set_emss(&mut self, emss: u32) {
        self.mulpdu = mulpdu(emss, self.markers);
    }

    /// Returns whether `len` octets of payload fit in one FPDU of any message type.
    pub fn takes_at_once(&self, len: u32) -> bool {
        len <= u32::from(self.mulpdu).saturating_sub(count(wire_ddp::UNTAGGED_LEN))
    }

    /// Starts `message` with `len` octets of payload. `len` is ignored for messages without
    /// payload. A message of length 0 is one FPDU (RFC 5041 §5.2).
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

    /// Returns whether a Terminate was started.
    pub const fn terminated(&self) -> bool {
        self.terminated
    }

    /// Returns whether a message is not completely sent.
    pub const fn busy(&self) -> bool {
        self.active.is_some()
    }

    /// Returns the octets of payload emitted so far of the current message; 0 if there is none.
    pub const fn offset(&self) -> u32 {
        match &self.active {
            Some(active) => active.offset,
            None => 0,
        }
    }

    /// Returns the MSN of the next Send or Immediate Data.
    pub const fn next_send(&self) -> u32 {
        self.sends
    }

    /// Returns the MSN of the next Read Request or Atomic Request.
    pub const fn next_request(&self) -> u32 {
        self.requests
    }

    /// Emits one FPDU of the current message to `out`. Returns `None` if there is no message.
    ///
    /// # Errors
    ///
    /// Errors of `out`. The FPDU then counts as not emitted: the caller drops its octets from
    /// `out`, and the next call emits it again from its start.
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
    /// Writes the headers of the next segment. Returns its octets of payload and whether it is the
    /// last of the message.
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

/// Returns DDP's control octet without the T bit.
const fn control(last: bool) -> u8 {
    if last {
        wire_ddp::LAST | wire_ddp::VERSION
    } else {
        wire_ddp::VERSION
    }
}

/// The octets of an FPDU in front of its payload. The framer fills in the length field.
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
