// SPDX-License-Identifier: GPL-2.0

//! Only the two ends of MPA know whether CRCs are used (RFC 5044 §4.4).

mod common;
use common::startup::*;
use common::*;
use iwarp::startup::*;
use iwarp::Message;

/// The part of a connection that its users see.
#[derive(PartialEq, Debug)]
struct Seen {
    /// The parameters of both ends.
    parameters: [Parameters; 2],
    private: [Vec<u8>; 2],
    events: [Vec<Event>; 2],
}

fn policy(crc: CrcPolicy) -> Policy {
    Policy { crc, ..P2P }
}

/// Connects and exchanges messages. Returns whether CRCs were used, and the users' view.
fn connection(here: CrcPolicy, there: CrcPolicy) -> (bool, Seen) {
    let initiator = Initiator::new(&policy(here), 3, 4).unwrap();
    let request_reader = request(&octets(&initiator.request(b"hello").unwrap()));
    let responder = Responder::request(&request_reader, &policy(there)).unwrap();
    let (answer, theirs) = responder.accept(5, 2, b"welcome").unwrap();
    let answer = reply(&octets(&answer));
    let ours = established(initiator.reply(&answer));

    let mut wire = Vec::new();
    let events = [ours, theirs].map(|parameters| {
        let mut tx = segmenter(parameters.crc, false, 1448);
        let (mut rx, mut got) = (receiver(parameters.crc, false), Recorder::default());
        let write = Message::Write {
            stag: iwarp::Stag(7),
            to: 9,
        };
        for (message, len) in [(SEND, 0), (SEND, 1), (write, 4001), (SEND, 1500)] {
            for fpdu in send(&mut tx, message, &pattern(len)) {
                receive(&mut rx, &mut got, &fpdu, fpdu.len()).unwrap();
                wire.push(fpdu);
            }
        }
        got.events
    });
    let field = |fpdu: &Vec<u8>| fpdu[fpdu.len() - 4..] != [0; 4];
    assert!(wire.iter().all(|fpdu| field(fpdu) == ours.crc));
    assert_eq!(ours.crc, theirs.crc);

    let seen = Seen {
        parameters: [ours, theirs].map(|parameters| Parameters {
            crc: false,
            ..parameters
        }),
        private: [&request_reader, &answer].map(|reader| reader.private_data().to_vec()),
        events,
    };
    (ours.crc, seen)
}

#[test]
fn the_user_does_not_see_whether_crcs_are_used() {
    let (used, without) = connection(CrcPolicy::Off, CrcPolicy::Off);
    assert!(!used);
    for (here, there, want) in [
        (CrcPolicy::Offer, CrcPolicy::Off, false),
        (CrcPolicy::Offer, CrcPolicy::Offer, false),
        (CrcPolicy::Require, CrcPolicy::Offer, true),
        (CrcPolicy::Offer, CrcPolicy::Require, true),
        (CrcPolicy::Require, CrcPolicy::Require, true),
    ] {
        let (used, seen) = connection(here, there);
        assert_eq!(used, want);
        assert_eq!(seen, without);
    }
}
