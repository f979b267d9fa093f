// SPDX-License-Identifier: GPL-2.0

//! Shared code of the startup tests.

use iwarp::startup::*;

pub const REQ: &[u8; 16] = b"MPA ID Req Frame";
pub const REP: &[u8; 16] = b"MPA ID Rep Frame";

/// Builds a frame.
pub fn raw(key: &[u8; 16], flags: u8, revision: u8, private: &[u8]) -> Vec<u8> {
    let mut out = key.to_vec();
    out.extend_from_slice(&[flags, revision]);
    out.extend_from_slice(&u16::try_from(private.len()).unwrap().to_be_bytes());
    out.extend_from_slice(private);
    out
}

/// Returns the control words followed by private data.
pub fn words(first: u16, second: u16, private: &[u8]) -> Vec<u8> {
    let mut out = first.to_be_bytes().to_vec();
    out.extend_from_slice(&second.to_be_bytes());
    out.extend_from_slice(private);
    out
}

/// Reads a frame, whole and octet by octet.
pub fn read(kind: Kind, frame: &[u8]) -> Result<Reader, StartupError> {
    let mut slow = Reader::new(kind);
    let mut outcome = Ok(());
    for (i, byte) in frame.iter().enumerate() {
        assert!(slow.wanted() >= 1 && slow.wanted() <= frame.len() - i);
        assert_eq!(slow.frame(), None);
        assert_eq!(slow.private_data(), b"");
        match slow.push(&[*byte]) {
            Ok(complete) => assert_eq!(complete, i + 1 == frame.len()),
            Err(e) => {
                outcome = Err(e);
                break;
            }
        }
    }
    let mut fast = Reader::new(kind);
    // Octets behind the frame are ignored.
    let mut more = frame.to_vec();
    more.extend_from_slice(b"the first FPDU");
    let result = fast.push(&more);
    assert_eq!(result.map(|complete| assert!(complete)), outcome);
    outcome?;
    assert_eq!(fast.wanted(), 0);
    assert_eq!(fast.frame(), slow.frame());
    assert_eq!(fast.private_data(), slow.private_data());
    Ok(fast)
}

/// Returns the octets of a frame to send.
pub fn octets(frame: &OutFrame<'_>) -> Vec<u8> {
    frame.parts().concat()
}

pub fn request(frame: &[u8]) -> Reader {
    read(Kind::Request, frame).unwrap()
}

pub fn reply(frame: &[u8]) -> Reader {
    read(Kind::Reply, frame).unwrap()
}

pub fn initiator(policy: &Policy, ird: u32, ord: u32) -> Initiator {
    Initiator::new(policy, ird, ord).unwrap()
}

pub fn established(outcome: Result<Outcome, StartupError>) -> Parameters {
    match outcome {
        Ok(Outcome::Established(p)) => p,
        other => panic!("{other:?}"),
    }
}

pub fn responder(policy: &Policy, frame: &[u8]) -> Responder {
    Responder::request(&request(frame), policy).unwrap()
}

pub fn refused(policy: &Policy, frame: &[u8]) -> (StartupError, Option<Vec<u8>>) {
    let refusal = Responder::request(&request(frame), policy).unwrap_err();
    (refusal.error, refusal.reply.map(|r| octets(&r)))
}

pub const V1: Policy = Policy {
    revision: 1,
    ..Policy::DEFAULT
};

pub const P2P: Policy = Policy {
    peer_to_peer: true,
    ..Policy::DEFAULT
};
