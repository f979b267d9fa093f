// SPDX-License-Identifier: GPL-2.0

//! The initiator: its Request and its handling of Replies (RFC 5044 §7.1, RFC 6581 §9).

mod common;
use common::startup::*;
use iwarp::startup::*;
use iwarp::{Error, Mpa};

#[test]
fn the_request_on_the_wire() {
    let request = |policy, ird, ord, private| {
        let initiator = Initiator::new(policy, ird, ord).unwrap();
        octets(&initiator.request(private).unwrap())
    };
    let out = request(&Policy::DEFAULT, 5, 6, b"ulp");
    assert_eq!(out, raw(REQ, 0x50, 2, &words(5, 6, b"ulp")));
    let policy = Policy {
        crc: CrcPolicy::Offer,
        markers: true,
        ..V1
    };
    let out = request(&policy, 5, 6, b"ulp");
    assert_eq!(out, raw(REQ, 0x80, 1, b"ulp"));
    let policy = Policy {
        crc: CrcPolicy::Off,
        ..P2P
    };
    let out = request(&policy, NO_NEGOTIATION, 100_000, b"");
    assert_eq!(out, raw(REQ, 0x10, 2, &words(0xffff, 0xfffe, b"")));
    let policy = Policy {
        rtr: RtrTypes::READ,
        ..P2P
    };
    let out = request(&policy, 0, 1, b"");
    assert_eq!(out, raw(REQ, 0x50, 2, &words(0x8000, 0x4001, b"")));
}

#[test]
fn impossible_requests() {
    for (policy, most) in [(V1, 512), (Policy::DEFAULT, 508)] {
        let initiator = Initiator::new(&policy, 1, 1).unwrap();
        assert!(initiator.request(&vec![0; most]).is_ok());
        let over = initiator.request(&vec![0; most + 1]).unwrap_err();
        assert_eq!(over, StartupError::PrivateData);
    }
    let error = |policy: &Policy| Initiator::new(policy, 1, 1).map(|_| ()).unwrap_err();
    for revision in [0, 3, 255] {
        let policy = Policy {
            revision,
            ..Policy::DEFAULT
        };
        assert_eq!(error(&policy), StartupError::Revision);
    }
    let policy = Policy { revision: 1, ..P2P };
    assert_eq!(error(&policy), StartupError::NoRtr);
    let policy = Policy {
        rtr: RtrTypes::NONE,
        ..P2P
    };
    assert_eq!(error(&policy), StartupError::NoRtr);
}

#[test]
fn a_rejecting_reply_is_one_whatever_else_it_says() {
    for policy in [V1, Policy::DEFAULT] {
        for (flags, revision, data) in [
            (0x20, 1, b"why".to_vec()),
            (0x30, 2, words(3, 4, b"why")),
            (0xf0, 9, vec![]),
        ] {
            let reader = reply(&raw(REP, flags, revision, &data));
            let got = initiator(&policy, 1, 1).reply(&reader);
            assert_eq!(got, Ok(Outcome::Rejected));
            if revision < 3 {
                assert_eq!(reader.private_data(), b"why");
            }
        }
    }
    let reader = reply(&raw(REP, 0x30, 2, &words(3, 4, b"why")));
    let depths = reader.frame().unwrap().depths;
    assert_eq!(depths, Some(Depths { ird: 3, ord: 4 }));
}

#[test]
fn the_reply_must_answer_the_request() {
    let error =
        |policy: &Policy, frame: &[u8]| initiator(policy, 9, 9).reply(&reply(frame)).unwrap_err();
    for revision in [0, 2, 3] {
        let frame = raw(REP, 0, revision, b"");
        assert_eq!(error(&V1, &frame), StartupError::Revision);
    }
    for revision in [0, 1, 3] {
        let frame = raw(REP, 0x10, revision, &words(1, 1, b""));
        assert_eq!(error(&Policy::DEFAULT, &frame), StartupError::Revision);
    }
    let plain = raw(REP, 0, 2, &words(1, 1, b""));
    assert_eq!(error(&Policy::DEFAULT, &plain), StartupError::Format);
    for n in 0..4 {
        let short = raw(REP, 0x10, 2, &vec![0; n]);
        assert_eq!(error(&Policy::DEFAULT, &short), StartupError::Length);
    }
    let unread = Reader::new(Kind::Reply);
    let got = initiator(&V1, 1, 1).reply(&unread);
    assert_eq!(got, Err(StartupError::Incomplete));
}

#[test]
fn the_initiator_follows_the_responders_depths() {
    let off = NO_NEGOTIATION;
    let most = Policy {
        ird_max: 20,
        ..Policy::DEFAULT
    };
    let none = StartupError::InsufficientIrd;
    for (policy, (ird, ord), (rep_ird, rep_ord), want) in [
        // ORD is lowered to the responder's IRD; IRD stays if it is sufficient.
        (Policy::DEFAULT, (8, 8), (4, 4), Ok((8, 4))),
        (Policy::DEFAULT, (8, 8), (16, 8), Ok((8, 8))),
        (Policy::DEFAULT, (8, 8), (0, 0), Ok((8, 0))),
        // IRD is not sufficient.
        (Policy::DEFAULT, (8, 8), (8, 9), Err(none)),
        // IRD can be raised to `ird_max`.
        (most, (8, 8), (8, 9), Ok((9, 8))),
        (most, (8, 8), (8, 20), Ok((20, 8))),
        (most, (8, 8), (8, 21), Err(none)),
        (most, (30, 8), (8, 25), Ok((30, 8))),
        // Depths that the responder leaves to the ULP stay unchanged.
        (Policy::DEFAULT, (8, 8), (off, 4), Ok((8, 8))),
        (Policy::DEFAULT, (8, 8), (4, off), Ok((8, 4))),
        (Policy::DEFAULT, (off, off), (off, off), Ok((off, off))),
    ] {
        let word = |d| u16::try_from(d).unwrap();
        let frame = raw(REP, 0x50, 2, &words(word(rep_ird), word(rep_ord), b""));
        let got = initiator(&policy, ird, ord).reply(&reply(&frame));
        let got = got.map(|o| {
            let p = established(Ok(o));
            assert_eq!(p.peer_ird, (rep_ird != off).then_some(rep_ird));
            assert_eq!(p.peer_ord, (rep_ord != off).then_some(rep_ord));
            assert_eq!((p.revision, p.rtr), (2, None));
            (p.ird, p.ord)
        });
        assert_eq!(got, want);
    }
    // Revision 1 has no depths.
    let p = established(initiator(&V1, 8, 9).reply(&reply(&raw(REP, 0x40, 1, b""))));
    assert_eq!((p.ird, p.ord, p.peer_ird, p.peer_ord), (8, 9, None, None));
    assert_eq!((p.revision, p.rtr), (1, None));
}

#[test]
fn the_initiator_chooses_an_rtr_that_both_have() {
    const A: u16 = 0x8000;
    const B: u16 = 0x4000;
    const C: u16 = 0x8000;
    const D: u16 = 0x4000;
    for (mine, first, second, want) in [
        (RtrTypes::ALL, A | B | 1, C | D, Ok(Some(Rtr::Write))),
        (RtrTypes::ALL, A | B | 1, D, Ok(Some(Rtr::Read))),
        (RtrTypes::ALL, A | B | 1, 0, Ok(Some(Rtr::Send))),
        (RtrTypes::READ, A | B | 1, C | D, Ok(Some(Rtr::Read))),
        (RtrTypes::SEND, A | B | 1, C | D, Ok(Some(Rtr::Send))),
        (RtrTypes::SEND, A | 1, C | D, Err(StartupError::NoRtr)),
        (RtrTypes::ALL, A | 1, 0, Err(StartupError::NoRtr)),
        // The responder did not accept the model.
        (RtrTypes::ALL, B | 1, C | D, Err(StartupError::NoRtr)),
        // A responder with IRD 0 cannot accept a Read.
        (RtrTypes::ALL, A | B, D, Ok(Some(Rtr::Send))),
        (RtrTypes::ALL, A, D, Err(StartupError::NoRtr)),
    ] {
        let policy = Policy { rtr: mine, ..P2P };
        let frame = raw(REP, 0x50, 2, &words(first, second, b""));
        let got = initiator(&policy, 8, 8).reply(&reply(&frame));
        assert_eq!(got.map(|o| established(Ok(o)).rtr), want);
    }
    // An indication that was not requested is not used.
    let frame = raw(REP, 0x50, 2, &words(A | B, C | D, b""));
    let p = established(initiator(&Policy::DEFAULT, 8, 8).reply(&reply(&frame)));
    assert_eq!(p.rtr, None);
}

#[test]
fn what_a_failed_startup_reports() {
    let term = |e: StartupError| e.term();
    let ird = Error::Mpa(Mpa::InsufficientIrd);
    assert_eq!(term(StartupError::InsufficientIrd), Some(ird));
    assert_eq!(term(StartupError::NoRtr), Some(Error::Mpa(Mpa::NoRtr)));
    let local = Error::Mpa(Mpa::LocalCatastrophic);
    assert_eq!(term(StartupError::Crc), Some(local));
    for closed in [
        StartupError::BadKey,
        StartupError::WrongRole,
        StartupError::Revision,
        StartupError::Length,
        StartupError::Format,
        StartupError::Incomplete,
        StartupError::PrivateData,
    ] {
        assert_eq!(term(closed), None);
    }
}
