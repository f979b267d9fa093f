// SPDX-License-Identifier: GPL-2.0

//! An endpoint of a session over SCTP: the embedder that rust/iwarp/sctp describes.

use super::{consume, Copy, Framed, Progress, Recorder, Unread};
use iwarp::negotiation::{Agreed, Words};
use iwarp::sctp::wire::{PPID_CONTROL, PPID_SEGMENT};
use iwarp::sctp::*;
use iwarp::*;
use std::collections::BTreeMap;

/// The user data of a chunk and its payload protocol identifier.
pub type Wire = (u32, Vec<u8>);

/// Returns the octets of a chunk to send.
pub fn octets(chunk: &Encoded<'_>) -> Vec<u8> {
    chunk.parts().concat()
}

/// Returns a session control chunk of these fields.
pub fn control(ssn: u16, function: u16, private: &[u8]) -> Wire {
    let head = [ssn.to_be_bytes(), function.to_be_bytes()].concat();
    (PPID_CONTROL, [&head, private].concat())
}

/// Returns a segment chunk of these fields.
pub fn segment(ssn: u16, ulpdu: &[u8]) -> Wire {
    (PPID_SEGMENT, [&ssn.to_be_bytes(), ulpdu].concat())
}

/// An event that an endpoint has reported to its ULP.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Report {
    Requested(Option<u32>, Option<u32>, Vec<u8>),
    Established(Agreed, Vec<u8>),
    Rejected(Option<Words>, Vec<u8>),
    Refused { retry_plain: bool },
    PeerClosed,
    Failed(Error),
    Over(Error),
}

/// One side.
pub struct Endpoint {
    pub session: Session,
    pub window: Window<64>,
    pub held: BTreeMap<u16, Wire>,
    pub rx: Framed<ChunkDeframer>,
    pub tx: Segmenter<ChunkFramer>,
    pub got: Recorder,
    pub reports: Vec<Report>,
    /// The chunks that this side has sent.
    pub sent: Vec<Wire>,
}

impl Endpoint {
    pub fn new(session: Session, chunk: u32, budget: u32) -> Self {
        Self {
            session,
            window: Window::new(budget),
            held: BTreeMap::new(),
            rx: Framed::new(ChunkDeframer::new()),
            tx: Segmenter::new(ChunkFramer::new(chunk)),
            got: Recorder::default(),
            reports: Vec::new(),
            sent: Vec::new(),
        }
    }

    pub fn initiator(form: Form, depths: (u32, u32), private: &[u8]) -> Self {
        let (session, chunk) = Session::initiate(form, depths.0, depths.1, private).unwrap();
        let mut this = Self::new(session, 1452, u32::MAX);
        this.sent.push((PPID_CONTROL, octets(&chunk)));
        this
    }

    pub fn responder() -> Self {
        let session = Session::listen(startup::RtrTypes::ALL);
        Self::new(session, 1452, u32::MAX)
    }

    /// Takes a chunk from the association.
    pub fn arrive(&mut self, (ppid, data): Wire) {
        let len = u32::try_from(data.len()).unwrap();
        let number = ssn(&data);
        match number.and_then(|number| self.window.arrive(number, len)) {
            Ok(Arrival::Next) => self.receive(ppid, &data),
            Ok(Arrival::Held) => {
                let before = self.held.insert(number.unwrap(), (ppid, data));
                assert_eq!(before, None, "held twice");
            }
            Err(error) => self.handle(SessionEvent::Received(Err(error)), &[]),
        }
        while let Some(number) = self.window.due() {
            let (ppid, data) = self.held.remove(&number).expect("what is due is held");
            self.window.take(u32::try_from(data.len()).unwrap());
            self.receive(ppid, &data);
        }
        assert_eq!(self.window.is_holding(), !self.held.is_empty());
    }

    /// Handles the next chunk.
    fn receive(&mut self, ppid: u32, data: &[u8]) {
        self.handle(SessionEvent::Received(Chunk::parse(ppid, data)), data);
    }

    /// Handles an event that must fit. `data` is the received chunk.
    pub fn handle(&mut self, event: SessionEvent<'_>, data: &[u8]) {
        let action = self.session.handle(event).expect("it fits");
        let report = match action {
            SessionAction::Deliver => {
                let chunk = Unread::from(data);
                match consume(&mut self.rx, &chunk, &mut self.got) {
                    Ok(progress) => {
                        assert_eq!(progress, Progress::Consumed(data.len()));
                        return;
                    }
                    Err(error) => Report::Failed(error),
                }
            }
            SessionAction::Discard => return,
            SessionAction::Request { request, private } => {
                Report::Requested(request.peer_ird(), request.peer_ord(), private.to_vec())
            }
            SessionAction::Accept { chunk, agreed } => {
                self.send(&chunk);
                Report::Established(agreed, Vec::new())
            }
            SessionAction::Established { agreed, private } => {
                Report::Established(agreed, private.to_vec())
            }
            SessionAction::Rejected { words, private } => Report::Rejected(words, private.to_vec()),
            SessionAction::Refused { retry_plain } => Report::Refused { retry_plain },
            SessionAction::Send(chunk) => return self.send(&chunk),
            SessionAction::PeerClosed => Report::PeerClosed,
            SessionAction::Fail(error) => Report::Failed(error),
            SessionAction::Refuse { chunk, error } => {
                self.send(&chunk);
                Report::Over(error)
            }
            SessionAction::Abort(error) => Report::Over(error),
        };
        self.reports.push(report);
    }

    fn send(&mut self, chunk: &Encoded<'_>) {
        self.sent.push((PPID_CONTROL, octets(chunk)));
    }

    /// Sends one message.
    pub fn message(&mut self, message: Message, payload: &[u8]) {
        self.tx
            .start(message, u32::try_from(payload.len()).unwrap())
            .unwrap();
        while self.tx.busy() {
            let mut out = Copy {
                message: payload,
                wire: Vec::new(),
            };
            let Ok(emitted) = self.tx.poll_transmit(&mut out);
            let emitted = emitted.expect("a message is at hand");
            assert_eq!(emitted.bytes as usize, out.wire.len());
            assert!(emitted.last || emitted.len != 0, "no progress");
            self.sent.push((PPID_SEGMENT, out.wire));
        }
    }

    /// Sends the Terminate Chunk.
    pub fn close(&mut self) {
        let ssn = self.tx.framing_mut().next_ssn();
        self.handle(SessionEvent::Close { ssn }, &[]);
    }

    /// Returns the chunks that were sent since the last call.
    pub fn take(&mut self) -> Vec<Wire> {
        std::mem::take(&mut self.sent)
    }

    /// Returns the events that were reported since the last call.
    pub fn take_reports(&mut self) -> Vec<Report> {
        std::mem::take(&mut self.reports)
    }
}

/// Delivers the chunks that `from` has sent, in order.
pub fn deliver(from: &mut Endpoint, to: &mut Endpoint) {
    for chunk in from.take() {
        to.arrive(chunk);
    }
}

/// Two sides with an open session.
pub fn open(form: Form) -> (Endpoint, Endpoint) {
    let mut initiator = Endpoint::initiator(form, (3, 4), b"hello");
    let mut responder = Endpoint::responder();
    deliver(&mut initiator, &mut responder);
    let accept = SessionEvent::Accept {
        ird: 5,
        ord: 6,
        private: b"welcome",
    };
    responder.handle(accept, &[]);
    deliver(&mut responder, &mut initiator);
    assert_eq!(initiator.session, Session::Open);
    assert_eq!(responder.session, Session::Open);
    initiator.take_reports();
    responder.take_reports();
    (initiator, responder)
}
