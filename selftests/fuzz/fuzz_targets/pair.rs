// SPDX-License-Identifier: GPL-2.0
#![no_main]

//! Two endpoints, driven by a list of operations. Each must receive exactly the octets that the
//! other sent, for any split, segment size and send failure.
//! Input: settings, then operations as `Pair::operate` reads them.

use std::collections::VecDeque;
use std::ops::Range;

use iwarp::{
    mpa::{FpduDeframer, FpduFramer}, AtomicOp, AtomicRequest, AtomicResponse, Crc, Error, Gather, Message, Mpa, Octets, Outstanding,
    Quote, ReadRequest, RxConfig, Segment, Segmenter, Stag, Terminate,
    Terminated, TxConfig,
};
use iwarp_fuzz::{placement::{Framed, Placement}, Input, Soft, Unread};
use libfuzzer_sys::fuzz_target;

/// Returns the octet at `offset` of a message.
fn octet(seed: u8, offset: u32) -> u8 {
    seed.wrapping_add((offset as u8).wrapping_mul(7))
        .wrapping_add((offset >> 8) as u8)
}

/// A started message.
#[derive(Clone, Copy, Debug)]
struct Sent {
    message: Message,
    len: u32,
    seed: u8,
    msn: u32,
}

/// The wire. Fails after this many calls.
struct Wire<'a> {
    octets: &'a mut Vec<u8>,
    seed: u8,
    calls: usize,
}

struct Full;

impl Wire<'_> {
    fn call(&mut self) -> Result<(), Full> {
        self.calls = self.calls.checked_sub(1).ok_or(Full)?;
        Ok(())
    }
}

impl Gather for Wire<'_> {
    type Error = Full;

    fn bytes(&mut self, bytes: &[u8]) -> Result<(), Full> {
        self.call()?;
        self.octets.extend_from_slice(bytes);
        Ok(())
    }

    fn payload(&mut self, offset: u32, len: u32, crc: Option<Crc>) -> Result<Option<Crc>, Full> {
        self.call()?;
        assert_ne!(len, 0);
        let from = self.octets.len();
        self.octets
            .extend((offset..offset + len).map(|i| octet(self.seed, i)));
        Ok(crc.map(|crc| crc.update::<Soft>(&self.octets[from..])))
    }
}

/// The data that one side expects.
#[derive(Default)]
struct Expect {
    /// The other side's sent messages, in order.
    sent: VecDeque<Sent>,
    /// Received octets of the first of them.
    have: u32,
    /// The current segment and its octets so far.
    open: Option<(Segment, u32)>,
    /// The outstanding reads of this side.
    reads: VecDeque<Outstanding>,
    /// The reads that this side must answer.
    answers: VecDeque<ReadRequest>,
    terminated: bool,
}

impl Expect {
    /// Returns whether the segment is the next one of the first message.
    fn suits(&self, segment: &Segment) -> bool {
        let Some(sent) = self.sent.front() else {
            return false;
        };
        let at = u64::from(self.have);
        let right = match (*segment, sent.message) {
            (
                Segment::Send {
                    msn,
                    mo,
                    solicited,
                    invalidate,
                    ..
                },
                Message::Send {
                    solicited: s,
                    invalidate: i,
                },
            ) => msn == sent.msn && mo == self.have && solicited == s && invalidate == i,
            (Segment::Write { stag, to, .. }, Message::Write { stag: s, to: t })
            | (Segment::ReadResponse { stag, to, .. }, Message::ReadResponse { stag: s, to: t }) => {
                stag == s && to == t.wrapping_add(at)
            }
            _ => false,
        };
        let end = at + u64::from(segment.len());
        right
            && if segment.last() {
                end == sent.len.into()
            } else {
                end < sent.len.into()
            }
    }

    /// Checks a received message without payload.
    fn message(&mut self, message: Message, msn: u32) {
        let sent = self.sent.pop_front().expect("nothing was sent");
        assert_eq!(sent.message, message);
        assert_eq!(sent.msn, msn);
        assert_eq!(self.have, 0);
    }
}

impl Placement for Expect {
    type Stream<'s> = Unread;

    fn begin(&mut self, segment: &Segment) -> Result<(), Error> {
        assert!(self.open.is_none() && !self.terminated);
        assert!(self.suits(segment), "not the segment that was sent");
        self.open = Some((*segment, 0));
        Ok(())
    }

    fn place(
        &mut self,
        segment: &Segment,
        offset: u32,
        stream: &Unread,
        from: Range<usize>,
    ) -> Result<(), Error> {
        let data = stream.octets(from);
        let (begun, have) = self.open.as_mut().expect("place without begin");
        assert_eq!(begun, segment);
        assert_eq!(offset, *have);
        *have += data.len() as u32;
        assert!(!data.is_empty() && *have <= segment.len());
        let sent = self.sent.front().expect("nothing was sent");
        let from = self.have + offset;
        let wrong = (from..)
            .zip(data)
            .any(|(i, got)| octet(sent.seed, i) != *got);
        assert!(!wrong, "placed what was not sent");
        Ok(())
    }

    fn end(&mut self, segment: &Segment) -> Result<(), Error> {
        let (begun, have) = self.open.take().expect("end without begin");
        assert_eq!(&begun, segment);
        assert_eq!(have, segment.len());
        if let Segment::ReadResponse {
            stag,
            to,
            len,
            last,
        } = *segment
        {
            let read = self.reads.front_mut().expect("an answer without a read");
            if read.accept(stag, to, len, last)? {
                self.reads.pop_front();
            }
        }
        self.have += have;
        if segment.last() {
            let sent = self.sent.pop_front().expect("nothing was sent");
            assert_eq!(self.have, sent.len);
            self.have = 0;
        }
        Ok(())
    }

    fn read_request(&mut self, request: &ReadRequest, msn: u32) -> Result<(), Error> {
        self.message(Message::ReadRequest(*request), msn);
        self.answers.push_back(*request);
        Ok(())
    }

    fn atomic_request(&mut self, request: &AtomicRequest, msn: u32) -> Result<(), Error> {
        self.message(Message::AtomicRequest(*request), msn);
        Ok(())
    }

    fn atomic_response(&mut self, response: &AtomicResponse, msn: u32) -> Result<(), Error> {
        self.message(Message::AtomicResponse(*response), msn);
        Ok(())
    }

    fn immediate(&mut self, data: [u8; 8], solicited: bool, msn: u32) -> Result<(), Error> {
        self.message(Message::Immediate { data, solicited }, msn);
        Ok(())
    }

    fn terminated(&mut self, terminate: &Terminated) {
        let sent = self.sent.pop_back().expect("nothing was sent");
        assert_eq!(sent.message, Message::Terminate(*terminate));
        // Only the message that the Terminate interrupted may be missing.
        assert!(self.sent.len() <= 1);
        self.terminated = true;
    }
}

/// One side.
struct Side {
    tx: Segmenter<FpduFramer<Soft>>,
    rx: Framed<FpduDeframer<Soft>>,
    /// Received octets that it has not consumed.
    unread: Unread,
    emss: u32,
    markers: bool,
    /// Octets sent but not yet received by the other side.
    wire: Vec<u8>,
    /// Seed of the current message.
    seed: u8,
    expect: Expect,
    /// Number of messages started on queues 0, 1 and 3.
    started: [u32; 3],
    dead: bool,
}

impl Side {
    fn new(crc: bool, rx_markers: bool, tx_markers: bool) -> Self {
        let emss = 1460;
        Self {
            tx: Segmenter::new(FpduFramer::new(TxConfig {
                crc,
                markers: tx_markers,
                emss,
            })),
            rx: Framed::new(FpduDeframer::new(RxConfig {
                crc,
                markers: rx_markers,
            })),
            unread: Unread::default(),
            emss,
            markers: tx_markers,
            wire: Vec::new(),
            seed: 0,
            expect: Expect::default(),
            started: [0; 3],
            dead: false,
        }
    }

    /// Returns the MSN of the message on its queue.
    fn number(&mut self, message: &Message) -> u32 {
        let queue = match message {
            Message::Send { .. } | Message::Immediate { .. } => 0,
            Message::ReadRequest(_) | Message::AtomicRequest(_) => 1,
            Message::AtomicResponse(_) => 2,
            _ => return 0,
        };
        self.started[queue] += 1;
        self.started[queue]
    }

    /// Emits an FPDU, if the wire accepts enough calls.
    fn emit(&mut self, calls: usize) -> bool {
        let from = self.wire.len();
        let mut wire = Wire {
            octets: &mut self.wire,
            seed: self.seed,
            calls,
        };
        match self.tx.poll_transmit(&mut wire) {
            Ok(Some(emitted)) => {
                let octets = self.wire.len() - from;
                assert_eq!(emitted.bytes as usize, octets);
                assert_eq!(self.tx.busy(), !emitted.last);
                assert!(octets % 4 == 0 && octets <= self.emss.max(152) as usize);
                assert!(self.markers || octets <= self.emss.max(136) as usize);
                true
            }
            Ok(None) => {
                assert!(!self.tx.busy());
                false
            }
            Err(Full) => {
                self.wire.truncate(from);
                assert!(self.tx.busy());
                false
            }
        }
    }
}

struct Pair {
    crc: bool,
    sides: [Side; 2],
}

impl Pair {
    /// Executes one operation. The upper bits of the first octet select it, the lowest selects the
    /// side.
    fn operate(&mut self, input: &mut Input<'_>) {
        let code = input.octet();
        let [a, b] = &mut self.sides;
        let (this, peer) = if code & 1 == 0 { (a, b) } else { (b, a) };
        match code >> 1 & 7 {
            0..=2 => start(this, peer, input),
            3 => {
                for _ in 0..input.octet() & 7 {
                    if !this.emit(usize::MAX) {
                        break;
                    }
                }
            }
            4 => {
                this.emit(input.octet().into());
            }
            5 | 6 => {
                let n = usize::from(input.octet()) * if code & 0x10 == 0 { 1 } else { 16 };
                self.deliver(code & 1 == 0, n);
            }
            _ if code & 0x10 == 0 => {
                this.emss = u32::from(input.word());
                this.tx.framing_mut().set_emss(this.emss);
            }
            // Only a CRC can detect it.
            _ if self.crc => {
                let at = usize::from(input.octet());
                if let Some(octet) = this.wire.get_mut(at) {
                    *octet ^= 1 << (code >> 5);
                    peer.dead = true;
                }
            }
            _ => {}
        }
    }

    /// Delivers up to `n` sent octets of a side to its peer.
    fn deliver(&mut self, first: bool, n: usize) {
        let [a, b] = &mut self.sides;
        let (this, peer) = if first { (a, b) } else { (b, a) };
        let n = n.min(this.wire.len());
        let part: Vec<u8> = this.wire.drain(..n).collect();
        let Side {
            rx, unread, expect, ..
        } = peer;
        if let Err(error) = unread.receive(&part, rx, expect) {
            assert!(peer.dead, "{error:?} on a stream that nobody damaged");
        }
    }
}

/// Starts a message on `this`.
fn start(this: &mut Side, peer: &mut Side, input: &mut Input<'_>) {
    let [what, seed] = input.array();
    let len = u32::from(input.word() & 0xfff);
    let stag = Stag(u32::from(seed) + 1);
    let to = u64::from(seed).wrapping_sub(16);
    let (message, len) = match what & 0xf {
        0..=2 => {
            let invalidate = (what & 0x20 != 0).then_some(stag);
            (
                Message::Send {
                    solicited: what & 0x10 != 0,
                    invalidate,
                },
                len,
            )
        }
        3 | 4 => (Message::Write { stag, to }, len),
        5 | 6 => {
            let request = ReadRequest {
                sink_stag: stag,
                sink_to: to,
                len,
                src_stag: Stag(len),
                src_to: u64::from(len) << 40,
            };
            (Message::ReadRequest(request), 0)
        }
        7..=9 => match this.expect.answers.front() {
            Some(asked) => {
                let message = Message::ReadResponse {
                    stag: asked.sink_stag,
                    to: asked.sink_to,
                };
                (message, asked.len)
            }
            None => return,
        },
        10 => (
            Message::Immediate {
                data: [seed; 8],
                solicited: what & 0x10 != 0,
            },
            0,
        ),
        11 => {
            let request = AtomicRequest {
                op: AtomicOp::CmpSwap {
                    swap: to,
                    swap_mask: !to,
                    compare: 1,
                    compare_mask: 2,
                },
                id: len,
                stag,
                to,
            };
            (Message::AtomicRequest(request), 0)
        }
        12 => (
            Message::AtomicResponse(AtomicResponse {
                id: len,
                original: to,
            }),
            0,
        ),
        13 if what & 0x30 == 0x30 => {
            let terminate = Terminate::new(Mpa::Crc.into(), Quote::NONE);
            (Message::Terminate(terminate), 0)
        }
        _ => return,
    };
    if this.tx.start(message, len).is_err() {
        return;
    }
    this.seed = seed;
    let msn = this.number(&message);
    match message {
        Message::ReadResponse { .. } => drop(this.expect.answers.pop_front()),
        Message::ReadRequest(r) => {
            let read = Outstanding::new(r.sink_stag, r.sink_to, r.len);
            this.expect.reads.push_back(read);
        }
        _ => {}
    }
    peer.expect.sent.push_back(Sent {
        message,
        len,
        seed,
        msn,
    });
}

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let settings = input.octet();
    let (crc, m1, m2) = (settings & 1 != 0, settings & 2 != 0, settings & 4 != 0);
    let mut pair = Pair {
        crc,
        sides: [Side::new(crc, m1, m2), Side::new(crc, m2, m1)],
    };
    for _ in 0..64 {
        if input.is_empty() {
            break;
        }
        pair.operate(&mut input);
    }
    // At the end, all sent messages must have arrived.
    for first in [true, false] {
        let side = if first { 0 } else { 1 };
        while pair.sides[side].emit(usize::MAX) {}
        pair.deliver(first, usize::MAX);
        let peer = &pair.sides[1 - side];
        if !peer.dead && !peer.expect.terminated {
            assert!(peer.expect.sent.is_empty());
            assert!(peer.rx.at_boundary(peer.unread.len()));
        }
    }
});
