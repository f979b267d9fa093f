// SPDX-License-Identifier: GPL-2.0

//! Headers of DDP and RDMAP on the wire, octet by octet (RFC 5041 §4, RFC 5040 §4).

mod common;
use common::*;
use iwarp::*;

/// Returns the headers of the FPDUs of a message of `len` octets, without the length fields.
fn heads(tx: &mut Tx, message: Message, len: usize, head: usize) -> Vec<Vec<u8>> {
    send(tx, message, &pattern(len))
        .iter()
        .map(|fpdu| fpdu[2..2 + head].to_vec())
        .collect()
}

#[test]
fn tagged() {
    let (stag, to) = (Stag(0xabcd_ef12), 0x0123_4567_89ab_fe00);
    for (message, opcode) in [
        (Message::Write { stag, to }, 0x40),
        (Message::ReadResponse { stag, to }, 0x42),
    ] {
        // 512 - 2 - 14 - 4, without pad.
        let got = heads(&mut segmenter(true, false, 512), message, 493, 14);
        let stag = [0xab, 0xcd, 0xef, 0x12];
        let first = [
            &[0x81, opcode],
            &stag[..],
            &[1, 0x23, 0x45, 0x67, 0x89, 0xab, 0xfe, 0],
        ];
        let second = [
            &[0xc1, opcode],
            &stag[..],
            &[1, 0x23, 0x45, 0x67, 0x89, 0xab, 0xff, 0xec],
        ];
        assert_eq!(got, [first.concat(), second.concat()]);
    }
}

#[test]
fn untagged() {
    let send = Message::Send {
        solicited: true,
        invalidate: Some(Stag(0x0102_0304)),
    };
    let mut tx = segmenter(true, false, 512);
    assert_eq!(
        heads(&mut tx, SEND, 0, 18),
        [[0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]]
    );
    // 512 - 2 - 18 - 4, without pad.
    assert_eq!(
        heads(&mut tx, send, 489, 18),
        [
            [1, 0x46, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0],
            [0x41, 0x46, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 1, 0xe8],
        ]
    );
    let request = ReadRequest {
        sink_stag: Stag(0x1122_3344),
        sink_to: 0x0102_0304_0506_0708,
        len: 0x5566_7788,
        src_stag: Stag(0x99aa_bbcc),
        src_to: 0x1112_1314_1516_1718,
    };
    assert_eq!(
        heads(&mut tx, Message::ReadRequest(request), 0, 46),
        [[
            0x41, 0x41, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, //
            0x11, 0x22, 0x33, 0x44, 1, 2, 3, 4, 5, 6, 7, 8, 0x55, 0x66, 0x77, 0x88, //
            0x99, 0xaa, 0xbb, 0xcc, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
        ]]
    );
    let terminate = Terminate::new(Rdmap::UnexpectedOpcode.into(), Quote::NONE);
    assert_eq!(
        heads(&mut tx, Message::Terminate(terminate), 0, 22),
        [[
            0x41, 0x47, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, //
            2, 6, 0, 0,
        ]]
    );
}

/// Both sides report each header, for events of the embedder: the sender the headers that it has
/// written, the receiver the headers that have arrived, checked or not.
#[test]
fn both_sides_report_the_same_headers() {
    let (stag, to) = (Stag(7), 1000);
    let response = AtomicResponse { id: 1, original: 2 };
    let terminate = Terminate::new(Rdmap::Bounds.into(), Quote::NONE);
    let messages = [
        (SEND, 900, vec![488, 412]),
        (Message::Write { stag, to }, 900, vec![492, 408]),
        (Message::ReadResponse { stag, to }, 0, vec![0]),
        (Message::ReadRequest(READ_REQUEST), 0, vec![28]),
        (Message::AtomicResponse(response), 0, vec![12]),
        (Message::Terminate(terminate), 0, vec![4]),
    ];
    let (mut tx, mut rx) = (segmenter(true, false, 512), receiver(true, false));
    let mut recorder = Recorder::default();
    for (message, len, parts) in messages {
        let mut sent = Vec::new();
        let mut out = Copy {
            message: &pattern(len),
            wire: Vec::new(),
        };
        tx.start(message, u32::try_from(len).unwrap()).unwrap();
        while let Ok(Some(emitted)) = tx.poll_transmit(&mut out) {
            assert_eq!(emitted.last, emitted.header.last());
            sent.push((emitted.header, emitted.len));
        }
        rx.consume(&out.wire, &mut recorder).unwrap();
        let got = core::mem::take(&mut recorder.headers);
        assert_eq!(got, sent, "{message:?}");
        assert_eq!(
            got.iter().map(|(_, len)| *len).collect::<Vec<_>>(),
            parts,
            "{message:?}"
        );
    }
}

#[test]
fn a_header_is_reported_before_it_is_checked() {
    let mut recorder = Recorder::default();
    let wrong = {
        let mut tx = segmenter(false, false, 512);
        let mut fpdu = send(&mut tx, SEND, &[1; 8]).remove(0);
        // A queue that does not exist.
        fpdu[11] = 9;
        fpdu
    };
    let refused = receiver(false, false).consume(&wrong, &mut recorder);
    assert_eq!(refused, Err(DdpUntagged::InvalidQn.into()));
    let [(ddp::Header::Untagged(header), 8)] = recorder.headers[..] else {
        panic!("{:?}", recorder.headers);
    };
    assert_eq!(header.qn.get(), 9);
}
