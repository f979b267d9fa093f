// SPDX-License-Identifier: GPL-2.0

//! The responder: its handling of Requests, and its Replies (RFC 5044 §7.1, RFC 6581 §9).

mod common;
use common::startup::*;
use iwarp::startup::*;

#[test]
fn the_responder_speaks_the_revisions_up_to_its_own() {
    for (policy, revision, ok) in [
        (V1, 0, false),
        (V1, 1, true),
        (V1, 2, false),
        (Policy::DEFAULT, 0, false),
        (Policy::DEFAULT, 1, true),
        (Policy::DEFAULT, 2, true),
        (Policy::DEFAULT, 3, false),
        (Policy { revision: 9, ..V1 }, 3, false),
    ] {
        let frame = raw(REQ, 0, revision, b"");
        if ok {
            let r = responder(&policy, &frame);
            let (out, p) = r.accept(1, 1, b"").unwrap();
            assert_eq!(p.revision, revision);
            assert_eq!(octets(&out), raw(REP, 0x40, revision, b""));
        } else {
            assert_eq!(refused(&policy, &frame), (StartupError::Revision, None));
        }
    }
}

#[test]
fn malformed_requests_get_no_reply() {
    for n in 0..4 {
        let frame = raw(REQ, 0x10, 2, &vec![0; n]);
        let got = refused(&Policy::DEFAULT, &frame);
        assert_eq!(got, (StartupError::Length, None));
    }
    let unread = Reader::new(Kind::Request);
    let refusal = Responder::request(&unread, &V1).unwrap_err();
    assert_eq!(refusal.error, StartupError::Incomplete);
}

#[test]
fn the_r_bit_of_a_request_is_not_looked_at() {
    let reader = request(&raw(REQ, 0x20, 1, b"hello"));
    let r = Responder::request(&reader, &V1).unwrap();
    assert_eq!(reader.private_data(), b"hello");
    assert!(r.frame().reject);
    assert!(r.accept(1, 1, b"").is_ok());
}

#[test]
fn the_responders_depths() {
    let off = NO_NEGOTIATION;
    // (initiator's) (wanted) -> (in the Reply) (in effect)
    for ((req_ird, req_ord), (ird, ord), sent, force) in [
        ((8, 8), (8, 8), (8, 8), (8, 8)),
        // ORD never exceeds the initiator's IRD; IRD is the ULP's value.
        ((4, 9), (8, 8), (8, 4), (8, 4)),
        ((8, 0), (0, 0), (0, 0), (0, 0)),
        ((8, 8), (100_000, 1), (0x3ffe, 1), (0x3ffe, 1)),
        // Depths that the initiator leaves to the ULP stay open in the Reply and unchanged here.
        ((off, 8), (5, 6), (5, off), (5, 6)),
        ((8, off), (5, 6), (off, 6), (5, 6)),
        ((off, off), (5, 6), (off, off), (5, 6)),
    ] {
        let word = |d: u32| u16::try_from(d).unwrap();
        let data = words(word(req_ird), word(req_ord), b"");
        let r = responder(&Policy::DEFAULT, &raw(REQ, 0x50, 2, &data));
        assert_eq!(r.peer_ird(), (req_ird != off).then_some(req_ird));
        assert_eq!(r.peer_ord(), (req_ord != off).then_some(req_ord));
        let (out, p) = r.accept(ird, ord, b"ulp").unwrap();
        let data = words(word(sent.0), word(sent.1), b"ulp");
        assert_eq!(octets(&out), raw(REP, 0x50, 2, &data));
        assert_eq!((p.ird, p.ord), force);
        assert_eq!((p.peer_ird, p.peer_ord), (r.peer_ird(), r.peer_ord()));
    }
    let r = responder(&Policy::DEFAULT, &raw(REQ, 0, 1, b""));
    assert_eq!((r.peer_ird(), r.peer_ord()), (None, None));
    let (_, p) = r.accept(5, 6, b"").unwrap();
    assert_eq!((p.ird, p.ord, p.peer_ird, p.peer_ord), (5, 6, None, None));
}

#[test]
fn the_responder_picks_one_rtr() {
    const A: u16 = 0x8000;
    for (mine, wanted, reply_words, want) in [
        (RtrTypes::ALL, (A | 0x4000, 0xc000), (A, 0x8000), Rtr::Write),
        (RtrTypes::ALL, (A | 0x4000, 0x4000), (A, 0x4000), Rtr::Read),
        (RtrTypes::ALL, (A | 0x4000, 0), (A | 0x4000, 0), Rtr::Send),
        (RtrTypes::READ, (A, 0xc000), (A, 0x4000), Rtr::Read),
        // Nothing in common: the Reply has one of this side's own.
        (RtrTypes::READ, (A, 0x8000), (A, 0x4000), Rtr::Read),
        (RtrTypes::ALL, (A, 0), (A, 0x8000), Rtr::Write),
        (RtrTypes::NONE, (A, 0x4000), (A, 0x8000), Rtr::Write),
    ] {
        let policy = Policy {
            rtr: mine,
            ..Policy::DEFAULT
        };
        let data = words(wanted.0 | 8, wanted.1 | 8, b"");
        let r = responder(&policy, &raw(REQ, 0x50, 2, &data));
        let (out, p) = r.accept(8, 8, b"").unwrap();
        let data = words(reply_words.0 | 8, reply_words.1 | 8, b"");
        assert_eq!(octets(&out), raw(REP, 0x50, 2, &data));
        assert_eq!(p.rtr, Some(want));
    }
    // An RDMA Read needs IRD 1.
    let data = words(A, 0x4000, b"");
    let r = responder(&Policy::DEFAULT, &raw(REQ, 0x50, 2, &data));
    let (out, p) = r.accept(0, 0, b"").unwrap();
    assert_eq!(octets(&out)[20..], words(A | 1, 0x4000, b""));
    assert_eq!(p.ird, 1);
    // The client-server model does not.
    let data = words(8, 0xc000 | 8, b"");
    let r = responder(&Policy::DEFAULT, &raw(REQ, 0x50, 2, &data));
    let (out, p) = r.accept(8, 8, b"").unwrap();
    assert_eq!(octets(&out)[20..], words(8, 8, b""));
    assert_eq!(p.rtr, None);
}

#[test]
fn a_rejecting_reply() {
    let r = responder(&Policy::DEFAULT, &raw(REQ, 0, 1, b"in"));
    let out = r.reject(b"no").unwrap();
    assert_eq!(octets(&out), raw(REP, 0x60, 1, b"no"));
    let reader = request(&raw(REQ, 0x10, 2, &words(3, 4, b"in")));
    let r = Responder::request(&reader, &Policy::DEFAULT).unwrap();
    assert_eq!(reader.private_data(), b"in");
    let out = r.reject(b"no").unwrap();
    assert_eq!(octets(&out), raw(REP, 0x70, 2, &words(4, 3, b"no")));
}

#[test]
fn private_data_of_a_reply_must_fit() {
    let plain = responder(&V1, &raw(REQ, 0, 1, b""));
    let enhanced = responder(&Policy::DEFAULT, &raw(REQ, 0x10, 2, &words(1, 1, b"")));
    for (r, most) in [(plain, 512), (enhanced, 508)] {
        assert!(r.accept(1, 1, &vec![0; most]).is_ok());
        assert!(r.reject(&vec![0; most]).is_ok());
        let over = vec![0; most + 1];
        let error = r.accept(1, 1, &over).unwrap_err();
        assert_eq!(error, StartupError::PrivateData);
        assert_eq!(r.reject(&over).unwrap_err(), StartupError::PrivateData);
    }
}
