// SPDX-License-Identifier: GPL-2.0

//! The lengths of FPDUs: pad, MULPDU (RFC 5044 §4.1, §4.5) and how full segments are.

mod common;
use common::*;
use iwarp::mpa::fpdu::{mulpdu, pad_len};

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

/// The FPDU of the longest ULPDU is accepted, although it is too long for FPDUPTR.
#[test]
fn the_longest_ulpdu_is_taken() {
    let payload = pattern(65_535 - 18);
    let ulpdu = Untagged::new(3, 0, 1, &payload).ulpdu();
    let (error, events, _) = error_at(true, false, &frame(&ulpdu));
    assert_eq!(error, None);
    assert_eq!(joined(&events), payload);
}
