// SPDX-License-Identifier: GPL-2.0

//! The receiver enforces each rule of DDP (RFC 5041) and of RDMAP's use of DDP fields (RFC 5040
//! §4).

mod common;
use common::*;
use iwarp::*;

const READ: [u8; 28] = [7; 28];

fn send(msn: u32, payload: &[u8]) -> Untagged<'_> {
    Untagged::new(3, 0, msn, payload)
}

fn write(payload: &[u8]) -> Tagged<'_> {
    Tagged::new(0, 0x100, 0x1000, payload)
}

#[test]
fn a_send_is_delivered() {
    let v = judge(&[send(1, b"hello").ulpdu()]);
    assert_eq!(v.error, None);
    let segment = Segment::Send {
        msn: 1,
        mo: 0,
        len: 5,
        last: true,
        solicited: false,
        invalidate: None,
    };
    assert_eq!(v.events, [Event::Segment(segment, b"hello".to_vec())]);
    assert!(v.at_boundary);
}

#[test]
fn a_write_is_placed() {
    let mut second = write(b"de");
    second.to += 3;
    let v = judge(&[write(b"abc").more().ulpdu(), second.ulpdu()]);
    assert_eq!(v.error, None);
    let segment = |to, len, last| Segment::Write {
        stag: Stag(0x100),
        to,
        len,
        last,
    };
    let want = [
        Event::Segment(segment(0x1000, 3, false), b"abc".to_vec()),
        Event::Segment(segment(0x1003, 2, true), b"de".to_vec()),
    ];
    assert_eq!(v.events, want);
    assert!(v.at_boundary);
}

#[test]
fn ddp_version_must_be_one() {
    for version in [0, 2, 3] {
        let mut u = send(1, b"x");
        u.control = 0x40 | version;
        assert_eq!(error_of(&[u.ulpdu()]), DdpUntagged::InvalidVersion.into());
        let mut t = write(b"x");
        t.control = 0xc0 | version;
        assert_eq!(error_of(&[t.ulpdu()]), DdpTagged::InvalidVersion.into());
    }
}

#[test]
fn reserved_bits_are_not_looked_at() {
    let mut u = send(1, b"x");
    u.control |= 0x3c;
    u.rdmap |= 0x30;
    u.invalidate = 0xdead_beef;
    let v = judge(&[u.ulpdu()]);
    assert_eq!(v.error, None);
    assert!(matches!(
        v.events[..],
        [Event::Segment(
            Segment::Send {
                invalidate: None,
                ..
            },
            _
        )]
    ));
}

#[test]
fn the_invalidate_stag_of_messages_of_rfc_7306_is_not_looked_at() {
    for (opcode, qn, len) in [(8, 0, 8), (9, 0, 8), (0xa, 1, 52), (0xb, 3, 12)] {
        let payload = vec![0; len];
        let mut u = Untagged::new(opcode, qn, 1, &payload);
        let want = judge(&[u.ulpdu()]);
        u.invalidate = 0xdead_beef;
        u.rdmap |= 0x30;
        let got = judge(&[u.ulpdu()]);
        assert_eq!((got.error, got.events.len()), (None, 1));
        assert_eq!(got.events, want.events);
    }
}

#[test]
fn rdmap_version_must_be_one() {
    for version in [0x00, 0x80, 0xc0] {
        let mut u = send(1, b"x");
        u.rdmap = version | 3;
        assert_eq!(error_of(&[u.ulpdu()]), Rdmap::InvalidVersion.into());
        let mut t = write(b"x");
        t.rdmap = version;
        assert_eq!(error_of(&[t.ulpdu()]), Rdmap::InvalidVersion.into());
    }
}

#[test]
fn reserved_opcodes_are_refused() {
    for opcode in 0xc..=0xf {
        let u = Untagged::new(opcode, 0, 1, b"x");
        assert_eq!(error_of(&[u.ulpdu()]), Rdmap::UnexpectedOpcode.into());
    }
}

#[test]
fn the_tagged_flag_must_suit_the_opcode() {
    for opcode in [0, 2] {
        let u = Untagged::new(opcode, 0, 1, b"x");
        assert_eq!(error_of(&[u.ulpdu()]), Rdmap::UnexpectedOpcode.into());
    }
    for opcode in [1].into_iter().chain(3..=0xf) {
        let t = Tagged::new(opcode, 1, 1, b"x");
        assert_eq!(error_of(&[t.ulpdu()]), Rdmap::UnexpectedOpcode.into());
    }
}

#[test]
fn the_queue_must_exist() {
    for qn in [4, 0x100, u32::MAX] {
        for opcode in 0..=0xf {
            let u = Untagged::new(opcode, qn, 1, b"x");
            assert_eq!(error_of(&[u.ulpdu()]), DdpUntagged::InvalidQn.into());
        }
    }
}

#[test]
fn the_queue_must_suit_the_opcode() {
    for (opcode, right, len) in [
        (1, 1, 28),
        (3, 0, 4),
        (4, 0, 4),
        (5, 0, 4),
        (6, 0, 4),
        (7, 2, 4),
        (8, 0, 8),
        (9, 0, 8),
        (0xa, 1, 52),
        (0xb, 3, 12),
    ] {
        let payload = vec![0; len];
        for qn in 0..4 {
            let u = Untagged::new(opcode, qn, 1, &payload);
            if qn == right {
                assert_eq!(judge(&[u.ulpdu()]).error, None, "{opcode} on {qn}");
            } else {
                assert_eq!(error_of(&[u.ulpdu()]), DdpUntagged::InvalidQn.into());
            }
        }
    }
}

#[test]
fn msn_counts_up_from_one_on_each_queue() {
    let good = [
        send(1, b"a").ulpdu(),
        Untagged::new(1, 1, 1, &READ).ulpdu(),
        Untagged::new(8, 0, 2, &[1; 8]).ulpdu(),
        Untagged::new(0xb, 3, 1, &[1; 12]).ulpdu(),
        send(3, b"").ulpdu(),
        Untagged::new(0xa, 1, 2, &[0; 52]).ulpdu(),
        Untagged::new(1, 1, 3, &READ).ulpdu(),
        Untagged::new(0xb, 3, 2, &[1; 12]).ulpdu(),
    ];
    let v = judge(&good);
    assert_eq!(v.error, None);
    assert_eq!(v.events.len(), good.len());
    for (opcode, qn, right, len) in [(3, 0, 4, 1), (9, 0, 4, 8), (1, 1, 4, 28), (0xb, 3, 3, 12)] {
        for msn in [0, 1, right - 1, right + 1, u32::MAX] {
            let payload = vec![0; len];
            let mut list = good.to_vec();
            list.push(Untagged::new(opcode, qn, msn, &payload).ulpdu());
            assert_eq!(error_of(&list), DdpUntagged::InvalidMsnRange.into());
        }
    }
}

#[test]
fn msn_wraps() {
    let mut q = ddp::queue::Queue::starting_at(u32::MAX);
    assert_eq!(q.check(u32::MAX, 0, 1, true), Ok(()));
    q.advance(1, true);
    assert_eq!(q.check(0, 0, 1, true), Ok(()));
    assert_eq!(q.check(1, 0, 1, true), Err(DdpUntagged::InvalidMsnRange));
}

#[test]
fn mo_must_go_on_where_the_message_is() {
    assert_eq!(
        error_of(&[send(1, b"a").at(1).ulpdu()]),
        DdpUntagged::InvalidMo.into()
    );
    let first = send(1, b"abc").more(0).ulpdu();
    for mo in [0, 2, 4, u32::MAX] {
        let list = [first.clone(), send(1, b"d").at(mo).ulpdu()];
        assert_eq!(error_of(&list), DdpUntagged::InvalidMo.into());
    }
    let v = judge(&[first, send(1, b"d").at(3).ulpdu()]);
    assert_eq!(v.error, None);
    assert_eq!(joined(&v.events), b"abcd");
}

#[test]
fn mo_plus_length_must_not_pass_the_longest_message() {
    let mut q = ddp::queue::Queue::default();
    q.advance(u32::MAX - 10, false);
    assert!(q.open());
    assert_eq!(q.check(1, u32::MAX - 10, 10, true), Ok(()));
    assert_eq!(
        q.check(1, u32::MAX - 10, 11, true),
        Err(DdpUntagged::TooLong)
    );
}

#[test]
fn an_empty_untagged_segment_must_be_the_last() {
    assert_eq!(
        error_of(&[send(1, b"").more(0).ulpdu()]),
        DdpUntagged::InvalidMo.into()
    );
    let v = judge(&[send(1, b"ab").more(0).ulpdu(), send(1, b"").at(2).ulpdu()]);
    assert_eq!(v.error, None);
    assert_eq!(joined(&v.events), b"ab");
}

#[test]
fn a_message_of_length_zero_is_one_segment() {
    let v = judge(&[send(1, b"").ulpdu(), write(b"").ulpdu()]);
    assert_eq!(v.error, None);
    assert_eq!(v.events.len(), 2);
    // `begin` and `end` for each, no `place`.
    assert_eq!(v.calls, 4);
}

#[test]
fn a_send_keeps_its_opcode() {
    let first = send(1, b"abc").more(0).ulpdu();
    for opcode in [4, 5, 6] {
        let other = Untagged::new(opcode, 0, 1, b"d").at(3).ulpdu();
        assert_eq!(
            error_of(&[first.clone(), other]),
            Rdmap::UnexpectedOpcode.into()
        );
    }
}

#[test]
fn a_tagged_message_keeps_its_stag() {
    for opcode in [0, 2] {
        let first = Tagged::new(opcode, 5, 0, b"abc").more().ulpdu();
        let second = Tagged::new(opcode, 6, 3, b"d").ulpdu();
        assert_eq!(
            error_of(&[first, second.clone()]),
            DdpTagged::InvalidStag.into()
        );
        // The next message may use another STag.
        let whole = Tagged::new(opcode, 5, 0, b"abc").ulpdu();
        assert_eq!(judge(&[whole, second]).error, None);
    }
}

#[test]
fn the_stag_of_an_empty_segment_is_not_looked_at() {
    let first = Tagged::new(0, 5, 0, b"abc").more();
    let empty = Tagged::new(0, 6, u64::MAX, b"");
    let third = Tagged::new(0, 5, 3, b"d");
    let list = [first.ulpdu(), empty.more().ulpdu(), third.ulpdu()];
    assert_eq!(judge(&list).error, None);
    // An empty first segment sets the STag; all later segments with payload must have it.
    let list = [empty.more().ulpdu(), third.ulpdu()];
    assert_eq!(error_of(&list), DdpTagged::InvalidStag.into());
}

#[test]
fn messages_of_the_requesting_lane_do_not_mix() {
    let openers = [
        send(1, b"abc").more(0).ulpdu(),
        write(b"abc").more().ulpdu(),
    ];
    for (i, opener) in openers.iter().enumerate() {
        let mut intruders = vec![
            Untagged::new(1, 1, 1, &READ).ulpdu(),
            Untagged::new(8, 0, 1, &[0; 8]).ulpdu(),
            Untagged::new(0xa, 1, 1, &[0; 52]).ulpdu(),
        ];
        intruders.push(if i == 0 {
            write(b"x").ulpdu()
        } else {
            send(1, b"x").ulpdu()
        });
        for intruder in intruders {
            let list = [opener.clone(), intruder];
            assert_eq!(error_of(&list), Rdmap::UnexpectedOpcode.into());
        }
    }
}

#[test]
fn messages_of_the_answering_lane_do_not_mix() {
    let list = [
        Tagged::new(2, 5, 0, b"abc").more().ulpdu(),
        Untagged::new(0xb, 3, 1, &[0; 12]).ulpdu(),
    ];
    assert_eq!(error_of(&list), Rdmap::UnexpectedOpcode.into());
}

#[test]
fn answers_may_come_between_the_segments_of_requests() {
    let list = [
        send(1, b"ab").more(0).ulpdu(),
        Tagged::new(2, 5, 0, b"12").more().ulpdu(),
        send(1, b"cd").at(2).ulpdu(),
        write(b"ef").more().ulpdu(),
        Tagged::new(2, 5, 2, b"34").ulpdu(),
        Untagged::new(0xb, 3, 1, &[0; 12]).ulpdu(),
        write(b"gh").ulpdu(),
    ];
    let v = judge(&list);
    assert_eq!(v.error, None);
    assert_eq!(v.events.len(), list.len());
    assert!(v.at_boundary);
}

#[test]
fn a_stream_inside_a_message_is_at_no_boundary() {
    for ulpdu in [
        send(1, b"ab").more(0).ulpdu(),
        write(b"ab").more().ulpdu(),
        Tagged::new(2, 5, 0, b"12").more().ulpdu(),
    ] {
        let v = judge(&[ulpdu]);
        assert_eq!(v.error, None);
        assert!(!v.at_boundary);
    }
}

#[test]
fn a_ulpdu_must_hold_its_header() {
    for len in 0..14 {
        assert_eq!(
            error_of(&[write(b"").ulpdu()[..len].to_vec()]),
            Mpa::Length.into()
        );
    }
    for len in 0..18 {
        assert_eq!(
            error_of(&[send(1, b"").ulpdu()[..len].to_vec()]),
            Mpa::Length.into()
        );
    }
}

#[test]
fn messages_without_payload_have_their_exact_length() {
    for (opcode, qn, right) in [(1, 1, 28), (8, 0, 8), (9, 0, 8), (0xa, 1, 52), (0xb, 3, 12)] {
        for len in [0, 1, right - 1, right + 1, right + 100] {
            let payload = vec![0; len];
            let ulpdu = Untagged::new(opcode, qn, 1, &payload).ulpdu();
            let want = if len > right {
                Error::DdpUntagged(DdpUntagged::TooLong)
            } else {
                Error::Rdmap(Rdmap::CatastrophicStream)
            };
            assert_eq!(error_of(&[ulpdu]), want, "{opcode}: {len}");
        }
        // The message must be one segment.
        let payload = vec![0; right];
        let split = Untagged::new(opcode, qn, 1, &payload).more(0).ulpdu();
        assert_eq!(error_of(&[split]), Rdmap::CatastrophicStream.into());
        // The segment must begin at offset 0.
        let shifted = Untagged::new(opcode, qn, 1, &payload).at(1).ulpdu();
        assert_eq!(error_of(&[shifted]), DdpUntagged::InvalidMo.into());
    }
}

#[test]
fn unknown_atomic_opcodes_are_refused() {
    for aop in (0..16).filter(|aop| ![0, 2].contains(aop)) {
        let mut header = [0; 52];
        header[3] = aop;
        let ulpdu = Untagged::new(0xa, 1, 1, &header).ulpdu();
        assert_eq!(error_of(&[ulpdu]), Rdmap::UnexpectedOpcode.into());
    }
    // Reserved bits are ignored.
    let mut header = [0; 52];
    header[..4].copy_from_slice(&[0xff, 0xff, 0xff, 0xf2]);
    let v = judge(&[Untagged::new(0xa, 1, 1, &header).ulpdu()]);
    assert_eq!(v.error, None);
    assert!(matches!(
        v.events[..],
        [Event::AtomicRequest(
            AtomicRequest {
                op: AtomicOp::CmpSwap { .. },
                ..
            },
            1
        )]
    ));
}
