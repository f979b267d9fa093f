// SPDX-License-Identifier: GPL-2.0

//! Messages of every type, from the segmenter to the receiver.

mod common;
use common::*;
use iwarp::*;

const STAG: Stag = Stag(0xabcd_ef12);

fn round_trip(message: Message, payload: &[u8]) -> Vec<Event> {
    let mut tx = segmenter(true, false, 1460);
    let stream = common::send(&mut tx, message, payload).concat();
    let mut rx = receiver(true, false);
    let mut got = Recorder::default();
    receive(&mut rx, &mut got, &stream, 1000).unwrap();
    assert!(rx.at_boundary() || matches!(message, Message::Terminate(_)));
    got.events
}

#[test]
fn all_four_sends() {
    for (solicited, invalidate, opcode) in [
        (false, None, 3),
        (false, Some(STAG), 4),
        (true, None, 5),
        (true, Some(STAG), 6),
    ] {
        let message = Message::Send {
            solicited,
            invalidate,
        };
        let payload = pattern(3000);
        let mut tx = segmenter(true, false, 1460);
        for fpdu in common::send(&mut tx, message, &payload) {
            assert_eq!(fpdu[3], 0x40 | opcode);
            let field = invalidate.map_or(0, |stag| stag.0).to_be_bytes();
            assert_eq!(fpdu[4..8], field);
        }
        let events = round_trip(message, &payload);
        assert_eq!(joined(&events), payload);
        for event in events {
            let Event::Segment(
                Segment::Send {
                    solicited: s,
                    invalidate: i,
                    ..
                },
                _,
            ) = event
            else {
                panic!("{event:?}");
            };
            assert_eq!((s, i), (solicited, invalidate));
        }
    }
}

/// The segments of the example message of RFC 5041 §5.2: MULPDU 1500, 2048 octets.
#[test]
fn segmentation_is_that_of_the_rfc() {
    let payload = pattern(2048);
    // The EMSS for MULPDU 1500 or the next lower one.
    let mut tx = segmenter(true, false, 1506);
    let mut rx = receiver(true, false);
    let mut got = Recorder::default();
    let stream = common::send(&mut tx, SEND, &payload).concat();
    receive(&mut rx, &mut got, &stream, 9999).unwrap();
    let mulpdu = u32::from(mpa::fpdu::mulpdu(1506, false));
    let first = mulpdu - 18;
    let segments: Vec<Segment> = got
        .events
        .iter()
        .map(|e| match e {
            Event::Segment(s, _) => *s,
            other => panic!("{other:?}"),
        })
        .collect();
    let segment = |mo, len, last| Segment::Send {
        msn: 1,
        mo,
        len,
        last,
        solicited: false,
        invalidate: None,
    };
    let want = [segment(0, first, false), segment(first, 2048 - first, true)];
    assert_eq!(segments, want);

    let write = Message::Write {
        stag: STAG,
        to: 16_384,
    };
    let events = {
        let mut got = Recorder::default();
        let stream = common::send(&mut tx, write, &payload).concat();
        receive(&mut rx, &mut got, &stream, 9999).unwrap();
        got.events
    };
    let first = mulpdu - 14;
    let segment = |to, len, last| Segment::Write {
        stag: STAG,
        to,
        len,
        last,
    };
    let want = [
        segment(16_384, first, false),
        segment(16_384 + u64::from(first), 2048 - first, true),
    ];
    assert_eq!(events.len(), want.len());
    for (event, want) in events.iter().zip(want) {
        assert!(matches!(event, Event::Segment(s, _) if *s == want));
    }
}

#[test]
fn tagged_messages() {
    let to = 0x1234_5678_9abc_def0;
    for (message, opcode) in [
        (Message::Write { stag: STAG, to }, 0),
        (Message::ReadResponse { stag: STAG, to }, 2),
    ] {
        for n in [0, 1, 1440, 1441, 5000] {
            let payload = pattern(n);
            let events = round_trip(message, &payload);
            assert_eq!(joined(&events), payload);
            let mut expected = to;
            for (i, event) in events.iter().enumerate() {
                let last = i + 1 == events.len();
                let Event::Segment(segment, data) = event else {
                    panic!("{event:?}");
                };
                let len = u32::try_from(data.len()).unwrap();
                let want = if opcode == 0 {
                    Segment::Write {
                        stag: STAG,
                        to: expected,
                        len,
                        last,
                    }
                } else {
                    Segment::ReadResponse {
                        stag: STAG,
                        to: expected,
                        len,
                        last,
                    }
                };
                assert_eq!(*segment, want);
                assert_eq!((segment.len(), segment.last()), (len, last));
                assert_eq!(segment.is_empty(), n == 0);
                expected += u64::from(len);
            }
        }
    }
}

#[test]
fn a_tagged_offset_that_wraps_is_passed_on_as_it_is() {
    // The sink refuses it, because it knows the buffer.
    let to = u64::MAX - 10;
    let events = round_trip(Message::Write { stag: STAG, to }, &pattern(2000));
    assert!(matches!(
        events[1],
        Event::Segment(Segment::Write { to: 1429, .. }, _)
    ));
}

#[test]
fn read_requests_are_numbered() {
    let mut tx = segmenter(true, false, 1460);
    let mut rx = receiver(true, false);
    let mut got = Recorder::default();
    let request = common::READ_REQUEST;
    let atomic = AtomicRequest {
        op: AtomicOp::CmpSwap {
            swap: 1,
            swap_mask: 2,
            compare: 3,
            compare_mask: 4,
        },
        id: 9,
        stag: STAG,
        to: 8,
    };
    for msn in [1, 3] {
        assert_eq!(tx.next_request(), msn);
        let stream = [
            common::send(&mut tx, Message::ReadRequest(request), b""),
            common::send(&mut tx, Message::AtomicRequest(atomic), b""),
        ]
        .concat()
        .concat();
        receive(&mut rx, &mut got, &stream, 5).unwrap();
    }
    assert_eq!(
        got.events,
        [
            Event::ReadRequest(request, 1),
            Event::AtomicRequest(atomic, 2),
            Event::ReadRequest(request, 3),
            Event::AtomicRequest(atomic, 4),
        ]
    );
}

/// The octets of a Read Request.
#[test]
fn a_read_request_on_the_wire() {
    let request = ReadRequest {
        sink_stag: Stag(0x0102_0304),
        sink_to: 0x0506_0708_090a_0b0c,
        len: 0x0d0e_0f10,
        src_stag: Stag(0x1112_1314),
        src_to: 0x1516_1718_191a_1b1c,
    };
    let mut tx = segmenter(true, false, 1460);
    let fpdu = common::send(&mut tx, Message::ReadRequest(request), b"").concat();
    let mut want = vec![
        0, 46, 0x41, 0x41, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0,
    ];
    want.extend(1..=0x1c);
    assert_eq!(fpdu[..48], want);
    assert_eq!(fpdu.len(), 52);
}

#[test]
fn immediate_data_shares_the_queue_of_the_sends() {
    let mut tx = segmenter(true, false, 1460);
    let mut rx = receiver(true, false);
    let mut got = Recorder::default();
    for (i, solicited) in [false, true].into_iter().enumerate() {
        let data = [i as u8; 8];
        let stream = [
            common::send(&mut tx, Message::Immediate { data, solicited }, b""),
            common::send(&mut tx, SEND, b"x"),
        ]
        .concat()
        .concat();
        receive(&mut rx, &mut got, &stream, 99).unwrap();
    }
    assert_eq!(got.events[0], Event::Immediate([0; 8], false, 1));
    assert_eq!(got.events[2], Event::Immediate([1; 8], true, 3));
}

#[test]
fn atomics_on_the_wire() {
    let request = AtomicRequest {
        op: AtomicOp::FetchAdd { add: 5, mask: 6 },
        id: 0x0102_0304,
        stag: STAG,
        to: 0x10,
    };
    let mut tx = segmenter(true, false, 1460);
    let fpdu = common::send(&mut tx, Message::AtomicRequest(request), b"").concat();
    assert_eq!(fpdu[1], 18 + 52);
    assert_eq!(fpdu[3], 0x4a);
    assert_eq!(fpdu[11], 1, "queue 1");
    // In a FetchAdd, compare data and mask have fixed values.
    assert_eq!(fpdu[20 + 36..20 + 44], [0; 8]);
    assert_eq!(fpdu[20 + 44..20 + 52], [0xff; 8]);

    let response = AtomicResponse {
        id: 0x0102_0304,
        original: 0x0506_0708_090a_0b0c,
    };
    let fpdu = common::send(&mut tx, Message::AtomicResponse(response), b"").concat();
    assert_eq!(fpdu[1], 18 + 12);
    assert_eq!(fpdu[3], 0x4b);
    assert_eq!(fpdu[11], 3, "queue 3");
    assert_eq!(fpdu[20..32], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    let events = round_trip(Message::AtomicResponse(response), b"");
    assert_eq!(events, [Event::AtomicResponse(response, 1)]);
}

#[test]
fn messages_of_rfc_7306_have_no_invalidate_stag() {
    let request = AtomicRequest {
        op: AtomicOp::FetchAdd { add: 1, mask: 0 },
        id: 1,
        stag: STAG,
        to: 0x10,
    };
    let response = AtomicResponse { id: 1, original: 2 };
    let immediate = |solicited| Message::Immediate {
        data: [1; 8],
        solicited,
    };
    let mut tx = segmenter(true, false, 1460);
    for message in [
        immediate(false),
        immediate(true),
        Message::AtomicRequest(request),
        Message::AtomicResponse(response),
    ] {
        let fpdu = common::send(&mut tx, message, b"").concat();
        assert_eq!(fpdu[4..8], [0; 4], "{message:?}");
    }
}

#[test]
fn a_message_at_hand_must_be_finished_first() {
    let mut tx = segmenter(true, false, 1460);
    let mut out = Copy {
        message: &[],
        wire: Vec::new(),
    };
    let Ok(idle) = tx.poll_transmit(&mut out);
    assert_eq!(idle, None);
    tx.start(SEND, 3000).unwrap();
    assert_eq!(tx.start(SEND, 0), Err(Busy::Message));
    assert!(tx.busy());
}

#[test]
fn a_terminate_goes_next_and_is_the_last() {
    let payload = pattern(3000);
    let mut tx = segmenter(true, false, 1460);
    let mut rx = receiver(true, false);
    let mut got = Recorder::default();
    tx.start(SEND, 3000).unwrap();
    let mut out = Copy {
        message: &payload,
        wire: Vec::new(),
    };
    let Ok(_) = tx.poll_transmit(&mut out);
    assert!(!tx.terminated());
    let terminate = Terminate::new(Local::Memory.into(), Quote::NONE);
    let fpdus = common::send(&mut tx, Message::Terminate(terminate), b"");
    assert!(tx.terminated());
    out.wire.extend(fpdus.concat());
    receive(&mut rx, &mut got, &out.wire, 99).unwrap();
    assert_eq!(got.events.len(), 2);
    assert_eq!(got.events[1], Event::Terminated(terminate));
    assert_eq!(tx.start(SEND, 0), Err(Busy::Terminated));
    assert_eq!(
        tx.start(Message::Terminate(terminate), 0),
        Err(Busy::Terminated)
    );
    assert!(!tx.busy());
}

#[test]
fn what_follows_a_terminate_is_discarded() {
    let terminate = Untagged::new(7, 2, 1, &[0; 4]).ulpdu();
    let v = judge(&[terminate, Untagged::new(3, 0, 1, b"x").ulpdu()]);
    assert_eq!(v.error, None);
    assert_eq!(v.events.len(), 1);
    assert!(!v.at_boundary);
}

#[test]
fn rtr_messages_have_no_payload_and_no_zero_stag() {
    use iwarp::startup::Rtr;
    for rtr in [Rtr::Send, Rtr::Write, Rtr::Read] {
        let events = round_trip(rtr.message(), b"");
        match (&events[..], rtr) {
            (
                [Event::Segment(
                    Segment::Send {
                        len: 0, last: true, ..
                    },
                    _,
                )],
                Rtr::Send,
            ) => {}
            (
                [Event::Segment(
                    Segment::Write {
                        stag,
                        len: 0,
                        last: true,
                        ..
                    },
                    _,
                )],
                Rtr::Write,
            ) => {
                assert_ne!(stag.0, 0);
            }
            ([Event::ReadRequest(r, 1)], Rtr::Read) => {
                assert_eq!(r.len, 0);
                assert_ne!(r.sink_stag.0, 0);
                assert_ne!(r.src_stag.0, 0);
            }
            other => panic!("{other:?}"),
        }
    }
}

/// A failed gather leaves the segmenter unchanged.
#[test]
fn a_failed_gather_can_be_repeated() {
    struct Limited<'a> {
        inner: Copy<'a>,
        left: usize,
    }
    impl Limited<'_> {
        fn count(&mut self) -> Result<(), ()> {
            self.left = self.left.checked_sub(1).ok_or(())?;
            Ok(())
        }
    }
    impl Gather for Limited<'_> {
        type Error = ();
        fn bytes(&mut self, bytes: &[u8]) -> Result<(), ()> {
            self.count()?;
            self.inner.bytes(bytes).map_err(|e| match e {})
        }
        fn payload(&mut self, o: u32, n: u32, crc: Option<Crc>) -> Result<Option<Crc>, ()> {
            self.count()?;
            self.inner.payload(o, n, crc).map_err(|e| match e {})
        }
    }
    let payload = pattern(3000);
    for markers in [false, true] {
        let mut reference = segmenter(true, markers, 1460);
        let want = common::send(&mut reference, SEND, &payload);
        let mut tx = segmenter(true, markers, 1460);
        let part = u32::from(tx.framing_mut().mulpdu()) - 18;
        tx.start(SEND, 3000).unwrap();
        for (i, want) in want.iter().enumerate() {
            for left in 0.. {
                let mut out = Limited {
                    inner: Copy {
                        message: &payload,
                        wire: Vec::new(),
                    },
                    left,
                };
                assert_eq!(tx.offset(), i as u32 * part);
                match tx.poll_transmit(&mut out) {
                    Err(()) => assert!(tx.busy()),
                    Ok(emitted) => {
                        assert_eq!(&out.inner.wire, want);
                        assert_eq!(emitted.unwrap().last, i == 2);
                        break;
                    }
                }
            }
        }
        assert!(!tx.busy());
        assert_eq!(tx.offset(), 0);
    }
}
