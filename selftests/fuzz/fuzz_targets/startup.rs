// SPDX-License-Identifier: GPL-2.0
#![no_main]

//! The startup: frames of any octets, and two sides with any policies.
//! Input: one octet that selects the test, both policies, then the frame or the depths.

use iwarp::startup::{
    CrcPolicy, Initiator, Kind, OutFrame, Outcome, Parameters, Policy, Reader, Responder, RtrTypes,
    StartupError,
};
use iwarp_fuzz::{Input, Split};
use libfuzzer_sys::fuzz_target;

fn policy(input: &mut Input<'_>) -> Policy {
    let [revision, flags, rtr] = input.array();
    let mut types = RtrTypes::NONE;
    for (bit, one) in [RtrTypes::SEND, RtrTypes::WRITE, RtrTypes::READ]
        .into_iter()
        .enumerate()
    {
        if rtr >> bit & 1 != 0 {
            types = types.union(one);
        }
    }
    Policy {
        revision: revision & 3,
        crc: match flags & 3 {
            0 => CrcPolicy::Off,
            1 => CrcPolicy::Offer,
            _ => CrcPolicy::Require,
        },
        markers: flags & 4 != 0,
        peer_to_peer: flags & 8 != 0,
        rtr: types,
        ird_max: u32::from(input.word()),
    }
}

/// Reads a frame whole and in parts, and checks that the results are equal.
fn read(kind: Kind, octets: &[u8], split: Split) -> Result<Reader, StartupError> {
    let mut whole = Reader::new(kind);
    let outcome = whole.push(octets);
    let mut slow = Reader::new(kind);
    let mut complete = Ok(slow.wanted() == 0);
    for part in split.parts(octets) {
        complete = slow.push(part);
        match complete {
            Ok(complete) => assert_eq!(complete, slow.wanted() == 0),
            Err(_) => break,
        }
        assert!(slow.wanted() <= 512);
    }
    assert_eq!(outcome, complete);
    outcome?;
    assert_eq!(whole.wanted(), slow.wanted());
    assert_eq!(whole.frame(), slow.frame());
    assert_eq!(whole.private_data(), slow.private_data());
    assert!(whole.private_data().len() <= 512);
    Ok(whole)
}

/// A sent frame must be acceptable to this side's own reader.
fn read_back(kind: Kind, frame: &OutFrame<'_>) -> Reader {
    let octets = frame.parts().concat();
    assert!((20..=532).contains(&octets.len()));
    let reader = read(kind, &octets, Split([20, 0, 7])).expect("a frame of our own");
    assert_eq!(reader.wanted(), 0);
    reader
}

/// Checks that both sides negotiated the same parameters.
fn agree(initiator: &Parameters, responder: &Parameters) {
    assert_eq!(initiator.crc, responder.crc);
    assert_eq!(initiator.rx_markers, responder.tx_markers);
    assert_eq!(initiator.tx_markers, responder.rx_markers);
    assert_eq!(initiator.revision, responder.revision);
    assert_eq!(initiator.rtr, responder.rtr);
    if let Some(ird) = initiator.peer_ird {
        assert_eq!(ird, responder.ird);
        assert!(initiator.ord <= ird);
    }
    if let Some(ord) = initiator.peer_ord {
        assert_eq!(ord, responder.ord);
        assert!(initiator.ird >= ord);
    }
    if let Some(ird) = responder.peer_ird {
        assert!(responder.ord <= ird);
    }
}

/// Lets a responder answer a Request.
fn answer(reader: &Reader, policy: &Policy, input: &mut Input<'_>) -> Option<(Reader, Parameters)> {
    match Responder::request(reader, policy) {
        Ok(responder) => {
            let reject = read_back(Kind::Reply, &responder.reject(b"no").unwrap());
            assert!(reject.frame().unwrap().reject);
            let (ird, ord) = (input.word(), input.word());
            let private = &[0; 512][..usize::from(input.octet()) * 2];
            let (frame, parameters) = responder
                .accept(u32::from(ird), u32::from(ord), private)
                .ok()?;
            let reply = read_back(Kind::Reply, &frame);
            assert_eq!(reply.private_data(), private);
            Some((reply, parameters))
        }
        Err(refusal) => {
            if let Some(frame) = refusal.reply {
                assert!(read_back(Kind::Reply, &frame).frame().unwrap().reject);
            }
            None
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let what = input.octet();
    let split = Split(input.array());
    let mine = policy(&mut input);
    let depths: [u8; 4] = input.array();
    let [ird, ord] = [[depths[0], depths[1]], [depths[2], depths[3]]].map(u16::from_be_bytes);
    let (ird, ord) = (u32::from(ird), u32::from(ord));
    match what % 3 {
        // A Request of any octets.
        0 => {
            if let Ok(reader) = read(Kind::Request, input.0, split) {
                answer(&reader, &mine, &mut input);
            }
        }
        // A Reply of any octets.
        1 => {
            let Ok(initiator) = Initiator::new(&mine, ird, ord) else {
                return;
            };
            let Ok(reader) = read(Kind::Reply, input.0, split) else {
                return;
            };
            if let Ok(Outcome::Established(parameters)) = initiator.reply(&reader) {
                assert!(parameters.ird <= ird.max(mine.ird_max));
                assert!(parameters.ord <= ord);
                assert!(parameters
                    .peer_ord
                    .is_none_or(|theirs| parameters.ird >= theirs));
                assert!(parameters
                    .peer_ird
                    .is_none_or(|theirs| parameters.ord <= theirs));
                assert!(!parameters.crc || mine.crc != CrcPolicy::Off);
                assert_eq!(parameters.rtr.is_some(), mine.peer_to_peer);
            }
        }
        // Two connecting sides.
        _ => {
            let other = policy(&mut input);
            let private = &[1; 512][..usize::from(input.octet()) * 2];
            let Ok(initiator) = Initiator::new(&mine, ird, ord) else {
                return;
            };
            let Ok(frame) = initiator.request(private) else {
                return;
            };
            let reader = read_back(Kind::Request, &frame);
            assert_eq!(reader.private_data(), private);
            let Some((reply, theirs)) = answer(&reader, &other, &mut input) else {
                return;
            };
            match initiator.reply(&reply) {
                Ok(Outcome::Established(ours)) => agree(&ours, &theirs),
                Ok(Outcome::Rejected) => panic!("an accepting Reply"),
                Err(error) => assert!(error.term().is_some(), "{error:?}: the peer must be told"),
            }
        }
    }
});
