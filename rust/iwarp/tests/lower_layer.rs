// SPDX-License-Identifier: GPL-2.0

//! The segmenter and the receiver over another lower layer than MPA: its frames are messages of a
//! number and one DDP segment, as the chunks of DDP over SCTP are (RFC 5043 §5.2.2).

mod common;
use common::*;
use iwarp::ddp::{FrameHead, Runs, Ulpdu, HEAD_LEN};
use iwarp::traits::Deframed;
use iwarp::*;

/// Octets of the number.
const NUMBER_LEN: usize = 2;
const MULPDU: u16 = 1454;

/// One direction of the layer. The number counts the frames.
#[derive(Default)]
struct Numbered {
    next: u16,
}

impl Framing for Numbered {
    const PREFIX_LEN: usize = NUMBER_LEN;

    fn mulpdu(&self) -> u16 {
        MULPDU
    }

    fn emit<G: Gather>(
        &mut self,
        head: &mut [u8],
        offset: u32,
        len: u32,
        out: &mut G,
    ) -> Result<u32, G::Error> {
        head[..NUMBER_LEN].copy_from_slice(&self.next.to_be_bytes());
        out.bytes(head)?;
        if len != 0 {
            assert_eq!(out.payload(offset, len, None)?, None);
        }
        self.next += 1;
        Ok(head.len() as u32 + len)
    }
}

impl Deframing for Numbered {
    const SHORT: Error = Error::Rdmap(Rdmap::CatastrophicStream);

    fn next<S: Octets>(&mut self, message: &S, head: &mut FrameHead) -> Result<Deframed, Error> {
        message
            .copy(0, &mut head[..message.len().min(HEAD_LEN)])
            .unwrap();
        if head[..NUMBER_LEN] != self.next.to_be_bytes() {
            return Err(Rdmap::Unspecified.into());
        }
        self.next += 1;
        let len = message.len() - NUMBER_LEN;
        Ok(Deframed::Frame(Ulpdu {
            octets: message.len(),
            len: len as u16,
            runs: Runs::new(NUMBER_LEN, len),
        }))
    }

    fn may_end(&self, unread: usize) -> bool {
        unread == 0
    }
}

/// Lets the receiver consume one message.
fn consume(
    rx: &mut Framed<Numbered>,
    message: &[u8],
    placement: &mut Recorder,
) -> Result<Progress, Error> {
    common::consume(rx, &Unread::from(message), placement)
}

/// Sends one message over the layer. Returns its frames.
fn frames(tx: &mut Segmenter<Numbered>, message: Message, payload: &[u8]) -> Vec<Vec<u8>> {
    tx.start(message, payload.len() as u32).unwrap();
    let mut frames = Vec::new();
    while tx.busy() {
        let mut out = Copy {
            message: payload,
            wire: Vec::new(),
        };
        let Ok(emitted) = tx.poll_transmit(&mut out);
        assert_eq!(emitted.unwrap().bytes as usize, out.wire.len());
        frames.push(out.wire);
    }
    frames
}

#[test]
fn messages_arrive_as_they_do_over_mpa() {
    let write = Message::Write {
        stag: Stag(0x1234),
        to: u64::MAX - 1000,
    };
    let read = Message::ReadRequest(common::READ_REQUEST);
    let terminate = Message::Terminate(Terminate::new(Rdmap::Bounds.into(), Quote::NONE));
    let (mut tx, mut rx) = (
        Segmenter::new(Numbered::default()),
        Framed::new(Numbered::default()),
    );
    // MULPDU is the same.
    let (mut mpa_tx, mut mpa_rx) = (segmenter(true, true, 1472), receiver(true, true));
    assert_eq!(mpa_tx.framing_mut().mulpdu(), MULPDU);
    let (mut got, mut mpa_got) = (Recorder::default(), Recorder::default());
    let mut count: u16 = 0;
    for (message, len) in [
        (SEND, 0),
        (SEND, 1),
        (write, 5000),
        (read, 0),
        (SEND, 9000),
        (write, 0),
        (terminate, 0),
    ] {
        let payload = pattern(len);
        for frame in frames(&mut tx, message, &payload) {
            assert_eq!(frame[..NUMBER_LEN], count.to_be_bytes());
            assert!(frame.len() <= NUMBER_LEN + usize::from(MULPDU));
            count += 1;
            let progress = consume(&mut rx, &frame, &mut got);
            assert_eq!(progress, Ok(Progress::Consumed(frame.len())));
            assert!(rx.started());
        }
        let stream = send(&mut mpa_tx, message, &payload).concat();
        mpa_rx.consume(&stream, &mut mpa_got).unwrap();
        assert_eq!(rx.at_boundary(0), mpa_rx.at_boundary());
        assert!(!rx.at_boundary(1));
    }
    assert_eq!(got.events, mpa_got.events);
    assert_eq!(got.events.len(), usize::from(count));
    assert!(tx.terminated());
}

#[test]
fn the_layer_names_the_error_of_a_segment_without_its_header() {
    for segment in [&[][..], &[0xc1; 13], &[0x41; 17]] {
        let mut rx = Framed::new(Numbered::default());
        let mut got = Recorder::default();
        let message = [&[0, 0], segment].concat();
        let error = consume(&mut rx, &message, &mut got);
        assert_eq!(error, Err(Numbered::SHORT));
        assert!(rx.started());
        assert!(!rx.at_boundary(0));
        assert_eq!(got.calls, 0);
    }
}

#[test]
fn an_error_of_the_layer_ends_the_stream_before_the_segment_is_looked_at() {
    let mut rx = Framed::new(Numbered::default());
    let mut got = Recorder::default();
    let message = [&[0, 1], &Untagged::new(3, 0, 1, b"x").ulpdu()[..]].concat();
    let error = consume(&mut rx, &message, &mut got);
    assert_eq!(error, Err(Rdmap::Unspecified.into()));
    assert!(!rx.started());
    assert_eq!(rx.quote(), Quote::NONE);
    let message = [&[0, 0], &Untagged::new(3, 0, 1, b"x").ulpdu()[..]].concat();
    let progress = consume(&mut rx, &message, &mut got);
    assert_eq!(progress, Ok(Progress::Consumed(message.len())));
    assert_eq!(got.calls, 0);
}

/// A frame that could not be gathered is written again with its number.
#[test]
fn a_failed_gather_leaves_the_framing_unchanged() {
    struct Full;
    impl Gather for Full {
        type Error = ();
        fn bytes(&mut self, _: &[u8]) -> Result<(), ()> {
            Ok(())
        }
        fn payload(&mut self, _: u32, _: u32, _: Option<Crc>) -> Result<Option<Crc>, ()> {
            Err(())
        }
    }
    let payload = pattern(2000);
    let mut tx = Segmenter::new(Numbered::default());
    tx.start(SEND, 2000).unwrap();
    for (number, len) in [(0, MULPDU), (1, 18 + 18 + 2000 - MULPDU)] {
        assert_eq!(tx.poll_transmit(&mut Full), Err(()));
        let mut out = Copy {
            message: &payload,
            wire: Vec::new(),
        };
        let Ok(emitted) = tx.poll_transmit(&mut out);
        assert_eq!(out.wire[..NUMBER_LEN], [0, number]);
        assert_eq!(out.wire.len(), NUMBER_LEN + usize::from(len));
        assert_eq!(emitted.unwrap().last, number == 1);
    }
}
