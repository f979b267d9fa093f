// SPDX-License-Identifier: GPL-2.0

//! How many FPDUs a run receives.

// A counter overflow in a test should panic.
#![allow(clippy::arithmetic_side_effects)]

use super::RunBudget;
use iwarp::mpa::fpdu::FPDU_MAX;
use kernel::prelude::*;

/// Octets of the shortest FPDU: length, header of a tagged segment, CRC.
const FPDU_MIN: usize = 2 + 14 + 4;
/// Octets of the FPDU of a Send of 64 bytes.
const FPDU_SEND: usize = 2 + 18 + 64 + 4;
/// Octets with which TCP calls back, at most (`GRO_LEGACY_MAX_SIZE`).
const SEGMENTS_MAX: usize = 65536;

/// Returns how many FPDUs of `octets` a run receives, at most 100,000.
fn run_of(octets: usize) -> usize {
    let mut budget = RunBudget::new();
    let mut count = 0;

    while !budget.is_spent() && count < 100_000 {
        budget.take(octets);
        count += 1;
    }
    count
}

#[kunit_tests(riw_budget)]
mod tests {
    use super::*;

    /// However short FPDUs are, a run receives no more than 1000.
    #[test]
    fn a_run_has_a_maximum_of_fpdus() {
        assert!(run_of(FPDU_MIN) <= 1000);
        assert!(run_of(0) <= 1024);
    }

    /// However long FPDUs are, a run receives no more than 512 KiB, and one of them in any case.
    #[test]
    fn a_run_has_a_maximum_of_octets() {
        assert!((run_of(FPDU_MAX) - 1) * FPDU_MAX < 512 * 1024);
        assert_eq!(run_of(usize::MAX), 1);
    }

    /// TCP's usual callbacks are one run each.
    #[test]
    fn a_callback_of_tcp_is_one_run() {
        assert!(run_of(FPDU_SEND) * FPDU_SEND >= SEGMENTS_MAX);
        assert!(run_of(1460) * 1460 >= SEGMENTS_MAX);
        assert!(run_of(SEGMENTS_MAX) * SEGMENTS_MAX >= 4 * SEGMENTS_MAX);
    }
}
