// SPDX-License-Identifier: GPL-2.0

//! Markers (RFC 5044 §4.3, §8).

mod common;
use common::*;
use iwarp::*;

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

/// The runs of a part of a segment are its octets, in order, without the markers between them.
#[test]
fn runs_leave_markers_out() {
    for until in [1, 2, 300, 508, usize::MAX] {
        for len in [0, 1, 300, 508, 509, 2000] {
            let mut next = 10;
            let octets: Vec<usize> = (0..len)
                .map(|n| {
                    if n >= until && (n - until) % 508 == 0 {
                        next += 4;
                    }
                    next += 1;
                    next - 1
                })
                .collect();
            for behind in [0, 1, 2, 300, 508, 509, 1999, 2000, 3000] {
                let all = ddp::Runs::between_markers(10, len, until);
                let runs: Vec<_> = all.behind(behind).collect();
                assert!(runs.iter().all(|run| !run.is_empty()));
                let got: Vec<usize> = runs.into_iter().flatten().collect();
                assert_eq!(got, octets[behind.min(len)..], "{until} {len} {behind}");
            }
        }
    }
}
