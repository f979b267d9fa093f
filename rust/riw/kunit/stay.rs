// SPDX-License-Identifier: GPL-2.0

//! The places for workers that stay.

// A counter overflow in a test should panic.
#![allow(clippy::arithmetic_side_effects)]

use super::StayPlaces;
use crate::stream::handover::REFUSALS_MAX;
use kernel::prelude::*;

/// Returns how many calls are refused in a row.
fn refused(places: &StayPlaces) -> u32 {
    let mut refused = 0;

    while places.backoff.refuses() {
        refused += 1;
    }
    refused
}

#[kunit_tests(riw_stay)]
mod tests {
    use super::*;

    /// Workers that gain nothing have more and more calls refused, up to a limit.
    #[test]
    fn losses_refuse_calls() {
        let places = StayPlaces::new();

        assert_eq!(refused(&places), 0);
        for round in 0..12 {
            places.backoff.settle(false);
            assert_eq!(refused(&places), (1 << round).min(REFUSALS_MAX));
        }
    }

    /// A gain ends that.
    #[test]
    fn a_gain_admits_calls() {
        let places = StayPlaces::new();

        for _ in 0..5 {
            places.backoff.settle(false);
        }
        places.backoff.settle(true);
        assert_eq!(refused(&places), 0);
        places.backoff.settle(false);
        assert_eq!(refused(&places), 1);
    }
}
