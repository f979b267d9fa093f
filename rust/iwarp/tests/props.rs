// SPDX-License-Identifier: GPL-2.0

//! Properties: emitted messages parse back; the split of a stream changes nothing; no input makes
//! the receiver panic or place outside the announced segment (the recorder checks this).

mod common;
use common::messages::*;
use common::*;
use iwarp::*;
use proptest::collection::vec;
use proptest::prelude::*;

/// Feeds `stream` in chunks of these sizes, repeated cyclically.
fn feed(rx: &mut Rx, got: &mut Recorder, stream: &[u8], chunks: &[usize]) -> Result<(), Error> {
    let mut rest = stream;
    for size in chunks.iter().cycle() {
        let (part, after) = rest.split_at((*size).min(rest.len()));
        assert_eq!(rx.consume(part, got)?, part.len());
        rest = after;
        if rest.is_empty() {
            break;
        }
    }
    Ok(())
}

fn chunks() -> impl Strategy<Value = Vec<usize>> {
    vec(prop_oneof![1_usize..8, 1_usize..2000], 1..8)
}

proptest! {
    #[test]
    fn what_is_sent_is_received(
        messages in vec(message(), 0..8),
        crc: bool,
        markers: bool,
        emss in prop_oneof![0_u32..9100, 1400_u32..1500, 60_000_u32..80_000],
        sizes in chunks(),
    ) {
        let mut tx = segmenter(crc, markers, emss);
        let mut stream = Vec::new();
        for (message, payload) in &messages {
            stream.extend(common::send(&mut tx, *message, payload).concat());
        }
        let mut rx = receiver(crc, markers);
        let mut got = Recorder::default();
        feed(&mut rx, &mut got, &stream, &sizes).unwrap();
        prop_assert!(rx.at_boundary());
        prop_assert_eq!(rx.started(), !messages.is_empty());
        let want: Vec<Got> = messages
            .into_iter()
            .map(|(message, payload)| Got { message, payload })
            .collect();
        prop_assert_eq!(assemble(&got.events), want);
    }

    #[test]
    fn a_terminate_goes_round(
        layer in 0_u8..16,
        etype in 0_u8..16,
        code: u8,
        request in read_request(),
        done: u32,
        msn: u32,
        quoted: bool,
    ) {
        let quote = if quoted {
            Quote::read_request(msn, &request.advanced(done))
        } else {
            Quote::NONE
        };
        let code = TermCode { layer, etype, code };
        let sent = Terminate { code, quote };
        let mut tx = segmenter(true, false, 1460);
        let stream = common::send(&mut tx, Message::Terminate(sent), b"").concat();
        let mut rx = receiver(true, false);
        let mut got = Recorder::default();
        feed(&mut rx, &mut got, &stream, &[1]).unwrap();
        prop_assert_eq!(got.events, [Event::Terminated(sent)]);
    }

    /// A broken stream gives the same events and the same error in any split.
    #[test]
    fn the_split_means_nothing(
        messages in vec(message(), 1..5),
        crc: bool,
        markers: bool,
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in any::<prop::sample::Index>(),
        sizes in chunks(),
    ) {
        let mut tx = segmenter(crc, markers, 600);
        let mut stream = Vec::new();
        for (message, payload) in &messages {
            stream.extend(common::send(&mut tx, *message, payload).concat());
        }
        for (at, value) in damage {
            *at.get_mut(&mut stream) = value;
        }
        stream.truncate(cut.index(stream.len()) + 1);
        let mut seen = Vec::new();
        for sizes in [&[usize::MAX][..], &[1], &sizes] {
            let mut rx = receiver(crc, markers);
            let mut got = Recorder::default();
            let result = feed(&mut rx, &mut got, &stream, sizes);
            seen.push((result, got.events, rx.quote(), rx.at_boundary(), rx.started()));
        }
        prop_assert_eq!(&seen[0], &seen[1]);
        prop_assert_eq!(&seen[0], &seen[2]);
    }

    /// With CRCs, no damaged data is delivered: the received messages are a prefix of the sent
    /// ones.
    #[test]
    fn damage_is_not_delivered(
        messages in vec(message(), 1..5),
        markers: bool,
        at in any::<prop::sample::Index>(),
        flip in 1_u8..=255,
    ) {
        let mut tx = segmenter(true, markers, 600);
        let mut stream = Vec::new();
        for (message, payload) in &messages {
            stream.extend(common::send(&mut tx, *message, payload).concat());
        }
        let mut clean = Recorder::default();
        feed(&mut receiver(true, markers), &mut clean, &stream, &[999]).unwrap();
        *at.get_mut(&mut stream) ^= flip;
        // Padding, so that a damaged length field does not leave the FPDU incomplete.
        stream.resize(stream.len() + 70_000, 0);
        let mut got = Recorder::default();
        let result = feed(&mut receiver(true, markers), &mut got, &stream, &[999]);
        prop_assert_eq!(result, Err(Mpa::Crc.into()));
        prop_assert!(clean.events.starts_with(&got.events));
    }

    #[test]
    fn no_bytes_make_it_panic(
        stream in vec(any::<u8>(), 0..4000),
        crc: bool,
        markers: bool,
        sizes in chunks(),
    ) {
        let mut rx = receiver(crc, markers);
        let mut got = Recorder::default();
        let _ = feed(&mut rx, &mut got, &stream, &sizes);
        let _ = rx.quote();
    }

    /// Plausible headers with boundary values in their fields.
    #[test]
    fn no_headers_make_it_panic(
        ulpdus in vec(hostile(), 1..12),
        crc: bool,
        sizes in chunks(),
    ) {
        let stream: Vec<u8> = ulpdus.iter().flat_map(|u| frame(u)).collect();
        let mut rx = receiver(crc, false);
        let mut got = Recorder::default();
        let result = feed(&mut rx, &mut got, &stream, &sizes);
        let quote = rx.quote();
        if let Err(error) = result {
            // Round trip of the Terminate for this error.
            let sent = Terminate::new(error, quote);
            let mut tx = segmenter(true, true, 500);
            let stream = common::send(&mut tx, Message::Terminate(sent), b"").concat();
            let mut back = Recorder::default();
            feed(&mut receiver(true, true), &mut back, &stream, &sizes).unwrap();
            prop_assert_eq!(back.events, [Event::Terminated(sent)]);
        }
        // A delivered Send has no holes.
        let mut next = 0;
        for event in got.events {
            if let Event::Segment(Segment::Send { mo, len, last, .. }, _) = event {
                prop_assert_eq!(mo, next);
                next = if last { 0 } else { mo + len };
            }
        }
    }

    #[test]
    fn access_is_what_arithmetic_says(
        base: u64,
        len: u64,
        addr in any::<u64>(),
        near in -5_i64..5,
        from in 0_u8..4,
        n in prop_oneof![0_u32..10, any::<u32>()],
    ) {
        // At and around the edges of the region, or anywhere.
        let addr = match from {
            0 => base.wrapping_add_signed(near),
            1 => base.wrapping_add(len).wrapping_add_signed(near),
            2 => base.wrapping_add(len).wrapping_sub(u64::from(n)).wrapping_add_signed(near),
            _ => addr,
        };
        let region = Region {
            stag: Stag(1),
            pd: 2,
            base,
            len,
            access: Access::REMOTE_WRITE,
            valid: true,
        };
        let got = region.check(Stag(1), 2, Access::REMOTE_WRITE, addr, n);
        let (base, len, addr, n) =
            (u128::from(base), u128::from(len), u128::from(addr), u128::from(n));
        let inside = addr >= base && addr + n <= base + len && addr + n < 1 << 64;
        if n == 0 {
            prop_assert_eq!(got, Ok(0));
        } else if inside {
            prop_assert_eq!(got.map(u128::from), Ok(addr - base));
        } else {
            prop_assert!(got.is_err());
        }
    }

    /// For any responder, the accepted segments cover the sink in order, without a gap.
    #[test]
    fn a_read_response_stays_in_its_sink(
        to: u64,
        len in 0_u32..100,
        segments in vec((0_u32..4, -2_i64..3, 0_u32..60, any::<bool>()), 1..10),
    ) {
        let mut read = Outstanding::new(Stag(7), to, len);
        let mut placed = 0_u32;
        for (stag, skew, n, last) in segments {
            let stag = Stag(if stag == 0 { 8 } else { 7 });
            let skew = if n % 2 == 0 { 0 } else { skew };
            let at = to.wrapping_add(u64::from(placed)).wrapping_add_signed(skew);
            let right = n == 0 || (stag == Stag(7) && skew == 0);
            match read.accept(stag, at, n, last) {
                Ok(complete) => {
                    prop_assert!(right);
                    placed += n;
                    prop_assert!(placed <= len);
                    prop_assert_eq!(complete, last);
                    if complete {
                        prop_assert_eq!(placed, len);
                        break;
                    }
                }
                Err(_) => {
                    prop_assert!(!right || placed + n > len || (last && placed + n != len));
                }
            }
            prop_assert_eq!(read.done(), placed);
        }
    }

    #[test]
    fn no_bytes_make_the_startup_panic(
        reply: bool,
        keyed: bool,
        flags: u8,
        revision in 0_u8..4,
        pd_length in prop_oneof![0_u16..8, any::<u16>()],
        rest in vec(any::<u8>(), 0..600),
        sizes in chunks(),
    ) {
        use iwarp::startup::*;
        let mut bytes = Vec::new();
        if keyed {
            let key = if reply { b"MPA ID Rep Frame" } else { b"MPA ID Req Frame" };
            bytes.extend_from_slice(key);
            bytes.extend_from_slice(&[flags, revision]);
            bytes.extend_from_slice(&pd_length.to_be_bytes());
        }
        bytes.extend(rest);
        let kind = if reply { Kind::Reply } else { Kind::Request };
        let mut reader = Reader::new(kind);
        let mut rest = &bytes[..];
        for size in sizes.iter().cycle() {
            let n = rest.len().min(*size).min(reader.wanted());
            let (part, after) = rest.split_at(n);
            if n == 0 || reader.push(part).is_err() {
                break;
            }
            rest = after;
        }
        let policy = Policy { peer_to_peer: true, ird_max: 5, ..Policy::DEFAULT };
        let initiator = Initiator::new(&policy, 3, 4).unwrap();
        let _ = initiator.reply(&reader);
        if let Ok(responder) = Responder::request(&reader, &policy) {
            let (out, _) = responder.accept(3, 4, b"fine").unwrap();
            let mut back = Reader::new(Kind::Reply);
            prop_assert_eq!(back.push(&out.parts().concat()), Ok(true));
            prop_assert_eq!(back.private_data(), b"fine");
        }
    }
}

/// A ULPDU with mostly correct fields; others are off by one.
fn hostile() -> impl Strategy<Value = Vec<u8>> {
    let small = || prop_oneof![6 => 0_u32..4, 1 => any::<u32>(), 1 => Just(u32::MAX)];
    (
        prop_oneof![8 => Just(0x01_u8), 8 => Just(0x41), 8 => Just(0x81), 8 => Just(0xc1),
            1 => any::<u8>()],
        prop_oneof![12 => 0x40_u8..0x4c, 1 => any::<u8>()],
        [small(), small(), small(), small()],
        prop_oneof![
            vec(any::<u8>(), 0..60),
            Just(vec![0; 28]),
            Just(vec![0; 52]),
            Just(vec![0; 12]),
            Just(vec![0; 8]),
        ],
        prop_oneof![8 => Just(usize::MAX), 1 => 0_usize..30],
    )
        .prop_map(|(control, rdmap, words, payload, cut)| {
            let mut out = vec![control, rdmap];
            let fields = if control & 0x80 != 0 { 3 } else { 4 };
            for word in &words[..fields] {
                out.extend_from_slice(&word.to_be_bytes());
            }
            out.extend(payload);
            out.truncate(cut);
            out
        })
}
