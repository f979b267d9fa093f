// SPDX-License-Identifier: GPL-2.0

//! The calls of a kernel user's completion handler, which several producers request.

// A counter overflow in a test should panic.
#![allow(clippy::arithmetic_side_effects)]

use super::KernelCq;
use crate::queue::completion::Arm;
use kernel::{
    prelude::*,
    sync::{
        atomic::{ordering, Atomic},
        Arc,
    },
};
use kernel_ext::kunit::{wait_until, Workers};

const ROUNDS: u64 = 20_000;

/// A queue, and a handler that notes how it is called.
#[pin_data]
struct Consumer {
    #[pin]
    queue: KernelCq,
    requested: Atomic<u64>,
    /// Requests that a call of the handler has seen.
    seen: Atomic<u64>,
    running: Atomic<bool>,
    overlaps: Atomic<u32>,
    forgotten: Atomic<u32>,
}

impl Consumer {
    fn new() -> Result<Arc<Self>> {
        let queue = KernelCq::new(4)?;

        Arc::pin_init(
            pin_init!(Self {
                queue <- queue,
                requested: Atomic::new(0),
                seen: Atomic::new(0),
                running: Atomic::new(false),
                overlaps: Atomic::new(0),
                forgotten: Atomic::new(0),
            }),
            GFP_KERNEL,
        )
    }

    /// Requests a call of the handler, as a producer does.
    fn request(&self) {
        self.requested.fetch_add(1, ordering::Full);
        if !self.queue.must_call() {
            return;
        }
        loop {
            self.handle();
            if self.queue.called() {
                return;
            }
        }
    }

    fn handle(&self) {
        if self.running.xchg(true, ordering::Full) {
            self.overlaps.fetch_add(1, ordering::Relaxed);
        }
        self.seen
            .store(self.requested.load(ordering::Relaxed), ordering::Relaxed);
        self.running.store(false, ordering::Release);
    }
}

#[kunit_tests(riw_kernel_cq)]
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
    fn requests_during_a_call_cause_one_more() -> Result {
        let Consumer { queue, .. } = &*Consumer::new()?;

        assert!(queue.must_call());
        assert!(!queue.must_call());
        assert!(!queue.must_call());
        assert!(!queue.called());
        assert!(queue.called());
        assert!(queue.must_call());
        assert!(queue.called());
        Ok(())
    }

    /// A request for any completion stays in force when the consumer then requests solicited ones.
    #[test]
    fn the_wider_request_stays_in_force() -> Result {
        let Consumer { queue, .. } = &*Consumer::new()?;

        assert!(queue.fill_level().armed.is_none());
        assert!(!queue.arm(Arm::Solicited));
        assert!(queue.fill_level().armed == Some(Arm::Solicited));
        assert!(!queue.arm(Arm::Next));
        assert!(!queue.arm(Arm::Solicited));
        assert!(queue.fill_level().armed == Some(Arm::Next));
        Ok(())
    }
}
