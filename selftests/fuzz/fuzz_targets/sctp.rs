// SPDX-License-Identifier: GPL-2.0
#![no_main]

//! A session over SCTP: chunks of any octets and any order. If their numbers have no gap, the order
//! in which they come must change nothing.
//! Input: settings, then one chunk after the other as `chunk` reads them.

use std::collections::BTreeMap;

use iwarp::negotiation::RtrTypes;
use iwarp::sctp::{
    early_write, ssn, Arrival, Chunk, ChunkDeframer, Encoded, Form, Session, SessionAction,
    SessionEvent, Window,
};
use iwarp::sctp::wire::{PPID_CONTROL, PPID_SEGMENT};
use iwarp::{Error, Quote};
use iwarp_fuzz::{placement::{consume, Framed}, Embedder, Input, Unread};
use libfuzzer_sys::fuzz_target;

/// The user data of a chunk and its payload protocol identifier.
type Wire = (u32, Vec<u8>);

/// One side: the embedder that rust/iwarp/sctp describes.
struct Side {
    session: Session,
    window: Window<2>,
    budget: u32,
    held: BTreeMap<u16, Wire>,
    rx: Framed<ChunkDeframer>,
    embedder: Embedder,
    /// What the session did, but for segments.
    actions: Vec<String>,
    error: Option<Error>,
    /// How the ULP answers an Initiate.
    answer: u8,
}

impl Side {
    fn new(session: Session, budget: u32, answer: u8) -> Self {
        Self {
            session,
            window: Window::new(budget),
            budget,
            held: BTreeMap::new(),
            rx: Framed::new(ChunkDeframer::new()),
            embedder: Embedder::new(),
            actions: Vec::new(),
            error: None,
            answer,
        }
    }

    /// Takes a chunk from the association.
    fn arrive(&mut self, (ppid, data): &Wire) {
        let len = data.len() as u32;
        match ssn(data).and_then(|ssn| Ok((ssn, self.window.arrive(ssn, len)?))) {
            Ok((_, Arrival::Next)) => self.receive(*ppid, data),
            Ok((ssn, Arrival::Held)) => {
                if let Some((segment, from)) = early_write(data, data.len()) {
                    assert_eq!(from.len(), segment.len() as usize);
                    assert!(!data[from].is_empty());
                }
                let before = self.held.insert(ssn, (*ppid, data.clone()));
                assert_eq!(before, None, "held twice");
            }
            Err(error) => self.handle(SessionEvent::Received(Err(error)), data),
        }
        while let Some(ssn) = self.window.due() {
            let (ppid, data) = self.held.remove(&ssn).expect("what is due is held");
            self.window.take(data.len() as u32);
            self.receive(ppid, &data);
        }
        assert_eq!(self.window.is_holding(), !self.held.is_empty());
        let octets: usize = self.held.values().map(|(_, data)| data.len()).sum();
        assert!(octets <= self.budget as usize);
    }

    fn receive(&mut self, ppid: u32, data: &[u8]) {
        self.handle(SessionEvent::Received(Chunk::parse(ppid, data)), data);
    }

    fn handle(&mut self, event: SessionEvent<'_>, data: &[u8]) {
        let over = matches!(self.session, Session::Ended);
        let action = self.session.handle(event).expect("a chunk always fits");
        assert!(
            !over || action == SessionAction::Discard,
            "after the end: {action:?}"
        );
        match action {
            SessionAction::Deliver => return self.consume(data),
            SessionAction::Discard => return,
            SessionAction::Refuse { chunk, .. } => assert_eq!(octets(&chunk), [0, 0, 0, 4]),
            SessionAction::Accept { .. } | SessionAction::Send(_) => {
                panic!("an answer of its own accord")
            }
            _ => {}
        }
        self.actions.push(format!("{action:?}"));
        if matches!(action, SessionAction::Request { .. }) {
            self.decide();
        }
    }

    /// Lets the ULP answer the Initiate.
    fn decide(&mut self) {
        let private = &[3; 1020][..usize::from(self.answer) * 4];
        let event = match self.answer & 3 {
            0 => return,
            1 => SessionEvent::Refuse,
            2 => SessionEvent::Reject { private },
            _ => SessionEvent::Accept {
                ird: 5,
                ord: 6,
                private,
            },
        };
        let before = self.session;
        match self.session.handle(event) {
            Ok(SessionAction::Accept { chunk, .. } | SessionAction::Send(chunk)) => {
                assert!(octets(&chunk).len() <= 516);
                let sent = octets(&chunk);
                let parsed = Chunk::parse(PPID_CONTROL, &sent).expect("a chunk of this side");
                assert!(matches!(parsed, Chunk::Control(_)));
            }
            Ok(other) => panic!("{other:?}"),
            Err(_) => assert_eq!(self.session, before),
        }
    }

    /// Hands a segment chunk to the receiver.
    fn consume(&mut self, data: &[u8]) {
        let chunk = Unread::from(data);
        if let Err(error) = consume(&mut self.rx, &chunk, &mut self.embedder) {
            assert_eq!(self.error, None, "a second error");
            self.error = Some(error);
            self.embedder.close();
        }
    }

    fn result(&self) -> (&Session, &[String], Option<Error>, Quote, bool, &Embedder) {
        (
            &self.session,
            &self.actions,
            self.error,
            self.rx.quote(),
            self.rx.at_boundary(0),
            &self.embedder,
        )
    }
}

fn octets(chunk: &Encoded<'_>) -> Vec<u8> {
    chunk.parts().concat()
}

/// Reads one chunk. The low bits of the first octet select its type, the next one whether its number
/// is that of the chunk's place. Returns whether it is.
fn chunk(input: &mut Input<'_>, place: u16) -> (Wire, bool) {
    let what = input.octet();
    let in_place = what & 8 == 0;
    let number = if in_place { place } else { input.word() };
    let mut data = number.to_be_bytes().to_vec();
    let ppid = match what & 7 {
        0..=2 => PPID_SEGMENT,
        3..=6 => {
            data.extend_from_slice(&[0, what >> 4]);
            PPID_CONTROL
        }
        _ => u32::from(what >> 4) + 8,
    };
    let len = usize::from(input.octet());
    data.extend_from_slice(input.take(len));
    // Rarely a chunk without its number.
    if what == 0xff {
        data.truncate(len & 1);
    }
    ((ppid, data), in_place && what != 0xff)
}

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let [settings, answer, moves] = input.array();
    let session = match settings & 3 {
        0 | 1 => Session::listen(RtrTypes::ALL),
        2 => {
            Session::initiate(Form::Plain, 3, 4, b"")
                .expect("it fits")
                .0
        }
        _ => {
            let form = Form::Enhanced {
                ird_max: u32::from(settings >> 2),
            };
            Session::initiate(form, 3, 4, b"").expect("it fits").0
        }
    };
    let budget = if settings & 0x80 != 0 { 300 } else { u32::MAX };
    let (mut chunks, mut complete) = (Vec::new(), budget == u32::MAX);
    while !input.is_empty() && chunks.len() < 40 {
        let (chunk, in_place) = chunk(&mut input, chunks.len() as u16);
        complete &= in_place;
        chunks.push(chunk);
    }
    let mut side = Side::new(session, budget, answer);
    for chunk in &chunks {
        side.arrive(chunk);
    }
    if !complete {
        return;
    }
    // The same chunks in another order.
    let mut other = Side::new(session, budget, answer);
    let mut mixed: Vec<&Wire> = Vec::new();
    for (n, chunk) in chunks.iter().enumerate() {
        let back = usize::from(moves) * (n + 1) % 37;
        mixed.insert(mixed.len().saturating_sub(back), chunk);
    }
    for chunk in mixed {
        other.arrive(chunk);
    }
    assert!(other.held.is_empty());
    assert_eq!(side.result(), other.result());
});
