// SPDX-License-Identifier: GPL-2.0

//! Messages for which there is no receive WQE yet (RFC 5041 §7.1).

mod common;
use common::*;
use iwarp::*;

/// A Send in two segments, a Write, a Read Request, Immediate Data and a Send without payload.
fn stream(crc: bool, markers: bool) -> Vec<Vec<u8>> {
    let mut tx = segmenter(crc, markers, 600);
    let write = Message::Write {
        stag: Stag(5),
        to: 6,
    };
    let immediate = Message::Immediate {
        data: [3; 8],
        solicited: true,
    };
    [
        (SEND, pattern(900)),
        (write, pattern(100)),
        (Message::ReadRequest(READ_REQUEST), Vec::new()),
        (immediate, Vec::new()),
        (SEND, Vec::new()),
    ]
    .map(|(message, payload)| common::send(&mut tx, message, &payload).concat())
    .to_vec()
}

/// A message that is put off is looked at again and again, and then handled as if it had come at
/// that moment: its header is observed once, all its payload is placed, nothing overtakes it.
#[test]
fn a_message_that_is_put_off_is_handled_once_and_in_order() {
    for (crc, markers) in [(false, false), (true, false), (true, true)] {
        let messages = stream(crc, markers);
        let all = messages.concat();
        let mut wanted = Recorder::default();
        receive(&mut receiver(crc, markers), &mut wanted, &all, all.len()).unwrap();
        assert_eq!(wanted.take_receive_calls, 3, "two Sends and Immediate Data");

        for chunk in [1, 100, all.len()] {
            let mut rx = receiver(crc, markers);
            let mut got = Recorder {
                put_off: 4,
                ..Recorder::default()
            };
            receive(&mut rx, &mut got, &all, chunk).unwrap();
            while got.put_off != 0 {
                assert_eq!(got.calls, 0);
                assert_eq!(got.headers.len(), 1);
                assert!(!rx.at_boundary());
                rx.consume(&[], &mut got).unwrap();
            }
            assert_eq!(rx.consume(&[], &mut got), Ok(0));
            assert_eq!(got.events, wanted.events);
            assert_eq!(got.headers, wanted.headers);
            assert_eq!(got.take_receive_calls, wanted.take_receive_calls + 4);
            assert!(rx.at_boundary());
        }
    }
}

/// Nothing of the frame that waits is consumed, however often it is tried.
#[test]
fn a_message_that_is_put_off_stays_in_the_stream() {
    let fpdu = common::send(&mut segmenter(true, false, 1460), SEND, &pattern(300)).concat();
    let config = RxConfig {
        crc: true,
        markers: false,
    };
    let mut rx = Framed::new(mpa::FpduDeframer::<Soft>::new(config));
    let mut got = Recorder {
        put_off: 3,
        ..Recorder::default()
    };
    let unread = Unread::from(&fpdu[..]);

    for _ in 0..3 {
        assert_eq!(consume(&mut rx, &unread, &mut got), Ok(Progress::Blocked));
        assert!(rx.started());
        assert!(!rx.at_boundary(fpdu.len()));
    }
    assert_eq!(
        consume(&mut rx, &unread, &mut got),
        Ok(Progress::Consumed(fpdu.len()))
    );
    assert_eq!(joined(&got.events), pattern(300));
}

/// Only the first segment of a Send takes a receive WQE, and so does each Immediate Data.
#[test]
fn only_the_beginning_of_a_message_is_put_off() {
    let [send, write, request, immediate, empty] =
        <[Vec<u8>; 5]>::try_from(stream(true, false)).unwrap();
    let mut rx = receiver(true, false);
    let mut got = Recorder::default();

    for (message, calls, taker) in [
        (send, 1, Taker::Send),
        (write, 1, Taker::Send),
        (request, 1, Taker::Send),
        (immediate, 2, Taker::Immediate),
        (empty, 3, Taker::Send),
    ] {
        rx.consume(&message, &mut got).unwrap();
        assert_eq!(
            (got.take_receive_calls, got.last_taker),
            (calls, Some(taker))
        );
    }
}

/// A message that the embedder no longer waits for ends the stream. The quote is of its first
/// segment.
#[test]
fn a_refusal_after_a_wait_ends_the_stream() {
    let error = Error::DdpUntagged(DdpUntagged::NoBuffer);
    let fpdu = frame(&Untagged::new(3, 0, 1, &pattern(50)).ulpdu());
    for put_off in [0, 2] {
        let mut rx = receiver(true, false);
        let mut got = Recorder {
            put_off,
            refuse_receive: Some(error),
            ..Recorder::default()
        };
        let mut outcome = rx.consume(&fpdu, &mut got).map(|_| ());
        for _ in 0..put_off {
            assert_eq!(outcome, Ok(()));
            outcome = rx.consume(&[], &mut got).map(|_| ());
        }
        assert_eq!(outcome, Err(error));
        assert_eq!(rx.quote().segment_len(), Some(68));
        assert_eq!(got.calls, 0);
        assert!(!rx.at_boundary());
        assert_eq!(rx.consume(&fpdu, &mut got), Ok(fpdu.len()));
        assert_eq!(
            got.take_receive_calls,
            put_off + 1,
            "a dead stream takes no receive"
        );
    }
}

/// An invalid segment is refused at once, without a receive WQE.
#[test]
fn an_invalid_segment_does_not_wait() {
    let fpdu = frame(&Untagged::new(3, 0, 2, &pattern(50)).ulpdu());
    let mut rx = receiver(true, false);
    let mut got = Recorder {
        put_off: 1,
        ..Recorder::default()
    };

    let outcome = rx.consume(&fpdu, &mut got);
    assert_eq!(outcome, Err(DdpUntagged::InvalidMsnRange.into()));
    assert_eq!(got.take_receive_calls, 0);
}
