// SPDX-License-Identifier: GPL-2.0

//! When a run is handed over.

// A counter overflow in a test should panic.
#![allow(clippy::arithmetic_side_effects)]

use super::{was_idle, Handover, Rate, Visit, BYTES_MAX, REFUSALS_MAX, ROUND, WORTH};
use kernel::prelude::*;
use kernel_ext::{cpu::Cpu, time::Ktime};

/// Returns how many rounds pass until a call is due.
fn rounds_until_due(handover: &Handover) -> u32 {
    let mut rounds = 0;

    while handover.backoff.refuses() {
        rounds += 1;
    }
    rounds
}

#[kunit_tests(riw_handover)]
mod tests {
    use super::*;

    /// A CPU is idle that has done nothing else for most of a time.
    #[test]
    fn an_idle_cpu_is_known() {
        assert!(was_idle(1000, 1000));
        assert!(was_idle(1000, 800));
        assert!(!was_idle(1000, 799));
        assert!(!was_idle(1000, 0));
        // A tick was counted as idle.
        assert!(!was_idle(1000, 4000));
        // The clock of the other CPU went back.
        assert!(!was_idle(1000, -5));
    }

    /// A gain is a quarter more WRs in the same time.
    #[test]
    fn a_gain_is_clear() {
        let rate = |wrs, nanos| Rate { wrs, nanos };
        let before = rate(100, 1_000_000);

        assert!(rate(125, 1_000_000).is_gain(before));
        assert!(!rate(124, 1_000_000).is_gain(before));
        assert!(rate(1250, 10_000_000).is_gain(before));
        // Too few to know.
        assert!(!rate(WORTH - 1, 1).is_gain(before));
        assert!(!rate(u32::MAX, i64::MAX).is_gain(rate(u32::MAX, 1)));
    }

    /// Doorbells are close if there are 2500 in a second. Four queue pairs with messages of 64 KiB
    /// have more each; a program that posts a message each millisecond needs no worker.
    #[test]
    fn a_round_is_dense() {
        let round = |nanos| Rate { wrs: ROUND, nanos };

        assert!(round(i64::from(ROUND) * 400_000).is_dense());
        assert!(!round(i64::from(ROUND) * 400_000 + 1).is_dense());
    }

    /// An epoch ends when there are enough WRs to compare, or have not come in its longest time.
    #[test]
    fn an_epoch_has_enough_wrs() {
        let is_epoch = |wrs, nanos| Rate { wrs, nanos }.is_epoch();

        assert!(!is_epoch(u32::MAX, 4_999_999));
        assert!(is_epoch(WORTH, 5_000_000));
        assert!(!is_epoch(WORTH - 1, 19_999_999));
        assert!(is_epoch(0, 20_000_000));
    }

    /// A visit that gains nothing delays the next call more and more, up to a limit.
    #[test]
    fn losses_delay() {
        let handover = Handover::new();

        assert_eq!(rounds_until_due(&handover), 0);
        for round in 0..12 {
            handover.backoff.settle(false);
            assert_eq!(rounds_until_due(&handover), (1 << round).min(REFUSALS_MAX));
        }
    }

    /// A worker that has not got the right to transmit has gained nothing.
    #[test]
    fn a_visit_that_has_not_begun_is_a_loss() {
        let before = Rate {
            wrs: 1,
            nanos: i64::MAX,
        };
        let mut visit = Visit::to(Cpu::this(), true, before);

        assert!(!visit.is_worth(u32::MAX));
        visit.begin(0);
        assert!(visit.is_worth(u32::MAX));
    }

    /// A gain ends that.
    #[test]
    fn a_gain_forgives() {
        let handover = Handover::new();

        for _ in 0..5 {
            handover.backoff.settle(false);
        }
        handover.backoff.settle(true);
        assert_eq!(rounds_until_due(&handover), 0);
        handover.backoff.settle(false);
        assert_eq!(rounds_until_due(&handover), 1);
    }

    /// A process that does not wait for answers calls a worker, unless its messages are long or
    /// there is no place. (With one CPU there is no worker.)
    #[test]
    fn a_stream_calls_a_worker() {
        let calls = |waited, bytes, place| {
            let mut handover = Handover::new();
            let mut doorbell =
                |next| handover.doorbell(Ktime::now(), next, bytes, waited, |_, _| place);

            (0..64 * ROUND).any(|next| doorbell(next).is_some())
        };

        assert!(!calls(true, 64, true));
        assert!(!calls(false, BYTES_MAX + 1, true));
        assert!(!calls(false, 64, false));
        assert_eq!(calls(false, 64, true), Cpu::other(None).is_some());
    }
}
