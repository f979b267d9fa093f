// SPDX-License-Identifier: GPL-2.0

//! The chunks of DDP over SCTP, octet by octet (RFC 5043 §5.2, RFC 6581 §7 and §9).

mod common;
use common::pattern;
use common::sctp::octets;
use iwarp::negotiation::RtrTypes;
use iwarp::negotiation::{Depths, Words};
use iwarp::sctp::wire;
use iwarp::sctp::*;
use iwarp::Sctp;

const WORDS: Words = Words {
    depths: Depths { ird: 0x123, ord: 7 },
    rtr: None,
};

const PEER_TO_PEER: Words = Words {
    depths: Depths {
        ird: 0x3fff,
        ord: 0,
    },
    rtr: Some(RtrTypes::ALL),
};

fn body(words: Option<Words>, private: &[u8]) -> Body<'_> {
    Body { words, private }
}

fn parse(chunk: &[u8]) -> Result<Control<'_>, Sctp> {
    match Chunk::parse(17, chunk)? {
        Chunk::Control(control) => Ok(control),
        Chunk::Segment => panic!("a control chunk is no segment"),
    }
}

#[test]
fn the_registered_numbers() {
    assert_eq!(wire::ADAPTATION_DDP, 1);
    assert_eq!(wire::PPID_SEGMENT, 16);
    assert_eq!(wire::PPID_CONTROL, 17);
}

#[test]
fn control_chunks_on_the_wire() {
    for (control, ssn, want) in [
        (Control::Initiate(body(None, b"")), 0, &[0, 0, 0, 1][..]),
        (
            Control::Initiate(body(None, b"ab")),
            0,
            &[0, 0, 0, 1, b'a', b'b'],
        ),
        (
            Control::Accept(body(None, b"c")),
            0x1234,
            &[0x12, 0x34, 0, 2, b'c'],
        ),
        (Control::Reject(body(None, b"")), 0, &[0, 0, 0, 3]),
        (Control::Terminate, 0xfffe, &[0xff, 0xfe, 0, 4]),
        (
            Control::Initiate(body(Some(WORDS), b"d")),
            0,
            &[0, 0, 0, 5, 1, 0x23, 0, 7, b'd'],
        ),
        (
            Control::Accept(body(Some(PEER_TO_PEER), b"")),
            0,
            &[0, 0, 0, 6, 0xff, 0xff, 0xc0, 0],
        ),
        (
            Control::Reject(body(Some(WORDS), b"why")),
            0,
            &[0, 0, 0, 7, 1, 0x23, 0, 7, b'w', b'h', b'y'],
        ),
    ] {
        assert_eq!(octets(&control.encode(ssn).unwrap()), want, "{control:?}");
        assert_eq!(parse(want), Ok(control));
        assert_eq!(ssn_of(want), Ok(ssn));
    }
}

fn ssn_of(chunk: &[u8]) -> Result<u16, Sctp> {
    iwarp::sctp::ssn(chunk)
}

#[test]
fn a_chunk_without_its_number_has_no_place_in_the_order() {
    assert_eq!(ssn_of(&[]), Err(Sctp::Length));
    assert_eq!(ssn_of(&[1]), Err(Sctp::Length));
    assert_eq!(ssn_of(&[1, 2]), Ok(0x102));
}

#[test]
fn private_data_is_limited_with_its_control_words() {
    let data = pattern(513);
    for (words, max, plain) in [(None, 512, 1), (Some(WORDS), 508, 5)] {
        for control in [
            Control::Initiate(body(words, &data[..max])),
            Control::Accept(body(words, &data[..max])),
            Control::Reject(body(words, &data[..max])),
        ] {
            let chunk = octets(&control.encode(0).unwrap());
            assert_eq!(chunk.len(), 516);
            assert_eq!(parse(&chunk), Ok(control));
        }
        for control in [
            Control::Initiate(body(words, &data[..max + 1])),
            Control::Accept(body(words, &data[..max + 1])),
            Control::Reject(body(words, &data[..max + 1])),
        ] {
            assert_eq!(control.encode(0), None);
        }
        for function in plain..plain + 3 {
            let chunk = [&[0, 0, 0, function], &data[..]].concat();
            assert_eq!(parse(&chunk), Err(Sctp::PrivateData), "{function}");
        }
    }
}

#[test]
fn a_terminate_has_no_private_data() {
    assert_eq!(parse(&[0, 9, 0, 4]), Ok(Control::Terminate));
    assert_eq!(parse(&[0, 9, 0, 4, 0]), Err(Sctp::PrivateData));
    let [head, private] = Control::Terminate
        .encode(9)
        .unwrap()
        .parts()
        .map(<[u8]>::to_vec);
    assert_eq!((&head[..], &private[..]), (&[0, 9, 0, 4][..], &[][..]));
}

#[test]
fn enhanced_chunks_need_their_control_words() {
    for function in [5, 6] {
        for len in 0..4 {
            let chunk = [&[0, 0, 0, function], &pattern(len)[..]].concat();
            assert_eq!(parse(&chunk), Err(Sctp::PrivateData));
        }
    }
    // RFC 6581 §7 names the words for Initiate and Accept only: a Reject may lack them.
    for len in 0..4 {
        let private = pattern(len);
        let chunk = [&[0, 0, 0, 7], &private[..]].concat();
        assert_eq!(parse(&chunk), Ok(Control::Reject(body(None, &private))));
    }
}

#[test]
fn the_parser_copies_no_private_data() {
    let chunk = [&[0, 0, 0, 5, 0, 1, 0, 2][..], b"private"].concat();
    let Ok(Control::Initiate(parsed)) = parse(&chunk) else {
        panic!("an Enhanced Initiate");
    };
    assert!(std::ptr::eq(parsed.private, &chunk[8..]));
    let control = Control::Initiate(parsed);
    let encoded = control.encode(0).unwrap();
    assert!(std::ptr::eq(encoded.parts()[1], &chunk[8..]));
}

#[test]
fn other_chunks_are_refused() {
    assert_eq!(parse(&[]), Err(Sctp::Length));
    assert_eq!(parse(&[0, 0, 0]), Err(Sctp::Length));
    for function in [0, 8, 0x0104, 0xffff_u16] {
        let chunk = [[0, 0], function.to_be_bytes()].concat();
        assert_eq!(parse(&chunk), Err(Sctp::Function), "{function}");
    }
    for ppid in [0, 15, 18, 16 << 24, 17 << 24, u32::MAX] {
        assert_eq!(Chunk::parse(ppid, &[0, 0, 0, 4]), Err(Sctp::Ppid), "{ppid}");
    }
    // The receiver looks at a segment.
    assert_eq!(Chunk::parse(16, &[]), Ok(Chunk::Segment));
}
