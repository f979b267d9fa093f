// SPDX-License-Identifier: GPL-2.0

//! The negotiation by control words, whatever lower layer carries them (RFC 6581 §9). The startup
//! tests have its rules.

use iwarp::negotiation::*;
use iwarp::Mpa;

#[test]
fn a_disagreement_has_its_error() {
    let proposal = Proposal::new(3, 4, 5, Some(RtrTypes::SEND));
    for (ord, rtr, error) in [
        (6, RtrTypes::SEND, Mpa::InsufficientIrd),
        (6, RtrTypes::WRITE, Mpa::InsufficientIrd),
        (5, RtrTypes::WRITE, Mpa::NoRtr),
    ] {
        let depths = Depths { ird: 1, ord };
        let rtr = Some(rtr);
        let why = proposal.conclude(Some(Words { depths, rtr }));
        assert_eq!(why.map_err(Disagreement::error), Err(error));
    }
    // Without control words the peer-to-peer model is not possible.
    assert_eq!(proposal.conclude(None), Err(Disagreement::NoRtr));
}

#[test]
fn both_sides_agree() {
    let proposal = Proposal::new(3, 9, 7, Some(RtrTypes::ALL));
    let request = Request::new(Some(proposal.words()), RtrTypes::SEND);
    assert!(request.enhanced());
    let (answer, theirs) = request.accept(5, 6);
    let ours = proposal.conclude(answer).unwrap();
    assert_eq!((ours.ird, ours.ord, ours.rtr), (3, 5, Some(Rtr::Send)));
    assert_eq!(
        (theirs.ird, theirs.ord, theirs.rtr),
        (5, 3, Some(Rtr::Send))
    );
}

#[test]
fn without_control_words_nothing_is_negotiated() {
    let proposal = Proposal::new(3, 4, 0, None);
    let request = Request::new(None, RtrTypes::ALL);
    assert!(!request.enhanced());
    assert_eq!(request.reject(), None);
    let (answer, theirs) = request.accept(5, 6);
    assert_eq!(answer, None);
    let ours = proposal.conclude(None).unwrap();
    assert_eq!((ours.ird, ours.ord), (3, 4));
    assert_eq!((theirs.ird, theirs.ord), (5, 6));
    assert_eq!(
        (ours.peer_ird, theirs.peer_ord, theirs.rtr),
        (None, None, None)
    );
}
