// SPDX-License-Identifier: GPL-2.0

//! MPA in full operation (RFC 5044 §4 to §8): lengths, pads, CRCs, markers, and error handling.

mod common;
use common::*;
use iwarp::mpa::fpdu::{mulpdu, pad_len};
use iwarp::*;

/// Feeds `stream` whole and octet by octet. Returns the error, which must be equal.
fn error_at(crc: bool, markers: bool, stream: &[u8]) -> (Option<Error>, Vec<Event>, usize) {
    let mut verdicts = [stream.len(), 1].map(|chunk| {
        let mut rx = receiver(crc, markers);
        let mut got = Recorder::default();
        let error = receive(&mut rx, &mut got, stream, chunk).err();
        (error, got.events, got.calls)
    });
    assert_eq!(verdicts[0].0, verdicts[1].0);
    assert_eq!(verdicts[0].1, verdicts[1].1);
    std::mem::take(&mut verdicts[0])
}

#[test]
fn pads_fill_up_to_four() {
    for len in 0..=u16::MAX {
        let pad = pad_len(len);
        assert!(pad < 4);
        assert_eq!((2 + usize::from(len) + pad) % 4, 0);
    }
}

#[test]
fn mulpdu_is_that_of_the_rfc() {
    assert_eq!(mulpdu(1460, false), 1454);
    assert_eq!(mulpdu(1460, true), 1460 - (6 + 4 * 3));
    assert_eq!(mulpdu(1461, false), 1461 - 7);
    assert_eq!(mulpdu(1448, false), 1442);
    assert_eq!(mulpdu(512, true), 512 - 10);
    assert_eq!(mulpdu(513, true), 513 - (6 + 8 + 1));
    assert_eq!(mulpdu(8948, true), 8948 - (6 + 4 * 18));
}

#[test]
fn mulpdu_stays_within_bounds() {
    for markers in [false, true] {
        for emss in (0..200)
            .chain(65_000..66_000)
            .chain([u32::MAX - 1, u32::MAX])
        {
            let m = mulpdu(emss, markers);
            assert!(m >= 128);
            // The FPDU fits in the segment with the maximum number of markers.
            let capped = (emss as usize).min(65_540);
            let room = if markers { 4 * capped.div_ceil(512) } else { 0 };
            let fpdu = 2 + usize::from(m) + pad_len(m) + 4 + room;
            assert!(fpdu <= capped || m == 128, "{emss} {m}");
            // Each marker can point to the start of the FPDU.
            assert!(!markers || fpdu <= 65_536, "{emss} {m}");
        }
    }
}

#[test]
fn fpdus_fit_the_segment() {
    for markers in [false, true] {
        for emss in [152, 156, 536, 1448, 1460, 8948, 9000] {
            let mut tx = segmenter(true, markers, emss);
            for fpdu in common::send(&mut tx, SEND, &pattern(40_000)) {
                assert!(fpdu.len() <= emss as usize);
                assert_eq!(fpdu.len() % 4, 0);
            }
        }
    }
}

#[test]
fn what_goes_at_once_is_one_fpdu() {
    for (markers, emss) in [(false, 152), (false, 1448), (true, 1448), (false, 65_483)] {
        let at_once = |len: usize| segmenter(true, markers, emss).takes_at_once(len as u32);
        let longest = (0..=65_536).rev().find(|len| at_once(*len)).unwrap();
        let fpdus = |len| {
            let mut tx = segmenter(true, markers, emss);
            common::send(&mut tx, SEND, &pattern(len)).len()
        };
        assert!((0..longest).all(at_once));
        assert_eq!((fpdus(longest), fpdus(longest + 1)), (1, 2));
    }
}

#[test]
fn full_fpdus_fill_the_segment() {
    let mut tx = segmenter(true, false, 1460);
    let fpdus = common::send(&mut tx, SEND, &pattern(14_360));
    assert_eq!(fpdus.len(), 10);
    assert!(fpdus.iter().all(|f| f.len() == 1460));
}

#[test]
fn emss_may_change_under_way() {
    let payload = pattern(5000);
    let mut tx = segmenter(true, true, 1460);
    let mut rx = receiver(true, true);
    let mut got = Recorder::default();
    tx.start(SEND, 5000).unwrap();
    for emss in [1460, 536, 9000, 0, 200].into_iter().cycle() {
        tx.framing_mut().set_emss(emss);
        let mut out = Copy {
            message: &payload,
            wire: Vec::new(),
        };
        let Ok(emitted) = tx.poll_transmit(&mut out);
        assert!(out.wire.len() <= emss.max(146) as usize);
        receive(&mut rx, &mut got, &out.wire, 7).unwrap();
        if emitted.unwrap().last {
            break;
        }
    }
    assert_eq!(joined(&got.events), payload);
}

#[test]
fn a_wrong_crc_is_found_wherever_it_is() {
    let good = frame(&Untagged::new(3, 0, 1, b"hello").ulpdu());
    // Except the length: another length moves the CRC.
    for at in 2..good.len() {
        for bit in 0..8 {
            let mut bad = good.clone();
            bad[at] ^= 1 << bit;
            let (error, _, calls) = error_at(true, false, &bad);
            assert_eq!(error, Some(Mpa::Crc.into()), "octet {at}, bit {bit}");
            assert_eq!(calls, 0, "the placement was called");
        }
    }
}

#[test]
fn a_wrong_length_ends_in_a_wrong_crc() {
    let mut stream = frame(&Untagged::new(3, 0, 1, b"hello").ulpdu());
    stream[1] ^= 0x10;
    stream.extend_from_slice(&[0; 64]);
    assert_eq!(error_at(true, false, &stream).0, Some(Mpa::Crc.into()));
}

#[test]
fn the_crc_field_is_not_looked_at_when_off() {
    let mut stream = frame(&Untagged::new(3, 0, 1, b"hello").ulpdu());
    let at = stream.len() - 4;
    for field in [[0; 4], [0xff; 4]] {
        stream[at..].copy_from_slice(&field);
        let (error, events, _) = error_at(false, false, &stream);
        assert_eq!(error, None);
        assert_eq!(events.len(), 1);
    }
}

#[test]
fn the_crc_field_is_zero_when_off_and_the_pad_is_zero() {
    for n in 0..8 {
        let mut tx = segmenter(false, false, 1460);
        let fpdu = common::send(&mut tx, SEND, &vec![0xff; n]).concat();
        let pad = pad_len(u16::try_from(18 + n).unwrap());
        assert_eq!(fpdu.len(), 2 + 18 + n + pad + 4);
        assert!(fpdu[2 + 18 + n..].iter().all(|b| *b == 0));
    }
}

#[test]
fn the_pad_is_not_looked_at_but_counts_into_the_crc() {
    let mut ulpdu = Untagged::new(3, 0, 1, b"hell").ulpdu();
    let len = ulpdu.len();
    ulpdu.push(0x55);
    ulpdu.push(0xaa);
    // 18 + 4 octets need no pad; one octet less needs one, which is not zero here.
    let mut stream = u16::try_from(len - 1).unwrap().to_be_bytes().to_vec();
    stream.extend_from_slice(&ulpdu[..len]);
    let crc = Crc::new().update::<Soft>(&stream).wire();
    stream.extend_from_slice(&crc);
    let (error, events, _) = error_at(true, false, &stream);
    assert_eq!(error, None);
    assert_eq!(joined(&events), b"hel");
}

#[test]
fn nothing_is_done_before_an_fpdu_is_here_whole() {
    let good = Untagged::new(3, 0, 1, &[7; 100]).ulpdu();
    let unknown = Untagged::new(0xc, 0, 1, &[7; 100]).ulpdu();
    // Too short for the header that the first octet announces.
    let short = [[&[0xc1; 13][..], &[0x41; 17]].map(<[u8]>::to_vec)].concat();
    for (ulpdu, want) in [
        (good, None),
        (unknown, Some(Rdmap::UnexpectedOpcode.into())),
        (short[0].clone(), Some(Mpa::Length.into())),
        (short[1].clone(), Some(Mpa::Length.into())),
    ] {
        let stream = frame(&ulpdu);
        let (last, front) = stream.split_last().unwrap();
        for crc in [false, true] {
            let mut rx = receiver(crc, false);
            let mut got = Recorder::default();
            assert_eq!(rx.consume(front, &mut got), Ok(front.len()));
            assert_eq!(got.calls, 0);
            assert_eq!(rx.consume(&[*last], &mut got).err(), want);
            assert_eq!(got.calls == 0, want.is_some());
        }
        // A wrong CRC takes precedence.
        let mut bad = stream.clone();
        bad[10] ^= 1;
        assert_eq!(error_at(true, false, &bad).0, Some(Mpa::Crc.into()));
    }
}

#[test]
fn what_an_fpdu_needs_is_said_as_soon_as_its_length_is_here() {
    let needed = |markers, stream: &[u8]| {
        let mut rx = Receiver::new(mpa::Deframer::<Soft>::new(RxConfig { crc: true, markers }));
        rx.consume(&Unread::from(stream), &mut Recorder::default())
    };
    for markers in [false, true] {
        // The marker in front of the length field.
        let lead = if markers { 4 } else { 0 };
        for n in [0, 1, 400, 1000, 9000] {
            let mut tx = segmenter(true, markers, 20_000);
            let fpdu = common::send(&mut tx, SEND, &pattern(n)).concat();
            for have in 0..fpdu.len() {
                let want = if have < lead + 2 {
                    lead + 2
                } else {
                    fpdu.len()
                };
                let progress = Progress::Incomplete { needed: want };
                assert_eq!(needed(markers, &fpdu[..have]), Ok(progress));
            }
            let all = Progress::Consumed(fpdu.len());
            assert_eq!(needed(markers, &fpdu), Ok(all));
            // Octets behind the FPDU stay unconsumed.
            let more = [&fpdu[..], &[0xff; 100]].concat();
            assert_eq!(needed(markers, &more), Ok(all));
        }
    }
    assert_eq!(
        needed(true, &[&[0; 4][..], &[0xff; 2]].concat()),
        Ok(Progress::Incomplete {
            needed: 65_544 + 4 * 130
        })
    );
}

/// Memory that its writer changes after each read: only the first read of an octet is correct.
struct Fickle {
    good: Vec<u8>,
    read: std::cell::RefCell<Vec<bool>>,
}

impl Fickle {
    fn read(&self, at: usize, len: usize) -> Vec<u8> {
        let read = &mut self.read.borrow_mut()[at..at + len];
        let octets = self.good[at..at + len].iter().zip(read);
        octets
            .map(|(octet, read)| {
                octet
                    ^ if std::mem::replace(read, true) {
                        0xff
                    } else {
                        0
                    }
            })
            .collect()
    }
}

impl Octets for Fickle {
    fn len(&self) -> usize {
        self.good.len()
    }
    fn copy(&self, at: usize, to: &mut [u8]) -> Option<()> {
        to.copy_from_slice(&self.read(at, to.len()));
        Some(())
    }
    fn crc(&self, crc: Crc, at: usize, len: usize) -> Option<Crc> {
        Some(crc.update::<Soft>(&self.read(at, len)))
    }
}

/// A writer that changes sent data behind the receiver's back cannot change a header.
#[test]
fn headers_are_those_that_the_crc_was_computed_of() {
    #[derive(Default)]
    struct Headers(Vec<Event>);
    impl Placement for Headers {
        type Stream<'s> = Fickle;
        fn begin(&mut self, segment: &Segment) -> Result<(), Error> {
            self.0.push(Event::Segment(*segment, Vec::new()));
            Ok(())
        }
        fn place(
            &mut self,
            _: &Segment,
            _: u32,
            _: &Fickle,
            _: std::ops::Range<usize>,
        ) -> Result<(), Error> {
            Ok(())
        }
        fn end(&mut self, _: &Segment) -> Result<(), Error> {
            Ok(())
        }
        fn read_request(&mut self, request: &ReadRequest, msn: u32) -> Result<(), Error> {
            self.0.push(Event::ReadRequest(*request, msn));
            Ok(())
        }
        fn terminated(&mut self, terminate: &Terminated) {
            self.0.push(Event::Terminated(*terminate));
        }
    }
    let request = ReadRequest {
        sink_stag: Stag(1),
        sink_to: 2,
        len: 3,
        src_stag: Stag(4),
        src_to: 5,
    };
    let quote = Quote::read_request(7, &request);
    let write = Message::Write {
        stag: Stag(0x1234),
        to: 0x5678,
    };
    for (message, len) in [
        (SEND, 5),
        (SEND, 1000),
        (write, 1000),
        (Message::ReadRequest(request), 0),
        (
            Message::Terminate(Terminate::new(Rdmap::Bounds.into(), quote)),
            0,
        ),
    ] {
        for markers in [false, true] {
            let mut tx = segmenter(true, markers, 9000);
            let good = common::send(&mut tx, message, &pattern(len)).concat();
            let mut plain = Recorder::default();
            receiver(true, markers).consume(&good, &mut plain).unwrap();
            let want: Vec<_> = plain
                .events
                .into_iter()
                .map(|event| match event {
                    Event::Segment(segment, _) => Event::Segment(segment, Vec::new()),
                    other => other,
                })
                .collect();

            let read = vec![false; good.len()].into();
            let octets = good.len();
            let mut rx = Receiver::new(mpa::Deframer::<Soft>::new(RxConfig { crc: true, markers }));
            let mut got = Headers::default();
            let progress = rx.consume(&Fickle { good, read }, &mut got);
            if markers && octets > 512 {
                // A marker outside the CRC's copy is not trusted.
                assert_eq!(progress, Err(Mpa::Marker.into()));
                continue;
            }
            assert_eq!(progress, Ok(Progress::Consumed(octets)));
            assert_eq!(got.0, want);
        }
    }
}

#[test]
fn what_cannot_be_read_ends_the_stream() {
    struct Unreadable;
    impl Octets for Unreadable {
        fn len(&self) -> usize {
            100
        }
        fn copy(&self, _: usize, _: &mut [u8]) -> Option<()> {
            None
        }
        fn crc(&self, _: Crc, _: usize, _: usize) -> Option<Crc> {
            None
        }
    }
    struct Nobody;
    impl Placement for Nobody {
        type Stream<'s> = Unreadable;
        fn begin(&mut self, _: &Segment) -> Result<(), Error> {
            unreachable!()
        }
        fn place(
            &mut self,
            _: &Segment,
            _: u32,
            _: &Unreadable,
            _: std::ops::Range<usize>,
        ) -> Result<(), Error> {
            unreachable!()
        }
        fn end(&mut self, _: &Segment) -> Result<(), Error> {
            unreachable!()
        }
        fn read_request(&mut self, _: &ReadRequest, _: u32) -> Result<(), Error> {
            unreachable!()
        }
        fn terminated(&mut self, _: &Terminated) {
            unreachable!()
        }
    }
    let (crc, markers) = (true, false);
    let mut rx = Receiver::new(mpa::Deframer::<Soft>::new(RxConfig { crc, markers }));
    let got = rx.consume(&Unreadable, &mut Nobody);
    assert_eq!(got, Err(Error::LocalCatastrophic));
    assert!(!rx.at_boundary(0));
}

/// A responder may send after the first valid FPDU, even if its contents are invalid; not after an
/// invalid or incomplete FPDU.
#[test]
fn the_first_fpdu_counts_when_it_is_here_whole_and_valid() {
    let stream = frame(&Untagged::new(0xc, 0, 1, &[0; 100]).ulpdu());
    let (last, front) = stream.split_last().unwrap();
    for crc in [false, true] {
        let mut rx = receiver(crc, false);
        let mut got = Recorder::default();
        assert_eq!(rx.consume(front, &mut got), Ok(front.len()));
        assert!(!rx.started());
        let error = rx.consume(&[*last], &mut got);
        assert_eq!(error, Err(Rdmap::UnexpectedOpcode.into()));
        assert!(rx.started());
    }
    let mut bad = stream.clone();
    bad[50] ^= 1;
    let mut rx = receiver(true, false);
    assert!(rx.consume(&bad, &mut Recorder::default()).is_err());
    assert!(!rx.started());
}

/// A placement's refusal ends the stream; no further call is made.
#[test]
fn refusals_are_returned_and_end_the_stream() {
    let first = frame(&Untagged::new(3, 0, 1, &pattern(50)).ulpdu());
    let both = [first.clone(), frame(&Untagged::new(3, 0, 2, b"x").ulpdu())].concat();
    let error = Error::DdpUntagged(DdpUntagged::NoBuffer);
    for crc in [false, true] {
        for stage in 0..3 {
            for chunk in [1, 30, both.len()] {
                let mut rx = receiver(crc, false);
                let mut got = Recorder::default();
                *match stage {
                    0 => &mut got.refuse_begin,
                    1 => &mut got.refuse_place,
                    _ => &mut got.refuse_end,
                } = Some(error);
                let result = receive(&mut rx, &mut got, &both, chunk);
                assert_eq!(result, Err(error));
                if stage < 2 {
                    assert_eq!(got.calls, stage + 1);
                    assert_eq!(got.events, []);
                }
                assert!(!rx.at_boundary());
                let calls = got.calls;
                assert_eq!(rx.consume(&both, &mut got), Ok(both.len()));
                assert_eq!(got.calls, calls, "a dead stream discards");
                assert_eq!(rx.quote().segment_len(), Some(68));
            }
        }
    }
}

#[test]
fn boundaries_are_between_fpdus() {
    for markers in [false, true] {
        let mut tx = segmenter(true, markers, 1460);
        let mut rx = receiver(true, markers);
        let mut got = Recorder::default();
        assert!(rx.at_boundary());
        assert!(!rx.started());
        for n in [0, 1, 600] {
            let fpdu = common::send(&mut tx, SEND, &pattern(n)).concat();
            let (last, front) = fpdu.split_last().unwrap();
            for (i, byte) in front.iter().enumerate() {
                rx.consume(&[*byte], &mut got).unwrap();
                // Between FPDUs, the stream may end behind a whole marker, but not within it.
                assert_eq!(rx.at_boundary(), markers && n == 0 && i == 3);
            }
            rx.consume(&[*last], &mut got).unwrap();
            assert!(rx.at_boundary());
            assert!(rx.started());
        }
    }
}

/// Checks the marker positions in a stream and the starts of its FPDUs, from the layout alone.
fn check_markers(stream: &[u8], fpdus: &[usize]) {
    let mut start = 0;
    let mut starts = vec![];
    for len in fpdus {
        starts.push(start);
        start += len;
    }
    assert_eq!(start, stream.len());
    for at in (0..stream.len()).step_by(512) {
        assert_eq!(stream[at..at + 2], [0, 0]);
        let pointer = usize::from(u16::from_be_bytes([stream[at + 2], stream[at + 3]]));
        // The FPDU of the marker. A marker at its first octet is between FPDUs.
        let start = *starts.iter().rfind(|s| **s <= at).unwrap();
        let header = if start % 512 == 0 { start + 4 } else { start };
        let want = if start == at { 0 } else { at - header };
        assert_eq!(pointer, want, "marker at {at}");
    }
}

#[test]
fn markers_are_every_512_octets_and_point_to_their_fpdu() {
    for n in (0..1200).step_by(3) {
        let mut tx = segmenter(true, true, 9000);
        let mut fpdus = vec![];
        for payload in [&pattern(n)[..], &pattern(3000), b"", b"x"] {
            fpdus.extend(common::send(&mut tx, SEND, payload));
        }
        let lens: Vec<usize> = fpdus.iter().map(Vec::len).collect();
        let stream = fpdus.concat();
        check_markers(&stream, &lens);
        let mut rx = receiver(true, true);
        let mut got = Recorder::default();
        receive(&mut rx, &mut got, &stream, 300).unwrap();
        assert_eq!(got.events.len(), fpdus.len());
    }
}

#[test]
fn a_marker_that_points_elsewhere_is_an_error() {
    let mut tx = segmenter(false, true, 9000);
    let stream = common::send(&mut tx, SEND, &pattern(2000)).concat();
    for at in [0, 512, 1024, 1536] {
        for bit in 2..16 {
            let mut bad = stream.clone();
            bad[at + 3 - bit / 8] ^= 1 << (bit % 8);
            let (error, events, _) = error_at(false, true, &bad);
            assert_eq!(error, Some(Mpa::Marker.into()));
            assert_eq!(events, []);
        }
        // The low two bits and the reserved half are ignored.
        let mut odd = stream.clone();
        odd[at] = 0xff;
        odd[at + 3] |= 3;
        assert_eq!(error_at(false, true, &odd).0, None);
        // The CRC covers them.
        let mut tx = segmenter(true, true, 9000);
        let mut odd = common::send(&mut tx, SEND, &pattern(2000)).concat();
        odd[at] = 0xff;
        assert_eq!(error_at(true, true, &odd).0, Some(Mpa::Crc.into()));
    }
}

#[test]
fn with_crc_a_marker_error_needs_a_good_crc() {
    let ulpdu = Untagged::new(3, 0, 1, b"hello!").ulpdu();
    let mut stream = vec![0, 0, 0, 8, 0, 24];
    stream.extend_from_slice(&ulpdu);
    stream.extend_from_slice(&[0, 0]);
    let crc = Crc::new().update::<Soft>(&stream).wire();
    stream.extend_from_slice(&crc);
    assert_eq!(error_at(true, true, &stream).0, Some(Mpa::Marker.into()));
    stream[10] ^= 1;
    assert_eq!(error_at(true, true, &stream).0, Some(Mpa::Crc.into()));
}

/// The FPDU of the longest ULPDU is accepted, although it is too long for FPDUPTR.
#[test]
fn the_longest_ulpdu_is_taken() {
    let payload = pattern(65_535 - 18);
    let ulpdu = Untagged::new(3, 0, 1, &payload).ulpdu();
    let (error, events, _) = error_at(true, false, &frame(&ulpdu));
    assert_eq!(error, None);
    assert_eq!(joined(&events), payload);
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
    }
}
