// SPDX-License-Identifier: GPL-2.0

//! The CRC of an FPDU (RFC 5044 §4.4): the octets that it covers, and its field if CRCs are off.

mod common;
use common::*;
use iwarp::mpa::fpdu::pad_len;
use iwarp::*;

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

/// MPA passes nothing to DDP after an error (RFC 5044 §8).
#[test]
fn nothing_follows_a_wrong_crc() {
    let good = frame(&Untagged::new(3, 0, 1, b"hello").ulpdu());
    let mut bad = good.clone();
    *bad.last_mut().unwrap() ^= 1;
    let mut rx = receiver(true, false);
    let mut got = Recorder::default();
    assert_eq!(rx.consume(&bad, &mut got), Err(Mpa::Crc.into()));
    assert_eq!(rx.consume(&good, &mut got), Ok(good.len()));
    assert_eq!(got.calls, 0);
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

/// Records headers, and no payload.
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

/// A writer that changes sent data behind the receiver's back cannot change a header.
#[test]
fn headers_are_those_that_the_crc_was_computed_of() {
    let request = common::READ_REQUEST;
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
            let mut rx = Framed::new(mpa::FpduDeframer::<Soft>::new(RxConfig {
                crc: true,
                markers,
            }));
            let mut got = Headers::default();
            let progress = consume(&mut rx, &Fickle { good, read }, &mut got);
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
