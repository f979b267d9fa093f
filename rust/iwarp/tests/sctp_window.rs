// SPDX-License-Identifier: GPL-2.0

//! The order of chunks: which are next, held, or refused (RFC 5043 §6.1, §10).

use iwarp::sctp::{Arrival, Window};
use iwarp::Sctp;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Moves a window past `n` chunks.
fn advanced<const WORDS: usize>(n: u32, budget: u32) -> Window<WORDS> {
    let mut window = Window::new(budget);
    for ssn in 0..n {
        assert_eq!(window.arrive(ssn as u16, 1), Ok(Arrival::Next));
    }
    window
}

#[test]
fn chunks_in_order_pass_and_take_no_memory() {
    // Twice round the numbers.
    let window = advanced::<1>(0x2_0005, 0);
    assert!(!window.is_holding());
    assert_eq!(window.due(), None);
}

#[test]
fn a_chunk_ahead_waits_for_its_turn() {
    for begin in [0_u32, 60, 0xfffd, 0x1_0000] {
        let mut window = advanced::<1>(begin, 100);
        let ssn = |n: u32| (begin + n) as u16;
        assert_eq!(window.arrive(ssn(3), 10), Ok(Arrival::Held));
        assert_eq!(window.arrive(ssn(1), 10), Ok(Arrival::Held));
        assert!(window.is_holding());
        assert_eq!(window.due(), None);
        assert_eq!(window.next(), ssn(0));
        assert_eq!(window.arrive(ssn(0), 10), Ok(Arrival::Next));
        assert_eq!(window.due(), Some(ssn(1)));
        assert_eq!(window.next(), ssn(1));
        window.take(10);
        assert_eq!(window.due(), None);
        assert_eq!(window.arrive(ssn(2), 10), Ok(Arrival::Next));
        assert_eq!(window.due(), Some(ssn(3)));
        window.take(10);
        assert_eq!(window.due(), None);
        assert!(!window.is_holding());
        assert_eq!(window.arrive(ssn(4), 10), Ok(Arrival::Next));
    }
}

#[test]
fn a_number_comes_once() {
    let mut window = advanced::<1>(5, 100);
    for ssn in [4, 0, 0xffff, 0x8005] {
        assert_eq!(window.arrive(ssn, 1), Err(Sctp::Duplicate), "{ssn}");
    }
    assert_eq!(window.arrive(7, 1), Ok(Arrival::Held));
    assert_eq!(window.arrive(7, 1), Err(Sctp::Duplicate));
    assert_eq!(window.arrive(6, 1), Ok(Arrival::Held));
    assert_eq!(window.arrive(5, 1), Ok(Arrival::Next));
    // One that is due, too.
    assert_eq!(window.due(), Some(6));
    assert_eq!(window.arrive(6, 1), Err(Sctp::Duplicate));
}

#[test]
fn a_window_has_an_end() {
    let mut window = advanced::<1>(0xffff, 100);
    assert_eq!(
        window.arrive(0xffff_u16.wrapping_add(64), 1),
        Err(Sctp::TooFar)
    );
    assert_eq!(
        window.arrive(0xffff_u16.wrapping_add(63), 1),
        Ok(Arrival::Held)
    );
    // The largest takes all that can be in flight.
    let mut window = Window::<512>::new(100);
    assert_eq!(window.arrive(0x7fff, 1), Ok(Arrival::Held));
    assert_eq!(window.arrive(0x8000, 1), Err(Sctp::Duplicate));
    // A smaller one refuses before it holds anything.
    let mut window = Window::<64>::new(100);
    for ssn in [4096, 0x7fff] {
        assert_eq!(window.arrive(ssn, 1), Err(Sctp::TooFar));
    }
    assert!(!window.is_holding());
    assert_eq!(window.arrive(4095, 1), Ok(Arrival::Held));
}

#[test]
fn the_memory_of_held_chunks_is_bounded() {
    let mut window = Window::<1>::new(100);
    assert_eq!(window.arrive(1, 60), Ok(Arrival::Held));
    assert_eq!(window.arrive(2, 41), Err(Sctp::TooManyHeld));
    assert_eq!(window.arrive(3, u32::MAX), Err(Sctp::TooManyHeld));
    // A chunk that was refused is not held.
    assert_eq!(window.arrive(2, 40), Ok(Arrival::Held));
    assert_eq!(window.arrive(3, 1), Err(Sctp::TooManyHeld));
    // The next one is not held, whatever its length.
    assert_eq!(window.arrive(0, u32::MAX), Ok(Arrival::Next));
    assert_eq!(window.due(), Some(1));
    window.take(60);
    assert_eq!(window.arrive(3, 60), Ok(Arrival::Held));
    assert_eq!(window.arrive(4, 1), Err(Sctp::TooManyHeld));
    window.set_budget(101);
    assert_eq!(window.arrive(4, 1), Ok(Arrival::Held));
    // With no memory, only the next chunk passes.
    let mut window = Window::<1>::new(0);
    assert_eq!(window.arrive(1, 1), Err(Sctp::TooManyHeld));
    assert_eq!(window.arrive(0, 1), Ok(Arrival::Next));
}

#[test]
fn a_reset_window_begins_again() {
    let mut window = advanced::<1>(5, 100);
    assert_eq!(window.arrive(7, 60), Ok(Arrival::Held));
    window.reset();
    assert!(!window.is_holding());
    assert_eq!(window.arrive(7, 1), Err(Sctp::TooManyHeld));
    window.set_budget(100);
    assert_eq!(window.arrive(7, 100), Ok(Arrival::Held));
    assert_eq!(window.arrive(0, 1), Ok(Arrival::Next));
}

#[test]
fn nothing_is_taken_that_is_not_due() {
    let mut window = Window::<1>::new(100);
    window.take(1);
    assert_eq!(window.arrive(2, 50), Ok(Arrival::Held));
    window.take(50);
    assert!(window.is_holding());
    assert_eq!(window.arrive(3, 51), Err(Sctp::TooManyHeld));
    assert_eq!(window.arrive(0, 1), Ok(Arrival::Next));
}

/// The embedder has placed the payload of a held chunk, and keeps the rest.
#[test]
fn a_held_chunk_may_shrink() {
    let mut window = advanced::<1>(0, 100);
    assert_eq!(window.arrive(2, 90), Ok(Arrival::Held));
    window.shrink(70);
    assert_eq!(window.arrive(1, 81), Err(Sctp::TooManyHeld));
    assert_eq!(window.arrive(1, 80), Ok(Arrival::Held));
    assert_eq!(window.arrive(0, 0), Ok(Arrival::Next));
    window.take(80);
    window.take(20);
    // Nothing is left.
    assert_eq!(window.arrive(4, 100), Ok(Arrival::Held));
    assert_eq!(window.arrive(5, 1), Err(Sctp::TooManyHeld));
    // More than there was is all of it.
    window.shrink(101);
    assert_eq!(window.arrive(5, 100), Ok(Arrival::Held));
}

proptest! {
    /// A model that remembers all numbers agrees.
    #[test]
    fn a_model_agrees(
        begin in prop_oneof![0_u32..10, 0xfff0_u32..0x1_0010],
        arrivals in vec((prop_oneof![8 => -3_i64..20, 1 => 100_i64..140, 1 => any::<i64>()], 0_u32..30), 0..200),
        budget in 0_u32..200,
    ) {
        let mut window = advanced::<2>(begin, budget);
        let (mut next, mut held, mut octets) = (u64::from(begin), BTreeMap::new(), 0);
        for (skew, len) in arrivals {
            let ssn = (next as u16).wrapping_add(skew as u16);
            let ahead = u64::from(ssn.wrapping_sub(next as u16));
            let want = if ahead >= 0x8000 || held.contains_key(&(next + ahead)) {
                Err(Sctp::Duplicate)
            } else if ahead >= 128 {
                Err(Sctp::TooFar)
            } else if ahead == 0 {
                next += 1;
                Ok(Arrival::Next)
            } else if octets + len > budget {
                Err(Sctp::TooManyHeld)
            } else {
                held.insert(next + ahead, len);
                octets += len;
                Ok(Arrival::Held)
            };
            prop_assert_eq!(window.arrive(ssn, len), want);
            while let Some(len) = held.remove(&next) {
                prop_assert_eq!(window.due(), Some(next as u16));
                window.take(len);
                octets -= len;
                next += 1;
            }
            prop_assert_eq!(window.due(), None);
            prop_assert_eq!(window.is_holding(), !held.is_empty());
        }
    }
}
