// SPDX-License-Identifier: GPL-2.0

//! A completion queue with several producers and a process as consumer.

// A counter overflow in a test should panic.
#![allow(clippy::arithmetic_side_effects)]

use super::{control_word, UserCq};
use crate::{
    abi,
    queue::{
        completion::{Arm, Completion},
        ring::Ring,
        wr::{WcOpcode, WcStatus, WrId},
    },
};
use kernel::{
    prelude::*,
    sync::{
        atomic::{ordering, Atomic},
        barrier, Arc,
    },
};
use kernel_ext::kunit::{wait_until, yield_cpu, Workers};

fn queue(len: u32) -> Result<Arc<UserCq>> {
    Arc::pin_init(UserCq::of(Ring::new(len, 1)?), GFP_KERNEL)
}

fn completion(id: u64) -> Completion {
    Completion {
        id: WrId::Process(id),
        opcode: WcOpcode::Send,
        status: WcStatus::Success,
        bytes: 0,
        invalidated: None,
        qp: 1,
    }
}

/// Acts as the process: consumes completion `number`, if it is there, and returns its `wr_id`.
fn take(queue: &UserCq, number: u32) -> Option<u64> {
    let [id, ..] = queue.ring.copy(number)?;

    queue.ring.release(number);
    Some(id)
}

/// Counts of the producers' results.
struct Tally {
    added: Atomic<u32>,
    lost: Atomic<u32>,
    errors: Atomic<u32>,
    events: Atomic<u32>,
}

impl Tally {
    fn new() -> Result<Arc<Self>> {
        let tally = Self {
            added: Atomic::new(0),
            lost: Atomic::new(0),
            errors: Atomic::new(0),
            events: Atomic::new(0),
        };
        Ok(Arc::new(tally, GFP_KERNEL)?)
    }

    fn add(&self, queue: &UserCq, id: u64) {
        let pending = queue.add(&completion(id), false, |_| ());

        self.events.fetch_add(pending.event.into(), ordering::Full);
        self.errors
            .fetch_add(pending.overflow.into(), ordering::Relaxed);
        self.lost.fetch_add(pending.lost.into(), ordering::Relaxed);
        self.added
            .fetch_add((!pending.lost).into(), ordering::Relaxed);
    }
}

#[kunit_tests(riw_cq)]
mod tests {
    use super::*;

    const LEN: u32 = 16;
    const ROUNDS: u32 = 30_000;

    /// The process arms the queue, checks it again, and sleeps until the event. If it neither sees
    /// the completion nor gets the event, the wakeup is lost.
    #[test]
    fn no_wakeup_is_lost() -> Result {
        let queue = queue(LEN)?;
        let tally = Tally::new()?;
        let came = Arc::new(Atomic::new(0u32), GFP_KERNEL)?;
        let workers = Workers::new(1)?;
        let mut hung = false;
        let (mut slept, mut wrong) = (0u32, 0u32);

        let (producer, events, until) = (queue.clone(), tally.clone(), came.clone());
        workers.add(move || {
            for number in 0..ROUNDS {
                // One at a time: a later completion must not wake a process that missed this one.
                if !wait_until(|| until.load(ordering::Relaxed) == number) {
                    return;
                }
                events.add(&producer, number.into());
            }
        })?;
        for number in 0..ROUNDS {
            while !hung {
                let before = tally.events.load(ordering::Acquire);
                // Arm as the process does and by the verb, in turn.
                if number % 2 == 0 {
                    if let Some(control) = queue.ring.extra(0) {
                        control.store(control_word(abi::NOTIFY_NEXT), ordering::Relaxed);
                    }
                    barrier::smp_mb(ordering::Full);
                } else {
                    queue.arm(Arm::Next);
                }
                if let Some(id) = take(&queue, number) {
                    wrong += u32::from(id != number.into());
                    break;
                }
                // The event may belong to the previous completion, which was consumed without it.
                hung = !wait_until(|| tally.events.load(ordering::Acquire) != before);
                slept += 1;
            }
            if hung {
                break;
            }
            came.store(number + 1, ordering::Relaxed);
        }
        drop(workers);
        assert!(!hung);
        // Otherwise the test has tested nothing.
        assert!(slept > 0);
        assert_eq!(wrong, 0);
        assert_eq!(came.load(ordering::Relaxed), ROUNDS);
        assert_eq!(tally.lost.load(ordering::Relaxed), 0);
        Ok(())
    }

    /// If several producers add to a full queue, exactly one reports the error. No CQE in the ring
    /// is lost.
    #[test]
    fn an_overflow_is_reported_once() -> Result {
        for _ in 0..100 {
            let queue = queue(LEN)?;
            let tally = Tally::new()?;
            let workers = Workers::new(2)?;
            let mut seen = 0u32;
            let mut next = [0, u64::from(LEN)];
            let mut disorder = false;

            for first in next {
                let (queue, tally) = (queue.clone(), tally.clone());
                workers.add(move || {
                    for at in 0..u64::from(LEN) {
                        tally.add(&queue, first + at);
                    }
                })?;
            }
            drop(workers);
            while let Some(id) = take(&queue, seen) {
                let [a, b] = &mut next;
                let next = if id < u64::from(LEN) { a } else { b };

                disorder |= id != *next;
                *next += 1;
                seen += 1;
            }
            tally.add(&queue, 0);

            assert_eq!(seen, LEN);
            assert_eq!(tally.added.load(ordering::Relaxed), LEN);
            // After an overflow the queue takes no more CQEs.
            assert_eq!(tally.lost.load(ordering::Relaxed), LEN + 1);
            assert_eq!(tally.errors.load(ordering::Relaxed), 1);
            // The CQEs of each producer are in order, beginning with its first.
            assert!(!disorder);
        }
        Ok(())
    }

    /// A process that keeps changing flags and the control word blocks no producer.
    #[test]
    fn a_hostile_process_blocks_no_producer() -> Result {
        let queue = queue(LEN)?;
        let tally = Tally::new()?;
        let workers = Workers::new(1)?;

        let process = queue.clone();
        let mut number = 0u32;
        workers.add_loop(move || {
            number = number.wrapping_add(1);
            process.ring.release(number);
            if let Some(control) = process.ring.extra(0) {
                control.store(control_word(number % 4), ordering::Relaxed);
            }
        })?;
        let events = wait_until(|| {
            tally.add(&queue, 7);
            tally.events.load(ordering::Relaxed) > 1000 || tally.errors.load(ordering::Relaxed) != 0
        });
        for number in 0..ROUNDS {
            tally.add(&queue, 7);
            if number % 1000 == 0 {
                yield_cpu();
            }
        }
        drop(workers);
        assert!(events);
        let added = tally.added.load(ordering::Relaxed);
        let lost = tally.lost.load(ordering::Relaxed);
        assert!(added + lost > ROUNDS);
        assert_eq!(tally.errors.load(ordering::Relaxed), u32::from(lost != 0));
        Ok(())
    }
}
