// SPDX-License-Identifier: GPL-2.0

//! The session of a DDP stream: each state with each chunk and each request of the ULP (RFC 5043
//! §6, RFC 6581 §7).

mod common;
use common::sctp::*;
use iwarp::negotiation::{Depths, Request, RtrTypes, Words};
use iwarp::sctp::*;
use iwarp::{Error, Sctp};

const ENHANCED: Form = Form::Enhanced { ird_max: 0 };

const WORDS: Words = Words {
    depths: Depths { ird: 8, ord: 2 },
    rtr: None,
};

fn body(words: Option<Words>) -> Body<'static> {
    let private = b"private";
    Body { words, private }
}

/// Each received chunk, with its name.
fn chunks() -> Vec<(&'static str, SessionEvent<'static>)> {
    let control = |control| SessionEvent::Received(Ok(Chunk::Control(control)));
    vec![
        ("Initiate", control(Control::Initiate(body(None)))),
        (
            "EnhancedInitiate",
            control(Control::Initiate(body(Some(WORDS)))),
        ),
        ("Accept", control(Control::Accept(body(None)))),
        (
            "EnhancedAccept",
            control(Control::Accept(body(Some(WORDS)))),
        ),
        ("Reject", control(Control::Reject(body(None)))),
        (
            "EnhancedReject",
            control(Control::Reject(body(Some(WORDS)))),
        ),
        ("Terminate", control(Control::Terminate)),
        ("Segment", SessionEvent::Received(Ok(Chunk::Segment))),
        ("Invalid", SessionEvent::Received(Err(Sctp::Function))),
    ]
}

/// Each request of the ULP, with its name.
fn requests() -> Vec<(&'static str, SessionEvent<'static>)> {
    let private = b"private";
    vec![
        (
            "accept",
            SessionEvent::Accept {
                ird: 1,
                ord: 1,
                private,
            },
        ),
        ("reject", SessionEvent::Reject { private }),
        ("refuse", SessionEvent::Refuse),
        ("close", SessionEvent::Close { ssn: 0x77 }),
    ]
}

/// Each state, with its name.
fn states() -> Vec<(&'static str, Session)> {
    let requested = |form| Session::initiate(form, 3, 4, b"").unwrap().0;
    let rtr = RtrTypes::ALL;
    vec![
        ("Requested", requested(Form::Plain)),
        ("RequestedEnhanced", requested(ENHANCED)),
        ("Listening", Session::listen(rtr)),
        ("Pending", Session::Pending(Request::new(None, rtr))),
        (
            "PendingEnhanced",
            Session::Pending(Request::new(Some(WORDS), rtr)),
        ),
        ("Open", Session::Open),
        ("PeerClosed", Session::PeerClosed),
        ("Closing", Session::Closing),
        ("Failed", Session::Failed),
        ("Ended", Session::Ended),
    ]
}

fn name(session: &Session) -> &'static str {
    match session {
        Session::Requested {
            enhanced: false, ..
        } => "Requested",
        Session::Requested { enhanced: true, .. } => "RequestedEnhanced",
        Session::Listening { .. } => "Listening",
        Session::Pending(request) if request.enhanced() => "PendingEnhanced",
        Session::Pending(_) => "Pending",
        Session::Open => "Open",
        Session::PeerClosed => "PeerClosed",
        Session::Closing => "Closing",
        Session::Failed => "Failed",
        Session::Ended => "Ended",
    }
}

/// A chunk to send in words: its function, and its number unless 0.
fn sent(chunk: &Encoded<'_>) -> String {
    let octets = octets(chunk);
    let function = match octets[3] {
        2 => "Accept",
        3 => "Reject",
        4 => "Terminate",
        6 => "EnhancedAccept",
        7 => "EnhancedReject",
        other => panic!("function {other}"),
    };
    let number = ssn(&octets).unwrap();
    let private = &octets[octets.len().min(if octets[3] > 4 { 8 } else { 4 })..];
    let wanted: &[u8] = if octets[3] == 4 { b"" } else { b"private" };
    assert_eq!(private, wanted);
    if number == 0 {
        function.into()
    } else {
        format!("{function} {number:#x}")
    }
}

fn words(action: &SessionAction<'_>) -> String {
    match action {
        SessionAction::Deliver => "deliver".into(),
        SessionAction::Discard => "discard".into(),
        SessionAction::Request { request, private } => {
            assert_eq!(private, b"private");
            format!("request {:?} {:?}", request.peer_ird(), request.peer_ord())
        }
        SessionAction::Accept { chunk, .. } => format!("send {}, established", sent(chunk)),
        SessionAction::Established { agreed, private } => {
            assert_eq!(private, b"private");
            format!("established {} {}", agreed.ird, agreed.ord)
        }
        SessionAction::Rejected { words, private } => {
            assert_eq!(private, b"private");
            format!("rejected{}", words.map_or("", |_| " with depths"))
        }
        SessionAction::Refused { retry_plain } => {
            format!("refused{}", if *retry_plain { ", retry plain" } else { "" })
        }
        SessionAction::Send(chunk) => format!("send {}", sent(chunk)),
        SessionAction::PeerClosed => "peer closed".into(),
        SessionAction::Fail(Error::Sctp(error)) => format!("fail {error:?}"),
        SessionAction::Fail(error) => format!("fail {error:?}"),
        SessionAction::Refuse {
            chunk,
            error: Error::Sctp(error),
        } => {
            format!("send {}, over {error:?}", sent(chunk))
        }
        SessionAction::Refuse { error, .. } => panic!("{error:?}"),
        SessionAction::Abort(Error::Sctp(error)) => format!("over {error:?}"),
        SessionAction::Abort(error) => panic!("{error:?}"),
    }
}

/// The effect of each event in each state. A change here is visible to peers, and must be intended.
const TABLE: &str = "\
Requested Initiate EnhancedInitiate EnhancedAccept EnhancedReject Segment -> Ended: over Sequence
Requested Accept -> Open: established 3 4
Requested Reject -> Ended: rejected
Requested Terminate -> Ended: refused
Requested Invalid -> Ended: over Function
RequestedEnhanced Initiate EnhancedInitiate Accept Segment -> Ended: over Sequence
RequestedEnhanced EnhancedAccept -> Open: established 3 4
RequestedEnhanced Reject -> Ended: rejected
RequestedEnhanced EnhancedReject -> Ended: rejected with depths
RequestedEnhanced Terminate -> Ended: refused, retry plain
RequestedEnhanced Invalid -> Ended: over Function
Listening Initiate -> Pending: request None None
Listening EnhancedInitiate -> PendingEnhanced: request Some(8) Some(2)
Listening Accept EnhancedAccept Reject EnhancedReject Segment -> Ended: send Terminate, over Sequence
Listening Terminate -> Ended: over Sequence
Listening Invalid -> Ended: send Terminate, over Function
Pending Initiate EnhancedInitiate Accept EnhancedAccept Reject EnhancedReject Segment -> Ended: send Terminate, over Sequence
Pending Terminate -> Ended: over Sequence
Pending Invalid -> Ended: send Terminate, over Function
Pending accept -> Open: send Accept, established
Pending reject -> Ended: send Reject
Pending refuse -> Ended: send Terminate
PendingEnhanced Initiate EnhancedInitiate Accept EnhancedAccept Reject EnhancedReject Segment -> Ended: send Terminate, over Sequence
PendingEnhanced Terminate -> Ended: over Sequence
PendingEnhanced Invalid -> Ended: send Terminate, over Function
PendingEnhanced accept -> Open: send EnhancedAccept, established
PendingEnhanced reject -> Ended: send EnhancedReject
PendingEnhanced refuse -> Ended: send Terminate
Open Initiate EnhancedInitiate Accept EnhancedAccept Reject EnhancedReject -> Failed: fail Sequence
Open Terminate -> PeerClosed: peer closed
Open Segment -> Open: deliver
Open Invalid -> Failed: fail Function
Open close -> Closing: send Terminate 0x77
PeerClosed Initiate EnhancedInitiate Accept EnhancedAccept Reject EnhancedReject Terminate Segment -> Failed: fail Sequence
PeerClosed Invalid -> Failed: fail Function
PeerClosed close -> Ended: send Terminate 0x77
Closing Initiate EnhancedInitiate Accept EnhancedAccept Reject EnhancedReject -> Ended: over Sequence
Closing Terminate -> Ended: peer closed
Closing Segment -> Closing: deliver
Closing Invalid -> Ended: over Function
Failed Initiate EnhancedInitiate Accept EnhancedAccept Reject EnhancedReject Terminate Segment Invalid -> Failed: discard
Failed close -> Ended: send Terminate 0x77
Ended Initiate EnhancedInitiate Accept EnhancedAccept Reject EnhancedReject Terminate Segment Invalid -> Ended: discard
";

/// The states and the events that lead from one to another, as a drawing.
fn diagram() -> String {
    let mut out = String::from(
        "<!-- SPDX-License-Identifier: GPL-2.0 -->\n\
         <!-- Made from `Session::handle`: tests/sctp_session.rs compares them. -->\n\n\
         The ULP's requests are in lower case. An illegal chunk leads from Open and PeerClosed to Failed,\n\
         and from other states to Ended.\n\n\
         ```mermaid\nstateDiagram-v2\n    [*] --> Requested\n    [*] --> RequestedEnhanced\n    \
         [*] --> Listening\n",
    );
    for (from, state) in states() {
        let mut lines: Vec<(&str, Vec<&str>)> = Vec::new();
        for (event, what) in chunks().into_iter().chain(requests()) {
            let mut session = state;
            match session.handle(what) {
                Ok(SessionAction::Fail(_) | SessionAction::Refuse { .. }) => continue,
                Ok(SessionAction::Abort(_) | SessionAction::Discard) | Err(_) => continue,
                Ok(_) => {}
            }
            let to = name(&session);
            match lines.iter_mut().find(|(other, _)| *other == to) {
                Some((_, events)) => events.push(event),
                None => lines.push((to, vec![event])),
            }
        }
        for (to, events) in lines {
            out += &format!("    {from} --> {to}: {}\n", events.join(", "));
        }
    }
    out + "```\n"
}

#[test]
fn the_drawing_shows_the_legal_sequences() {
    assert_eq!(diagram(), include_str!("../sctp/states.md"));
}

#[test]
fn each_state_with_each_event() {
    let mut out = String::new();
    for (from, state) in states() {
        // Events of the same effect share a line.
        let mut lines: Vec<(Vec<&str>, String)> = Vec::new();
        for (event, what) in chunks().into_iter().chain(requests()) {
            let mut session = state;
            match session.handle(what) {
                Ok(action) => {
                    let effect = format!("{}: {}", name(&session), words(&action));
                    match lines.iter_mut().find(|(_, other)| *other == effect) {
                        Some((events, _)) => events.push(event),
                        None => lines.push((vec![event], effect)),
                    }
                }
                Err(unfit) => {
                    assert_eq!(unfit, Unfit::State);
                    assert_eq!(session, state);
                    assert!(requests().iter().any(|(name, _)| *name == event));
                }
            }
        }
        for (events, effect) in lines {
            out += &format!("{from} {} -> {effect}\n", events.join(" "));
        }
    }
    assert_eq!(out, TABLE);
}

#[test]
fn too_many_pending_initiates_are_refused_by_a_terminate() {
    let mut initiator = Endpoint::initiator(Form::Plain, (3, 4), b"hello");
    let mut responder = Endpoint::responder();
    deliver(&mut initiator, &mut responder);
    responder.handle(SessionEvent::Refuse, &[]);
    assert_eq!(responder.sent, [control(0, 4, b"")]);
    deliver(&mut responder, &mut initiator);
    let retry_plain = false;
    assert_eq!(initiator.take_reports(), [Report::Refused { retry_plain }]);
    assert_eq!(initiator.session, Session::Ended);
}

/// A responder that does not know RFC 6581 takes function 5 for an illegal chunk.
#[test]
fn an_unenhanced_responder_is_asked_again_in_plain_form() {
    let mut initiator = Endpoint::initiator(ENHANCED, (3, 4), b"hello");
    let mut responder = Endpoint::responder();
    let unknown = SessionEvent::Received(Err(Sctp::Function));
    responder.handle(unknown, &[]);
    assert_eq!(responder.sent, [control(0, 4, b"")]);
    deliver(&mut responder, &mut initiator);
    let retry_plain = true;
    assert_eq!(initiator.take_reports(), [Report::Refused { retry_plain }]);
    // The next session begins with number 0, at both ends.
    initiator = Endpoint::initiator(Form::Plain, (3, 4), b"hello");
    responder = Endpoint::responder();
    assert_eq!(initiator.sent, [control(0, 1, b"hello")]);
    deliver(&mut initiator, &mut responder);
    let requested = Report::Requested(None, None, b"hello".to_vec());
    assert_eq!(responder.take_reports(), [requested]);
}

#[test]
fn private_data_that_does_not_fit_changes_nothing() {
    let data = [7; 513];
    for (form, max) in [(Form::Plain, 512), (ENHANCED, 508)] {
        let too_long = &data[..max + 1];
        assert_eq!(
            Session::initiate(form, 3, 4, too_long),
            Err(Unfit::PrivateData)
        );
        let (_, chunk) = Session::initiate(form, 3, 4, &data[..max]).unwrap();
        assert_eq!(octets(&chunk).len(), 516);
        let mut responder = Endpoint::responder();
        responder.arrive((17, octets(&chunk)));
        let before = responder.session;
        for private in [too_long, &data[..max]] {
            let fits = private.len() == max;
            for event in [
                SessionEvent::Accept {
                    ird: 1,
                    ord: 1,
                    private,
                },
                SessionEvent::Reject { private },
            ] {
                let mut session = before;
                match session.handle(event) {
                    Ok(SessionAction::Accept { chunk, .. } | SessionAction::Send(chunk))
                        if fits =>
                    {
                        assert_eq!(octets(&chunk).len(), 516);
                    }
                    Err(Unfit::PrivateData) if !fits => assert_eq!(session, before),
                    other => panic!("{other:?}"),
                }
            }
        }
    }
}

/// A chunk that is early is judged when its turn comes, not when it arrives.
#[test]
fn chunks_are_judged_in_the_order_of_their_numbers() {
    // The Accept is late: the responder's segments wait for it.
    let (mut initiator, mut responder) = open(ENHANCED);
    responder.message(common::SEND, b"first");
    responder.message(common::SEND, b"second");
    responder.close();
    let mut chunks = responder.take();
    chunks.reverse();
    for chunk in chunks {
        assert_eq!(initiator.session, Session::Open);
        initiator.arrive(chunk);
    }
    assert_eq!(initiator.got.events.len(), 2);
    assert_eq!(initiator.take_reports(), [Report::PeerClosed]);
    assert_eq!(initiator.session, Session::PeerClosed);

    // A responder holds a chunk that is ahead of the Initiate. It is illegal once the Initiate has
    // come.
    let mut responder = Endpoint::responder();
    responder.arrive(segment(1, &[0x41; 18]));
    assert_eq!(responder.take_reports(), []);
    responder.arrive(control(0, 1, b""));
    assert_eq!(
        responder.take_reports(),
        [
            Report::Requested(None, None, Vec::new()),
            Report::Over(Sctp::Sequence.into())
        ]
    );
    assert_eq!(responder.sent, [control(0, 4, b"")]);
}

#[test]
fn numbers_that_cannot_be_end_the_session() {
    let (mut initiator, _) = open(ENHANCED);
    initiator.arrive(segment(0, &[]));
    assert_eq!(
        initiator.take_reports(),
        [Report::Failed(Sctp::Duplicate.into())]
    );
    assert_eq!(initiator.session, Session::Failed);
    // All that comes later is dropped.
    initiator.arrive(control(1, 4, b""));
    assert_eq!(initiator.take_reports(), []);

    let (_, mut responder) = open(ENHANCED);
    responder.arrive(segment(1 + 4096, &[]));
    assert_eq!(
        responder.take_reports(),
        [Report::Failed(Sctp::TooFar.into())]
    );

    let (_, mut responder) = open(ENHANCED);
    responder.arrive((16, vec![1]));
    assert_eq!(
        responder.take_reports(),
        [Report::Failed(Sctp::Length.into())]
    );

    let (_, mut responder) = open(ENHANCED);
    responder.window.set_budget(100);
    responder.arrive(segment(2, &[0; 99]));
    assert_eq!(
        responder.take_reports(),
        [Report::Failed(Sctp::TooManyHeld.into())]
    );
}

#[test]
fn each_direction_ends_with_its_terminate() {
    let (mut initiator, mut responder) = open(ENHANCED);
    initiator.message(common::SEND, b"last");
    initiator.close();
    assert_eq!(initiator.sent.last(), Some(&control(2, 4, b"")));
    deliver(&mut initiator, &mut responder);
    assert_eq!(responder.take_reports(), [Report::PeerClosed]);
    // The other direction is open.
    responder.message(common::SEND, b"answer");
    deliver(&mut responder, &mut initiator);
    assert_eq!(common::joined(&initiator.got.events), b"answer");
    responder.close();
    assert_eq!(responder.sent, [control(2, 4, b"")]);
    deliver(&mut responder, &mut initiator);
    assert_eq!(initiator.take_reports(), [Report::PeerClosed]);
    assert_eq!(initiator.session, Session::Ended);
    assert_eq!(responder.session, Session::Ended);
    assert!(initiator.rx.at_boundary(0) && responder.rx.at_boundary(0));
}
