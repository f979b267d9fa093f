// SPDX-License-Identifier: GPL-2.0

//! The startup frames (RFC 5044 §7.1) and their handling in both roles (RFC 6581).

mod common;
use common::{check_rules, startup::*};
use iwarp::startup::*;

#[test]
fn a_wrong_key_is_refused_at_its_first_octet() {
    for kind in [Kind::Request, Kind::Reply] {
        for (at, len) in [(0, 1), (3, 4), (15, 16), (15, 20)] {
            let mut frame = raw(if kind == Kind::Request { REQ } else { REP }, 0, 1, b"");
            frame[at] ^= 0x20;
            let mut reader = Reader::new(kind);
            assert_eq!(reader.push(&frame[..at]), Ok(false));
            assert_eq!(reader.push(&frame[at..len]), Err(StartupError::BadKey));
        }
        let http = b"GET / HTTP/1.1\r\n\r\n";
        assert_eq!(Reader::new(kind).push(http), Err(StartupError::BadKey));
    }
}

#[test]
fn a_cleared_reader_reads_another_frame() {
    let mut reader = Reader::new(Kind::Reply);
    assert!(reader.is_empty());
    assert_eq!(reader.push(&raw(REP, 0, 1, b"first")), Ok(true));
    assert!(!reader.is_empty());
    reader.clear();
    assert!(reader.is_empty());
    assert_eq!((reader.wanted(), reader.frame()), (20, None));
    // As many octets are wanted before the header as behind this one.
    assert_eq!(reader.push(&raw(REP, 0x40, 1, &[7; 20])[..20]), Ok(false));
    assert_eq!(reader.wanted(), 20);
    assert!(!reader.is_empty());
    assert_eq!(reader.push(&[7; 20]), Ok(true));
    assert_eq!(reader.private_data(), [7; 20]);
}

#[test]
fn two_initiators_are_found_out() {
    let frame = raw(REQ, 0, 1, b"");
    assert_eq!(
        read(Kind::Reply, &frame).unwrap_err(),
        StartupError::WrongRole
    );
    let frame = raw(REP, 0, 1, b"");
    assert_eq!(
        read(Kind::Request, &frame).unwrap_err(),
        StartupError::WrongRole
    );
    // A key with the start of one and the end of the other is invalid.
    let mut frame = raw(REP, 0, 1, b"");
    frame[15] = b'x';
    assert_eq!(
        read(Kind::Request, &frame).unwrap_err(),
        StartupError::BadKey
    );
}

#[test]
fn private_data_is_at_most_512_octets() {
    let most = vec![7; 512];
    let reader = request(&raw(REQ, 0, 1, &most));
    assert_eq!(reader.private_data(), most);
    for len in [513, 514, 0x8000, 0xffff] {
        let frame = raw(REQ, 0, 1, &vec![7; len]);
        let mut reader = Reader::new(Kind::Request);
        assert_eq!(reader.push(&frame[..20]), Err(StartupError::Length));
    }
}

#[test]
fn flags_are_decoded_and_reserved_ones_not_looked_at() {
    for flags in 0..=u8::MAX {
        let frame = request(&raw(REQ, flags, 1, b"")).frame().unwrap();
        assert_eq!(frame.markers, flags & 0x80 != 0);
        assert_eq!(frame.crc, flags & 0x40 != 0);
        assert_eq!(frame.reject, flags & 0x20 != 0);
        assert_eq!((frame.depths, frame.rtr), (None, None), "revision 1");
        assert_eq!(frame.revision, 1);
    }
}

#[test]
fn enhanced_frames_begin_their_private_data_with_control_words() {
    let data = words(0x0005, 0x3ffe, b"ulp");
    let reader = request(&raw(REQ, 0x10, 2, &data));
    assert_eq!(reader.private_data(), b"ulp");
    let frame = reader.frame().unwrap();
    assert_eq!(
        frame.depths,
        Some(Depths {
            ird: 5,
            ord: 0x3ffe
        })
    );
    // Without flag A the other flags are ignored.
    let data = words(0x4005, 0xc006, b"");
    let frame = request(&raw(REQ, 0x10, 2, &data)).frame().unwrap();
    assert_eq!(frame.depths, Some(Depths { ird: 5, ord: 6 }));
    assert_eq!(frame.rtr, None);
    // With flag A they are used.
    for (b, c, d, want) in [
        (0, 0, 0, RtrTypes::NONE),
        (0x4000, 0, 0, RtrTypes::SEND),
        (0, 0x8000, 0, RtrTypes::WRITE),
        (0, 0, 0x4000, RtrTypes::READ),
        (0x4000, 0x8000, 0x4000, RtrTypes::ALL),
    ] {
        let data = words(0x8000 | b, c | d, b"");
        let frame = request(&raw(REQ, 0x10, 2, &data)).frame().unwrap();
        assert_eq!(frame.rtr, Some(want));
        assert_eq!(frame.depths, Some(Depths { ird: 0, ord: 0 }));
    }
    // Revision 2 without the S bit, and the S bit without revision 2: all data is the ULP's.
    for (flags, revision) in [(0, 2), (0x10, 1)] {
        let reader = request(&raw(REQ, flags, revision, &data));
        assert_eq!(reader.private_data(), data);
        assert_eq!(reader.frame().unwrap().depths, None);
    }
}

#[test]
fn crc_is_used_if_either_side_wants_it() {
    for (crc, flag, want) in [
        (CrcPolicy::Require, 0x00, Ok(true)),
        (CrcPolicy::Require, 0x40, Ok(true)),
        (CrcPolicy::Offer, 0x00, Ok(false)),
        (CrcPolicy::Offer, 0x40, Ok(true)),
        (CrcPolicy::Off, 0x00, Ok(false)),
        (CrcPolicy::Off, 0x40, Err(StartupError::Crc)),
    ] {
        let policy = Policy { crc, ..V1 };
        let got = initiator(&policy, 1, 1).reply(&reply(&raw(REP, flag, 1, b"")));
        assert_eq!(got.map(|o| established(Ok(o)).crc), want);

        let frame = raw(REQ, flag, 1, b"");
        match want {
            Ok(used) => {
                let (out, parameters) = responder(&policy, &frame).accept(1, 1, b"").unwrap();
                assert_eq!(parameters.crc, used);
                // The Reply announces the result, so that both sides agree.
                assert_eq!(octets(&out)[16], if used { 0x40 } else { 0 });
            }
            Err(error) => {
                let rejected = raw(REP, 0x20, 1, b"");
                assert_eq!(refused(&policy, &frame), (error, Some(rejected)));
            }
        }
    }
}

#[test]
fn markers_are_for_the_side_that_wants_them() {
    for mine in [false, true] {
        for theirs in [false, true] {
            let policy = Policy {
                markers: mine,
                ..V1
            };
            let flag = if theirs { 0xc0 } else { 0x40 };
            let p = initiator(&policy, 1, 1).reply(&reply(&raw(REP, flag, 1, b"")));
            let p = established(p);
            assert_eq!((p.rx_markers, p.tx_markers), (mine, theirs));

            let r = responder(&policy, &raw(REQ, flag, 1, b""));
            let (out, p) = r.accept(1, 1, b"").unwrap();
            assert_eq!((p.rx_markers, p.tx_markers), (mine, theirs));
            assert_eq!(octets(&out)[16] & 0x80 != 0, mine);
        }
    }
}

/// Returns all policies.
fn policies() -> Vec<Policy> {
    let mut all = vec![];
    for revision in [1, 2] {
        for crc in [CrcPolicy::Off, CrcPolicy::Offer, CrcPolicy::Require] {
            for markers in [false, true] {
                for rtr in (1..8).map(|bits| {
                    [RtrTypes::SEND, RtrTypes::WRITE, RtrTypes::READ]
                        .into_iter()
                        .enumerate()
                        .filter(|(i, _)| bits & (1 << i) != 0)
                        .fold(RtrTypes::NONE, |all, (_, one)| all.union(one))
                }) {
                    for peer_to_peer in [false, revision == 2] {
                        all.push(Policy {
                            revision,
                            crc,
                            markers,
                            peer_to_peer,
                            rtr,
                            ird_max: 0,
                        });
                    }
                }
            }
        }
    }
    all
}

#[test]
fn both_sides_agree_on_what_was_agreed() {
    for a in policies() {
        let initiator = Initiator::new(&a, 4, 16).unwrap();
        let reader = request(&octets(&initiator.request(b"to").unwrap()));
        assert_eq!(reader.private_data(), b"to");
        for b in policies() {
            let r = match Responder::request(&reader, &b) {
                Ok(r) => r,
                Err(Refusal { error, reply: None }) => {
                    assert_eq!(error, StartupError::Revision);
                    assert!(a.revision > b.revision);
                    continue;
                }
                Err(Refusal {
                    error,
                    reply: Some(out),
                }) => {
                    assert_eq!(error, StartupError::Crc);
                    let got = initiator.reply(&reply(&octets(&out)));
                    assert_eq!(got, Ok(Outcome::Rejected));
                    continue;
                }
            };
            let (out, passive) = r.accept(8, 8, b"fro").unwrap();
            let back = reply(&octets(&out));
            assert_eq!(back.private_data(), b"fro");
            let active = match initiator.reply(&back) {
                Ok(outcome) => established(Ok(outcome)),
                Err(StartupError::Crc) => {
                    assert_eq!((a.crc, b.crc), (CrcPolicy::Off, CrcPolicy::Require));
                    continue;
                }
                Err(StartupError::NoRtr) => {
                    assert_eq!(a.rtr.intersection(b.rtr), RtrTypes::NONE);
                    continue;
                }
                Err(other) => panic!("{other:?}"),
            };
            assert_eq!(active.crc, passive.crc);
            assert_eq!(active.rx_markers, passive.tx_markers);
            assert_eq!(active.tx_markers, passive.rx_markers);
            assert_eq!(active.revision, passive.revision);
            assert_eq!(active.rtr, passive.rtr);
            assert_eq!(active.rtr.is_some(), a.peer_to_peer);
            if a.revision == 2 {
                assert!(active.ord <= passive.ird && passive.ord <= active.ird);
                assert_eq!((active.ird, active.ord), (4, 8));
                assert_eq!((passive.ird, passive.ord), (8, 4));
            }
            let rejected = r.reject(b"no").unwrap();
            let got = initiator.reply(&reply(&octets(&rejected)));
            assert_eq!(got, Ok(Outcome::Rejected));
        }
    }
}

#[test]
fn the_default_is_to_use_crcs() {
    assert_eq!(Policy::default(), Policy::DEFAULT);
    assert_eq!(Policy::DEFAULT.crc, CrcPolicy::Require);
}

/// Returns these startup errors. Does not compile if one is missing: the match has no `_`.
macro_rules! startup_errors {
    ($($error:ident),+ $(,)?) => {{
        const _: fn(StartupError) = |error| match error {
            $(StartupError::$error => {})+
        };
        [$(StartupError::$error),+]
    }};
}

#[test]
fn every_startup_error_names_a_rule_of_its_own() {
    let errors = startup_errors![
        BadKey,
        WrongRole,
        Revision,
        Length,
        Format,
        Crc,
        Incomplete,
        PrivateData,
        InsufficientIrd,
        NoRtr,
    ];
    check_rules(errors.map(StartupError::rule));
}
