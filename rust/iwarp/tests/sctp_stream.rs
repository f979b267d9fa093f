// SPDX-License-Identifier: GPL-2.0

//! The segmenter and the receiver over SCTP: segment chunks, and two endpoints between which chunks
//! change their order (RFC 5043 §5.2.1, §5.2.2, §9, §10).

mod common;
use common::messages::*;
use common::sctp::*;
use common::*;
use iwarp::sctp::*;
use iwarp::*;
use proptest::collection::vec;
use proptest::prelude::*;

const ENHANCED: Form = Form::Enhanced { ird_max: 0 };

/// Lets a receiver consume one chunk.
fn consume(
    rx: &mut Framed<ChunkDeframer>,
    chunk: &[u8],
    got: &mut Recorder,
) -> Result<Progress, Error> {
    common::consume(rx, &Unread::from(chunk), got)
}

#[test]
fn the_longest_segment_fits_in_a_packet_with_a_sack() {
    for (chunk, want) in [
        // MTU 1500 over IPv4: 1500 - 20 - 12 - 16.
        (1452, 1434),
        (1453, 1434),
        (1455, 1434),
        (1456, 1438),
        // The loopback device.
        (65_488, 65_470),
        (u32::MAX, u16::MAX),
        // A session control chunk with 512 octets of private data must be possible.
        (0, 516),
        (534, 516),
        (535, 516),
        (536, 518),
    ] {
        assert_eq!(mulpdu(chunk), want, "{chunk}");
        assert_eq!(ChunkFramer::new(chunk).mulpdu(), want);
        if want > MULPDU_MIN && want < u16::MAX {
            let padded = (u32::from(want) + 2).next_multiple_of(4);
            assert!(padded + BUNDLE_ROOM <= chunk);
        }
    }
    let mut framer = ChunkFramer::new(1452);
    framer.set_chunk(0);
    assert_eq!(framer.mulpdu(), 516);
    framer.set_chunk(1456);
    assert_eq!(framer.mulpdu(), 1438);
}

#[test]
fn a_segment_chunk_is_its_number_and_the_segment() {
    let (mut initiator, _) = open(ENHANCED);
    initiator.message(SEND, b"abc");
    let send = Untagged::new(3, 0, 1, b"abc").ulpdu();
    let write = Message::Write {
        stag: Stag(0x1234),
        to: 0x10,
    };
    initiator.message(write, b"");
    let tagged = Tagged::new(0, 0x1234, 0x10, b"").ulpdu();
    // Number 0 was the Initiate.
    assert_eq!(initiator.take(), [segment(1, &send), segment(2, &tagged)]);
    initiator.close();
    assert_eq!(initiator.take(), [control(3, 4, b"")]);
}

#[test]
fn no_segment_is_longer_than_the_layer_allows() {
    let (mut initiator, mut responder) = open(ENHANCED);
    for chunk in [0, 1452, 9000] {
        initiator.tx.framing_mut().set_chunk(chunk);
        let payload = pattern(20_000);
        initiator.message(SEND, &payload);
        let longest = initiator.sent.iter().map(|(_, data)| data.len()).max();
        assert_eq!(longest, Some(usize::from(mulpdu(chunk)) + 2));
        deliver(&mut initiator, &mut responder);
        assert_eq!(joined(&std::mem::take(&mut responder.got.events)), payload);
    }
}

#[test]
fn the_numbers_go_round() {
    let (mut initiator, mut responder) = open(Form::Plain);
    for n in 1..0x1_0010_u32 {
        initiator.message(SEND, b"");
        assert_eq!(initiator.sent[0].1[..2], (n as u16).to_be_bytes());
        deliver(&mut initiator, &mut responder);
    }
    assert_eq!(responder.got.events.len(), 0x1_000f);
    assert_eq!(responder.take_reports(), []);
}

#[test]
fn messages_arrive_as_they_do_over_mpa() {
    let write = Message::Write {
        stag: Stag(0x1234),
        to: u64::MAX - 1000,
    };
    let terminate = Message::Terminate(Terminate::new(Rdmap::Bounds.into(), Quote::NONE));
    let (mut initiator, mut responder) = open(ENHANCED);
    // MULPDU is the same.
    let (mut mpa_tx, mut mpa_rx) = (segmenter(true, false, 1440), receiver(true, false));
    assert_eq!(mpa_tx.framing_mut().mulpdu(), mulpdu(1452));
    let mut mpa_got = Recorder::default();
    for (message, len) in [
        (SEND, 0),
        (SEND, 1),
        (write, 5000),
        (Message::ReadRequest(READ_REQUEST), 0),
        (SEND, 9000),
        (write, 0),
        (terminate, 0),
    ] {
        let payload = pattern(len);
        initiator.message(message, &payload);
        deliver(&mut initiator, &mut responder);
        assert!(responder.rx.started());
        let stream = send(&mut mpa_tx, message, &payload).concat();
        mpa_rx.consume(&stream, &mut mpa_got).unwrap();
        assert_eq!(responder.rx.at_boundary(0), mpa_rx.at_boundary());
        assert!(!responder.rx.at_boundary(1));
    }
    assert_eq!(responder.got.events, mpa_got.events);
    assert_eq!(responder.got.headers, mpa_got.headers);
}

#[test]
fn a_chunk_without_a_segment_is_refused() {
    for chunk in [
        &[][..],
        &[0],
        &[0, 1],
        &[[0, 1].as_slice(), &[0xc1; 13]].concat(),
        &[[0, 1].as_slice(), &[0x41; 17]].concat(),
        // No segment has more than 65535 octets.
        &[[0, 1].as_slice(), &[0xc1; 65_536]].concat(),
    ] {
        let mut rx = Framed::new(ChunkDeframer::default());
        let mut got = Recorder::default();
        let error = consume(&mut rx, chunk, &mut got);
        assert_eq!(error, Err(Sctp::Length.into()), "{}", chunk.len());
        assert!(!rx.at_boundary(0));
        assert_eq!(got.calls, 0);
        assert_eq!(rx.quote().header(), None);
        // The stream is dead.
        let progress = consume(&mut rx, chunk, &mut got);
        assert_eq!(progress, Ok(Progress::Consumed(chunk.len())));
    }
    // The longest one is taken.
    let mut rx = Framed::new(ChunkDeframer::new());
    let mut got = Recorder::default();
    let chunk = segment(1, &Untagged::new(3, 0, 1, &pattern(65_517)).ulpdu()).1;
    let progress = consume(&mut rx, &chunk, &mut got);
    assert_eq!(progress, Ok(Progress::Consumed(65_537)));
    assert_eq!(joined(&got.events), pattern(65_517));
}

#[test]
fn segments_that_are_handed_over_out_of_order_are_refused() {
    for number in [0, 2, 0x8001] {
        let mut rx = Framed::new(ChunkDeframer::new());
        let mut got = Recorder::default();
        let chunk = segment(number, &Untagged::new(3, 0, 1, b"x").ulpdu()).1;
        let error = consume(&mut rx, &chunk, &mut got);
        assert_eq!(error, Err(Sctp::Order.into()), "{number}");
        assert!(!rx.started());
        assert_eq!(got.calls, 0);
    }
}

#[test]
fn octets_that_cannot_be_read_are_a_local_failure() {
    struct Gone;
    impl Octets for Gone {
        fn len(&self) -> usize {
            20
        }
        fn copy(&self, _: usize, _: &mut [u8]) -> Option<()> {
            None
        }
        fn crc(&self, _: Crc, _: usize, _: usize) -> Option<Crc> {
            panic!("SCTP has checked the chunk");
        }
    }
    let error = ChunkDeframer::new().next(&Gone, &mut [0; HEAD_LEN]).err();
    assert_eq!(error, Some(Local::LowerLayer.into()));
}

#[test]
fn an_error_in_a_segment_is_ddps_and_quotes_it() {
    let (_, mut responder) = open(ENHANCED);
    let bad = Untagged::new(3, 0, 7, b"x").ulpdu();
    responder.arrive(segment(1, &bad));
    let error = DdpUntagged::InvalidMsnRange.into();
    assert_eq!(responder.take_reports(), [Report::Failed(error)]);
    assert_eq!(responder.rx.quote().segment_len(), Some(19));
    assert_eq!(responder.rx.quote().ddp(), &bad[..18]);
}

/// A chunk that could not be gathered is written again with its number.
#[test]
fn a_failed_gather_leaves_the_number_unchanged() {
    struct Full;
    impl Gather for Full {
        type Error = ();
        fn bytes(&mut self, _: &[u8]) -> Result<(), ()> {
            Ok(())
        }
        fn payload(&mut self, _: u32, _: u32, crc: Option<Crc>) -> Result<Option<Crc>, ()> {
            assert_eq!(crc, None);
            Err(())
        }
    }
    let payload = pattern(600);
    let mut tx = Segmenter::new(ChunkFramer::new(0));
    tx.start(SEND, 600).unwrap();
    for (number, len) in [(1, 518), (2, 2 + 18 + 600 + 18 - 516)] {
        assert_eq!(tx.poll_transmit(&mut Full), Err(()));
        assert_eq!(tx.framing_mut().next_ssn(), number);
        let mut out = Copy {
            message: &payload,
            wire: Vec::new(),
        };
        let Ok(emitted) = tx.poll_transmit(&mut out);
        assert_eq!(out.wire[..2], number.to_be_bytes());
        assert_eq!(out.wire.len(), len);
        assert_eq!(emitted.unwrap().bytes as usize, len);
    }
}

/// Mixes chunks: each goes up to `reach` places back.
fn mix(chunks: Vec<Wire>, moves: &[usize]) -> Vec<Wire> {
    let mut mixed: Vec<Wire> = Vec::new();
    for (chunk, back) in chunks.into_iter().zip(moves.iter().cycle()) {
        let at = mixed.len().saturating_sub(*back);
        mixed.insert(at, chunk);
    }
    mixed
}

/// Distances that chunks move.
fn moves() -> impl Strategy<Value = Vec<usize>> {
    vec(prop_oneof![Just(0_usize), 0_usize..4, 0_usize..4000], 1..40)
}

/// Returns the chunks of these messages, with the Terminate Chunk.
fn chunks_of(from: &mut Endpoint, messages: &[(Message, Vec<u8>)], chunk: u32) -> Vec<Wire> {
    from.tx.framing_mut().set_chunk(chunk);
    for (message, payload) in messages {
        from.message(*message, payload);
    }
    from.close();
    from.take()
}

proptest! {
    /// All that is sent is received, in any order of the chunks, in both directions.
    #[test]
    fn what_is_sent_is_received_in_any_order(
        forth in vec(message(), 0..8),
        back in vec(message(), 0..4),
        chunk in 0_u32..9000,
        plain: bool,
        moves in moves(),
    ) {
        let form = if plain { Form::Plain } else { ENHANCED };
        let mut initiator = Endpoint::initiator(form, (3, 4), b"hello");
        let mut responder = Endpoint::responder();
        deliver(&mut initiator, &mut responder);
        let private = b"welcome";
        responder.handle(SessionEvent::Accept { ird: 5, ord: 6, private }, &[]);
        // The responder sends at once; its Accept may come last.
        for chunk in mix(chunks_of(&mut responder, &back, chunk), &moves) {
            initiator.arrive(chunk);
        }
        for chunk in mix(chunks_of(&mut initiator, &forth, chunk), &moves) {
            responder.arrive(chunk);
        }
        for (side, messages) in [(&initiator, back), (&responder, forth)] {
            prop_assert_eq!(side.reports.last(), Some(&Report::PeerClosed));
            prop_assert_eq!(side.session, Session::Ended);
            prop_assert!(side.held.is_empty());
            prop_assert!(side.rx.at_boundary(0));
            let want: Vec<Got> = messages
                .into_iter()
                .map(|(message, payload)| Got { message, payload })
                .collect();
            prop_assert_eq!(assemble(&side.got.events), want);
        }
    }

    /// The order of arrival changes neither the received messages nor the error.
    #[test]
    fn the_order_of_arrival_means_nothing(
        messages in vec(message(), 1..5),
        damage in vec((any::<prop::sample::Index>(), 2_usize..40, any::<u8>()), 0..3),
        function in prop_oneof![4 => Just(None), 1 => (any::<prop::sample::Index>(), 0_u8..9).prop_map(Some)],
        moves in moves(),
    ) {
        let (mut initiator, _) = open(ENHANCED);
        let mut chunks = chunks_of(&mut initiator, &messages, 600);
        // The numbers stay: SCTP's checksum protects them.
        for (which, at, value) in damage {
            if let Some(octet) = which.get_mut(&mut chunks).1.get_mut(at) {
                *octet = value;
            }
        }
        if let Some((which, function)) = function {
            let chunk = which.get_mut(&mut chunks);
            *chunk = control(ssn(&chunk.1).unwrap(), function.into(), b"");
        }
        let mut seen = Vec::new();
        for mixed in [chunks.clone(), mix(chunks, &moves)] {
            let (_, mut responder) = open(ENHANCED);
            for chunk in mixed {
                responder.arrive(chunk);
            }
            prop_assert!(responder.held.is_empty());
            seen.push((
                responder.take_reports(),
                responder.got.events,
                responder.rx.quote(),
                responder.rx.at_boundary(0),
                responder.session,
            ));
        }
        prop_assert_eq!(&seen[0], &seen[1]);
    }

    /// Whatever comes, held chunks stay within their memory, and nothing is reported after the end.
    #[test]
    fn no_chunks_make_it_panic(
        chunks in vec(
            (
                prop_oneof![6 => Just(16_u32), 6 => Just(17), 1 => any::<u32>()],
                prop_oneof![8 => 0_u16..8, 1 => any::<u16>()],
                prop_oneof![
                    2 => vec(any::<u8>(), 0..40),
                    2 => (0_u8..9, vec(any::<u8>(), 0..8))
                        .prop_map(|(function, more)| [&[0, function], &more[..]].concat()),
                    1 => Just(Untagged::new(3, 0, 1, b"x").ulpdu()),
                ],
                prop_oneof![8 => Just(usize::MAX), 1 => 0_usize..6],
            ),
            0..30,
        ),
        role in 0_u8..3,
        answer in 0_u8..4,
        budget in 0_u32..200,
    ) {
        let session = match role {
            0 => Session::listen(negotiation::RtrTypes::ALL),
            1 => Session::initiate(ENHANCED, 3, 4, b"").unwrap().0,
            _ => Session::initiate(Form::Plain, 3, 4, b"").unwrap().0,
        };
        let mut side = Endpoint::new(session, 1452, budget);
        for (ppid, ssn, rest, cut) in chunks {
            let mut data = [&ssn.to_be_bytes(), &rest[..]].concat();
            data.truncate(cut);
            side.arrive((ppid, data));
            let octets: usize = side.held.values().map(|(_, data)| data.len()).sum();
            prop_assert!(octets <= budget as usize);
            if let (Session::Pending(_), true) = (side.session, answer > 0) {
                let private = b"";
                let event = match answer {
                    1 => SessionEvent::Reject { private },
                    2 => SessionEvent::Refuse,
                    _ => SessionEvent::Accept { ird: 1, ord: 1, private },
                };
                side.handle(event, &[]);
            }
        }
        // One chunk opens a session or refuses it, and none follows of its own accord.
        prop_assert!(side.sent.len() <= 1);
        let ends = side.reports.iter().filter(|report| matches!(
            report,
            Report::Over(_) | Report::Rejected(..) | Report::Refused { .. }
        ));
        prop_assert!(ends.count() <= 1);
    }
}
