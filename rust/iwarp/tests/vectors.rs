// SPDX-License-Identifier: GPL-2.0

//! Known answers: check values of the CRC, and the two example frames of RFC 5044 §4.4.

mod common;
use common::*;
use iwarp::*;

fn crc(data: &[u8]) -> [u8; 4] {
    Crc::new().update::<Soft>(data).wire()
}

#[test]
fn crc_check_values() {
    // RFC 3720 appendix B.4.
    assert_eq!(crc(&[0; 32]), [0xaa, 0x36, 0x91, 0x8a]);
    assert_eq!(crc(&[0xff; 32]), [0x43, 0xab, 0xa8, 0x62]);
    let up: Vec<u8> = (0..32).collect();
    assert_eq!(crc(&up), [0x4e, 0x79, 0xdd, 0x46]);
    let down: Vec<u8> = (0..32).rev().collect();
    assert_eq!(crc(&down), [0x5c, 0xdb, 0x3f, 0x11]);
    assert_eq!(crc(b"123456789"), 0xe306_9283_u32.to_le_bytes());
}

#[test]
fn crc_runs_on() {
    let whole = Crc::new().update::<Soft>(b"123456789");
    let first = Crc::default().update::<Soft>(b"1234");
    let resumed = Crc::from_raw(first.raw()).update::<Soft>(b"56789");
    assert_eq!(whole, resumed);
    assert_eq!(whole.update::<Soft>(b""), whole);
}

/// The first FPDU of RFC 5044, figure 5: a marker, then a Send of 24 zeros.
fn figure5() -> Vec<u8> {
    let mut f = vec![0, 0, 0, 0, 0x00, 0x2a, 0x41, 0x43];
    f.extend_from_slice(&[0, 0, 0, 0]); // no STag
    f.extend_from_slice(&[0, 0, 0, 0]); // queue 0
    f.extend_from_slice(&[0, 0, 0, 1]); // MSN 1
    f.extend_from_slice(&[0, 0, 0, 0]); // MO 0
    f.extend_from_slice(&[0; 24]);
    f.extend_from_slice(&[0x52, 0x23, 0x99, 0x83]);
    f
}

/// The FPDU of RFC 5044, figure 6: a Send of 24 zeros with MSN 2, at octet 0x1ec of the stream.
fn figure6() -> Vec<u8> {
    let mut f = vec![0x00, 0x2a, 0x41, 0x43];
    f.extend_from_slice(&[0, 0, 0, 0]);
    f.extend_from_slice(&[0, 0, 0, 0]);
    f.extend_from_slice(&[0, 0, 0, 2]);
    f.extend_from_slice(&[0, 0, 0, 0]);
    f.extend_from_slice(&[0, 0, 0, 0x14]); // the marker
    f.extend_from_slice(&[0; 24]);
    f.extend_from_slice(&[0x84, 0x92, 0x58, 0x98]);
    f
}

#[test]
fn figure5_is_emitted() {
    let mut tx = segmenter(true, true, 1460);
    assert_eq!(send(&mut tx, SEND, &[0; 24]), [figure5()]);
}

#[test]
fn figure5_is_received() {
    for chunk in [1, 3, 100] {
        let mut rx = receiver(true, true);
        let mut got = Recorder::default();
        receive(&mut rx, &mut got, &figure5(), chunk).unwrap();
        assert_eq!(joined(&got.events), [0; 24]);
        assert!(rx.at_boundary() && rx.started());
    }
}

/// The Send in front of figure 6: with its marker it ends at octet 0x1ec of the stream.
fn before_figure6() -> Vec<u8> {
    // 4 octets of marker, 2 of length, 18 of header, 4 of CRC; no pad.
    pattern(492 - 4 - 2 - 18 - 4)
}

#[test]
fn figure6_is_emitted() {
    let mut tx = segmenter(true, true, 1460);
    let first = send(&mut tx, SEND, &before_figure6());
    assert_eq!(first.len(), 1);
    assert_eq!(first[0].len(), 0x1ec);
    assert_eq!(send(&mut tx, SEND, &[0; 24]), [figure6()]);
}

#[test]
fn figure6_is_received() {
    for chunk in [1, 2, 5, 511, 512, 4096] {
        let mut tx = segmenter(true, true, 1460);
        let mut stream = send(&mut tx, SEND, &before_figure6()).concat();
        stream.extend_from_slice(&figure6());
        let mut rx = receiver(true, true);
        let mut got = Recorder::default();
        receive(&mut rx, &mut got, &stream, chunk).unwrap();
        let mut want = before_figure6();
        want.extend_from_slice(&[0; 24]);
        assert_eq!(joined(&got.events), want);
        assert!(rx.at_boundary());
    }
}
