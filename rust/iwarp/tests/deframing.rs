// SPDX-License-Identifier: GPL-2.0

//! When an FPDU counts as received, and how a stream ends (RFC 5044 §6 to §8).

mod common;
use common::*;
use iwarp::mpa::fpdu::FPDU_MAX;
use iwarp::*;

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
        let mut rx = Framed::new(mpa::FpduDeframer::<Soft>::new(RxConfig {
            crc: true,
            markers,
        }));
        consume(&mut rx, &Unread::from(stream), &mut Recorder::default())
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
        Ok(Progress::Incomplete { needed: FPDU_MAX })
    );
}

#[test]
fn octets_are_empty_if_there_are_none() {
    assert!(Unread::default().is_empty());
    assert!(!Unread::from(&[0][..]).is_empty());
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
    let mut rx = Framed::new(mpa::FpduDeframer::<Soft>::new(RxConfig { crc, markers }));
    let got = consume(&mut rx, &Unreadable, &mut Nobody);
    assert_eq!(got, Err(Local::LowerLayer.into()));
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
