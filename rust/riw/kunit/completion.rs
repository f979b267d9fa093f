// SPDX-License-Identifier: GPL-2.0

//! A completion queue with several producers and a process as consumer, with each ABI.

// A counter overflow in a test should panic.
#![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use super::UserCq;
use crate::{
    abi::{siw, Provider},
    queue::{
        completion::{Arm, Completion},
        counted::CountedRing,
        cq_ring::{siw_control, CqRing, SiwCqRing},
        wr::{WcOpcode, WcStatus, WrId},
    },
};
use kernel::{
    prelude::*,
    sync::{
        atomic::{ordering, Atomic},
        barrier, Arc,
    },
    time::{Delta, Instant, Monotonic},
};
use kernel_ext::kunit::{wait_until, yield_cpu, Workers};
use riw_abi::cqe::Cqe;

const PROVIDERS: [Provider; 2] = [Provider::Siw, Provider::Own];

fn queue(provider: Provider, len: u32) -> Result<Arc<UserCq>> {
    let ring = match provider {
        Provider::Siw => CqRing::Siw(SiwCqRing::new(len, 1)?),
        Provider::Own => CqRing::Own(CountedRing::new(len, Cqe::STRIDE)?),
    };

    let ring = Arc::new(ring, GFP_KERNEL)?;

    Arc::pin_init(UserCq::of(provider, false, ring), GFP_KERNEL)
}

/// Returns the ring, as the process has it.
fn ring(queue: &UserCq) -> Arc<CqRing> {
    queue.producer.lock().ring.clone()
}

fn completion(id: u64) -> Completion {
    Completion {
        id: WrId::Process(id),
        opcode: WcOpcode::Send,
        status: WcStatus::Success,
        bytes: 0,
        invalidated: None,
        immediate: None,
        qp: 1,
    }
}

/// Acts as the process: consumes completion `number`, if it is there, and returns its `wr_id`.
fn take(ring: &CqRing, number: u32) -> Option<u64> {
    match ring {
        CqRing::Siw(ring) => {
            let [id, ..] = ring.copy(number)?;

            ring.release(number);
            Some(id)
        }
        CqRing::Own(ring) => {
            let mut words = [0; Cqe::WORDS];

            ring.entry(number).load(0, &mut words)?;
            if !Cqe::is_new(words[Cqe::CONTROL], number, ring.len()) {
                return None;
            }
            // The words may have been loaded in any order.
            barrier::smp_mb(ordering::Full);
            ring.entry(number).load(0, &mut words)?;
            ring.release(number);
            Some(Cqe::from_words(words).wr_id)
        }
    }
}

/// Acts as the process: arms the queue for any completion, without the barrier that has to follow.
fn arm_next(ring: &CqRing) {
    let word = match ring {
        CqRing::Siw(_) => siw_control(siw::NOTIFY_NEXT),
        CqRing::Own(_) => riw_abi::ring::ARM_NEXT,
    };

    if let Some(control) = ring.control() {
        control.store(word, ordering::Relaxed);
    }
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

    /// Time that `wakeups` may take. Each of its rounds costs a busy machine two time slices, and
    /// after a minute the kernel reports a hung task.
    const ENOUGH: Delta = Delta::from_secs(15);

    /// Rounds that a busy machine has done by then.
    const AT_LEAST: u32 = 100;

    /// The process arms the queue, checks it again, and sleeps until the event. If it neither sees
    /// the completion nor gets the event, the wakeup is lost.
    #[test]
    fn no_wakeup_is_lost() -> Result {
        PROVIDERS.into_iter().try_for_each(wakeups)
    }

    fn wakeups(provider: Provider) -> Result {
        let queue = queue(provider, LEN)?;
        let ring = ring(&queue);
        let tally = Tally::new()?;
        // The number of the completion that the process is ready for, or `ROUNDS`.
        let turn = Arc::new(Atomic::new(0u32), GFP_KERNEL)?;
        let workers = Workers::new(1)?;
        let mut hung = false;
        let (mut came, mut slept, mut wrong) = (0u32, 0u32, 0u32);

        let (producer, events, next) = (queue.clone(), tally.clone(), turn.clone());
        workers.add(move || {
            for number in 0..ROUNDS {
                // One at a time: a later completion must not wake a process that missed this one.
                wait_until(|| next.load(ordering::Relaxed) >= number);
                if next.load(ordering::Relaxed) != number {
                    return;
                }
                events.add(&producer, number.into());
            }
        })?;
        let begin = Instant::<Monotonic>::now();
        while came < ROUNDS && begin.elapsed() < ENOUGH {
            while !hung {
                let before = tally.events.load(ordering::Acquire);
                // Arm as the process does and by the verb, in turn.
                if came % 2 == 0 {
                    arm_next(&ring);
                    barrier::smp_mb(ordering::Full);
                } else {
                    queue.arm(Arm::Next);
                }
                if let Some(id) = take(&ring, came) {
                    wrong += u32::from(id != came.into());
                    break;
                }
                // The event may belong to the previous completion, which was consumed without it.
                hung = !wait_until(|| tally.events.load(ordering::Acquire) != before);
                slept += 1;
            }
            if hung {
                break;
            }
            came += 1;
            turn.store(came, ordering::Relaxed);
        }
        turn.store(ROUNDS, ordering::Relaxed);
        drop(workers);
        assert!(!hung);
        // Otherwise the test has tested nothing.
        assert!(slept > 0);
        assert!(came >= AT_LEAST);
        assert_eq!(wrong, 0);
        assert_eq!(tally.lost.load(ordering::Relaxed), 0);
        Ok(())
    }

    /// If several producers add to a full queue, exactly one reports the error. No CQE in the ring
    /// is lost.
    #[test]
    fn an_overflow_is_reported_once() -> Result {
        for round in 0..100 {
            let queue = queue(PROVIDERS[round % 2], LEN)?;
            let ring = ring(&queue);
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
            // One more than there can be: a ring that gives CQEs again fails.
            for _ in 0..=LEN {
                let Some(id) = take(&ring, seen) else {
                    break;
                };
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
        PROVIDERS.into_iter().try_for_each(hostile)
    }

    fn hostile(provider: Provider) -> Result {
        let queue = queue(provider, LEN)?;
        let tally = Tally::new()?;
        let workers = Workers::new(1)?;

        let process = ring(&queue);
        let mut number = 0u32;
        workers.add_loop(move || {
            number = number.wrapping_add(1);
            match &*process {
                CqRing::Siw(ring) => ring.release(number),
                // A count in the ring, or one that cannot be.
                CqRing::Own(ring) => ring.release(number.wrapping_mul(number)),
            }
            if let Some(control) = process.control() {
                control.store(siw_control(number % 4), ordering::Relaxed);
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

    fn own(len: u32) -> Result<Arc<CqRing>> {
        let ring = CqRing::Own(CountedRing::new(len, Cqe::STRIDE)?);

        Ok(Arc::new(ring, GFP_KERNEL)?)
    }

    fn add(queue: &UserCq, ids: core::ops::Range<u64>) {
        for id in ids {
            let _ = queue.add(&completion(id), false, |_| ());
        }
    }

    /// A ring of another size has the completions that the process has not taken, in order, and
    /// nothing else. It need not begin at the start of a lap.
    #[test]
    fn another_ring_has_the_same_completions() -> Result {
        for (taken, len) in [(0, 8), (3, 8), (13, 32), (30, 128), (40, 16)] {
            let queue = queue(Provider::Own, LEN)?;
            let old = ring(&queue);

            for number in 0..taken {
                add(&queue, number.into()..u64::from(number) + 1);
                assert_eq!(take(&old, number), Some(number.into()));
            }
            add(&queue, taken.into()..u64::from(taken) + 8);
            queue.replace(own(len)?)?;
            add(&queue, u64::from(taken) + 8..u64::from(taken) + 9);

            let new = ring(&queue);
            let room = len - 8;
            assert_eq!(queue.len(), len);
            for number in 0..8 + room.min(1) {
                assert_eq!(take(&new, number), Some(u64::from(taken + number)));
            }
            assert_eq!(take(&new, 8 + room.min(1)), None);
        }
        Ok(())
    }

    /// Completions that do not fit stay where they are.
    #[test]
    fn a_ring_that_is_too_small_is_refused() -> Result {
        let queue = queue(Provider::Own, LEN)?;
        let old = ring(&queue);

        add(&queue, 0..9);
        assert_eq!(queue.replace(own(8)?), Err(EINVAL));
        assert_eq!(queue.len(), LEN);
        for number in 0..9 {
            assert_eq!(take(&old, number), Some(number.into()));
        }
        Ok(())
    }

    /// The new ring is armed as the old one was.
    #[test]
    fn an_armed_queue_stays_armed() -> Result {
        let queue = queue(Provider::Own, LEN)?;

        queue.replace(own(2 * LEN)?)?;
        assert!(!queue.add(&completion(0), false, |_| ()).event);
        arm_next(&ring(&queue));
        queue.replace(own(LEN)?)?;
        assert!(queue.add(&completion(1), false, |_| ()).event);
        assert!(!queue.add(&completion(2), false, |_| ()).event);
        Ok(())
    }

    /// A request for solicited events does not replace one for any completion.
    #[test]
    fn an_arming_is_not_weakened() -> Result {
        let queue = queue(Provider::Own, LEN)?;

        assert!(!queue.arm(Arm::Solicited));
        assert_eq!(queue.fill_level().armed, Some(Arm::Solicited));
        assert!(!queue.arm(Arm::Next));
        assert!(!queue.arm(Arm::Solicited));
        assert_eq!(queue.fill_level().armed, Some(Arm::Next));
        assert!(queue.add(&completion(0), false, |_| ()).event);
        Ok(())
    }

    /// Completions that are added while the ring is replaced are in the old or in the new ring.
    #[test]
    fn producers_go_on_meanwhile() -> Result {
        let queue = queue(Provider::Own, 1024)?;
        let workers = Workers::new(1)?;
        let done = Arc::new(Atomic::new(0u32), GFP_KERNEL)?;
        let tally = Tally::new()?;
        let (mut seen, mut disorder, mut switched) = (0u32, 0u32, 0u32);
        let mut failed = Ok(());

        let (producer, added, end) = (queue.clone(), tally.clone(), done.clone());
        workers.add(move || {
            for number in 0..ROUNDS {
                // Leave room: each ring has some.
                if !wait_until(|| number - end.load(ordering::Acquire) < 500) {
                    return;
                }
                added.add(&producer, number.into());
            }
        })?;
        let mut process = ring(&queue);
        let mut next = 0;
        wait_until(|| {
            // Take some, then change the ring while the producer goes on.
            for _ in 0..100 {
                let Some(id) = take(&process, next) else {
                    break;
                };
                disorder += u32::from(id != seen.into());
                (seen, next) = (seen + 1, next + 1);
                done.store(seen, ordering::Release);
            }
            let len = if switched % 2 == 0 { 2048 } else { 512 };
            match own(len).and_then(|new| queue.replace(new)) {
                Ok(()) => {
                    (process, next) = (ring(&queue), 0);
                    switched += 1;
                }
                Err(e) => failed = Err(e),
            }
            seen == ROUNDS || failed.is_err()
        });
        drop(workers);
        failed?;
        assert_eq!(disorder, 0);
        assert_eq!(seen, ROUNDS);
        assert_eq!(tally.lost.load(ordering::Relaxed), 0);
        assert!(switched > 10);
        Ok(())
    }
}
