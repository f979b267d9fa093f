// SPDX-License-Identifier: GPL-2.0

//! The depths and the RTR indication that both ends of a session agree on (RFC 6581 §7, §9).

mod common;
use common::sctp::*;
use iwarp::negotiation::{Agreed, Depths, Rtr, Words, NO_NEGOTIATION};
use iwarp::sctp::*;
use iwarp::Mpa;

const ENHANCED: Form = Form::Enhanced { ird_max: 0 };

#[test]
fn a_plain_session_leaves_the_depths_alone() {
    let mut initiator = Endpoint::initiator(Form::Plain, (3, 4), b"hello");
    let mut responder = Endpoint::responder();
    assert_eq!(initiator.sent, [control(0, 1, b"hello")]);
    deliver(&mut initiator, &mut responder);
    assert_eq!(
        responder.take_reports(),
        [Report::Requested(None, None, b"hello".to_vec())]
    );
    let (ird, ord, private) = (5, 6, &b"welcome"[..]);
    responder.handle(SessionEvent::Accept { ird, ord, private }, &[]);
    assert_eq!(responder.sent, [control(0, 2, b"welcome")]);
    deliver(&mut responder, &mut initiator);
    let agreed = |ird, ord| Agreed {
        ird,
        ord,
        rtr: None,
        peer_ird: None,
        peer_ord: None,
    };
    assert_eq!(
        responder.take_reports(),
        [Report::Established(agreed(5, 6), Vec::new())]
    );
    assert_eq!(
        initiator.take_reports(),
        [Report::Established(agreed(3, 4), b"welcome".to_vec())]
    );
}

#[test]
fn an_enhanced_session_negotiates_the_depths() {
    let form = Form::Enhanced { ird_max: 10 };
    let mut initiator = Endpoint::initiator(form, (3, 9), b"hello");
    let mut responder = Endpoint::responder();
    assert_eq!(initiator.sent, [control(0, 5, b"\0\x03\0\x09hello")]);
    deliver(&mut initiator, &mut responder);
    assert_eq!(
        responder.take_reports(),
        [Report::Requested(Some(3), Some(9), b"hello".to_vec())]
    );
    let private = b"welcome";
    responder.handle(
        SessionEvent::Accept {
            ird: 5,
            ord: 6,
            private,
        },
        &[],
    );
    // ORD is lowered to the initiator's IRD.
    assert_eq!(responder.sent, [control(0, 6, b"\0\x05\0\x03welcome")]);
    deliver(&mut responder, &mut initiator);
    let agreed = Agreed {
        ird: 3,
        ord: 5,
        rtr: None,
        peer_ird: Some(5),
        peer_ord: Some(3),
    };
    assert_eq!(
        initiator.take_reports(),
        [Report::Established(agreed, b"welcome".to_vec())]
    );
    let agreed = Agreed {
        ird: 5,
        ord: 3,
        rtr: None,
        peer_ird: Some(3),
        peer_ord: Some(9),
    };
    assert_eq!(
        responder.take_reports(),
        [Report::Established(agreed, Vec::new())]
    );
}

#[test]
fn depths_that_the_peer_leaves_to_the_ulp_stay() {
    let depths = (NO_NEGOTIATION, NO_NEGOTIATION);
    let mut initiator = Endpoint::initiator(ENHANCED, depths, b"");
    let mut responder = Endpoint::responder();
    assert_eq!(initiator.sent, [control(0, 5, b"\x3f\xff\x3f\xff")]);
    deliver(&mut initiator, &mut responder);
    assert_eq!(
        responder.take_reports(),
        [Report::Requested(None, None, Vec::new())]
    );
    let private = b"";
    responder.handle(
        SessionEvent::Accept {
            ird: 5,
            ord: 6,
            private,
        },
        &[],
    );
    assert_eq!(responder.sent, [control(0, 6, b"\x3f\xff\x3f\xff")]);
}

/// Either side sends first over SCTP, so this side never requests the peer-to-peer model. A peer
/// may.
#[test]
fn a_responder_follows_the_peer_to_peer_model() {
    let mut responder = Endpoint::responder();
    // A, B and D: not a Write.
    responder.arrive(control(0, 5, b"\xc0\x03\x40\x09"));
    let private = b"";
    responder.handle(
        SessionEvent::Accept {
            ird: 0,
            ord: 0,
            private,
        },
        &[],
    );
    // A and D, and room for the Read.
    assert_eq!(responder.sent, [control(0, 6, b"\x80\x01\x40\0")]);
    let reports = responder.take_reports();
    let [_, Report::Established(agreed, _)] = &reports[..] else {
        panic!("{reports:?}");
    };
    assert_eq!(agreed.rtr, Some(Rtr::Read));
    assert_eq!(agreed.ird, 1);
}

#[test]
fn an_initiator_that_lacks_read_resources_says_so() {
    for (ird_max, enough) in [(7, false), (8, true)] {
        let mut initiator = Endpoint::initiator(Form::Enhanced { ird_max }, (3, 4), b"");
        initiator.arrive(control(0, 6, b"\0\x01\0\x08"));
        let reports = initiator.take_reports();
        if enough {
            let [Report::Established(agreed, _)] = &reports[..] else {
                panic!("{reports:?}");
            };
            assert_eq!((agreed.ird, agreed.ord), (8, 1));
        } else {
            assert_eq!(reports, [Report::Failed(Mpa::InsufficientIrd.into())]);
            assert_eq!(initiator.session, Session::Failed);
            // The Terminate of RDMAP goes out, then the Terminate Chunk.
            let quote = iwarp::Quote::NONE;
            let error = iwarp::Terminate::new(Mpa::InsufficientIrd.into(), quote);
            initiator.take();
            initiator.message(iwarp::Message::Terminate(error), b"");
            initiator.close();
            let sent = initiator.take();
            assert_eq!(sent[0].0, 16);
            assert_eq!(sent[0].1[..2], [0, 1]);
            assert_eq!(sent[0].1[20..22], [0x20, 6]);
            assert_eq!(sent[1], control(2, 4, b""));
        }
    }
}

#[test]
fn a_rejection_tells_private_data_and_depths() {
    for (form, words, want) in [
        (Form::Plain, None, control(0, 3, b"no")),
        (
            ENHANCED,
            Some(Words {
                depths: Depths { ird: 4, ord: 3 },
                rtr: None,
            }),
            control(0, 7, b"\0\x04\0\x03no"),
        ),
    ] {
        let mut initiator = Endpoint::initiator(form, (3, 4), b"hello");
        let mut responder = Endpoint::responder();
        deliver(&mut initiator, &mut responder);
        responder.handle(SessionEvent::Reject { private: b"no" }, &[]);
        assert_eq!(responder.sent, [want]);
        deliver(&mut responder, &mut initiator);
        let reports = initiator.take_reports();
        assert_eq!(reports, [Report::Rejected(words, b"no".to_vec())]);
    }
}
