// SPDX-License-Identifier: GPL-2.0

//! The calls of a kernel user's completion handler, which several producers request.

use super::call_in_turn;
use kernel::{
    prelude::*,
    sync::{
        atomic::{ordering, Atomic},
        Arc,
    },
};
use kernel_ext::{
    kunit::{wait_until, Workers},
    runner::Runner,
};

const ROUNDS: u64 = 20_000;

/// A handler that notes how it is called.
struct Consumer {
    calls: Runner,
    requested: Atomic<u64>,
    /// Requests that a call of the handler has seen.
    seen: Atomic<u64>,
    running: Atomic<bool>,
    overlaps: Atomic<u32>,
    forgotten: Atomic<u32>,
}

impl Consumer {
    fn new() -> Result<Arc<Self>> {
        let this = Self {
            calls: Runner::new(),
            requested: Atomic::new(0),
            seen: Atomic::new(0),
            running: Atomic::new(false),
            overlaps: Atomic::new(0),
            forgotten: Atomic::new(0),
        };

        Ok(Arc::new(this, GFP_KERNEL)?)
    }

    /// Requests a call of the handler, as a producer does.
    fn request(&self) {
        self.requested.fetch_add(1, ordering::Relaxed);
        call_in_turn(&self.calls, || self.handle());
    }

    fn handle(&self) {
        if self.running.xchg(true, ordering::Relaxed) {
            self.overlaps.fetch_add(1, ordering::Relaxed);
        }
        self.seen
            .store(self.requested.load(ordering::Relaxed), ordering::Relaxed);
        self.running.store(false, ordering::Relaxed);
    }
}

#[kunit_tests(rdma_cq)]
mod tests {
    use super::*;

    /// Two producers request calls, then wait until a call has seen both requests. A lost request
    /// shows, because no later one covers it. Calls do not overlap.
    #[test]
    fn the_handler_runs_once_at_a_time_and_no_request_is_lost() -> Result {
        let consumer = Consumer::new()?;
        let workers = Workers::new(2)?;

        for _ in 0..2 {
            let consumer = consumer.clone();
            workers.add(move || {
                for round in 1..=ROUNDS {
                    consumer.request();
                    if !wait_until(|| consumer.seen.load(ordering::Relaxed) >= 2 * round) {
                        consumer.forgotten.fetch_add(1, ordering::Relaxed);
                        return;
                    }
                }
            })?;
        }
        drop(workers);
        assert_eq!(consumer.forgotten.load(ordering::Relaxed), 0);
        assert_eq!(consumer.overlaps.load(ordering::Relaxed), 0);
        assert_eq!(consumer.seen.load(ordering::Relaxed), 2 * ROUNDS);
        Ok(())
    }

    /// Requests during a call cause one more call, by the same caller.
    #[test]
    fn requests_during_a_call_cause_one_more() {
        let runner = Runner::new();
        let calls = Atomic::new(0u32);
        let request = || {
            call_in_turn(&runner, || {
                if calls.fetch_add(1, ordering::Relaxed) == 0 {
                    for _ in 0..2 {
                        call_in_turn(&runner, || {
                            calls.fetch_add(100, ordering::Relaxed);
                        });
                    }
                }
            })
        };

        request();
        assert_eq!(calls.load(ordering::Relaxed), 2);
        request();
        assert_eq!(calls.load(ordering::Relaxed), 3);
    }
}
