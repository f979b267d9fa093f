// SPDX-License-Identifier: GPL-2.0

//! The right to do some work, with two threads that race for it.

// A counter overflow in a test should panic.
#![allow(clippy::arithmetic_side_effects)]

use super::{wait_until, Workers};
use crate::runner::Runner;
use kernel::{
    prelude::*,
    sync::{
        atomic::{ordering, Atomic},
        Arc,
    },
};

/// Some work.
struct Work {
    runner: Runner,
    posted: Atomic<u64>,
    /// Posted requests that a run has seen.
    done: Atomic<u64>,
    running: Atomic<bool>,
    overlaps: Atomic<u32>,
    forgotten: Atomic<u32>,
}

impl Work {
    /// Posts a request. Runs if no run is active.
    fn post(&self) {
        self.posted.fetch_add(1, ordering::Relaxed);
        if self.runner.want() {
            self.run();
        }
    }

    fn run(&self) {
        loop {
            if self.running.xchg(true, ordering::Relaxed) {
                self.overlaps.fetch_add(1, ordering::Relaxed);
            }
            let posted = self.posted.load(ordering::Relaxed);
            // Vary the length of a run.
            for _ in 0..posted % 32 {
                core::hint::spin_loop();
            }
            self.done.store(posted, ordering::Relaxed);
            self.running.store(false, ordering::Relaxed);
            if self.runner.done() {
                return;
            }
        }
    }
}

#[kunit_tests(kernel_ext_runner)]
mod tests {
    use super::*;

    const ROUNDS: u64 = 20_000;

    /// Two threads post, then wait until both requests are done. A lost wakeup shows, because no
    /// later request covers it. Runs do not overlap.
    #[test]
    fn no_wakeup_is_lost() -> Result {
        let work = Work {
            runner: Runner::new(),
            posted: Atomic::new(0),
            done: Atomic::new(0),
            running: Atomic::new(false),
            overlaps: Atomic::new(0),
            forgotten: Atomic::new(0),
        };
        let work = Arc::new(work, GFP_KERNEL)?;
        let workers = Workers::new(2)?;

        for _ in 0..2 {
            let work = work.clone();
            workers.add(move || {
                for round in 1..=ROUNDS {
                    work.post();
                    if !wait_until(|| work.done.load(ordering::Relaxed) >= 2 * round) {
                        work.forgotten.fetch_add(1, ordering::Relaxed);
                        return;
                    }
                }
            })?;
        }
        drop(workers);
        assert_eq!(work.forgotten.load(ordering::Relaxed), 0);
        assert_eq!(work.overlaps.load(ordering::Relaxed), 0);
        assert_eq!(work.done.load(ordering::Relaxed), 2 * ROUNDS);
        Ok(())
    }

    /// Requests during a run cause one more pass of that run.
    #[test]
    fn requests_during_a_run_cause_one_pass() {
        let runner = Runner::new();

        assert!(runner.want());
        assert!(!runner.want());
        assert!(!runner.want());
        assert!(!runner.done());
        assert!(runner.done());
        assert!(runner.want());
        assert!(runner.done());
    }
}
