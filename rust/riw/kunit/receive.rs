// SPDX-License-Identifier: GPL-2.0

//! A receive queue whose WRs several queue pairs take while a process posts.

// A counter overflow in a test should panic.
#![allow(clippy::arithmetic_side_effects)]

use super::{NextTurn, RecvQueue, RecvWrs, TakenWr};
use crate::{
    abi::siw,
    queue::{ring::Ring, wr::Buffers},
};
use kernel::{
    prelude::*,
    sync::{
        atomic::{ordering, Atomic},
        Arc,
    },
};
use kernel_ext::kunit::{wait_until, Workers};

/// WrEntry `number` that a process posts, with so many SGEs.
fn entry(number: u32, elements: u8) -> [u64; siw::RQE_WORDS] {
    let mut words = [0; siw::RQE_WORDS];
    let [a, b] = siw::VALID.to_ne_bytes();

    let [id, control, ..] = &mut words;

    *id = number.into();
    *control = u64::from_ne_bytes([a, b, elements, 0, 0, 0, 0, 0]);
    words
}

fn queue(len: u32) -> Result<Arc<RecvQueue>> {
    let wrs = RecvWrs::Ring(Ring::new(len, 0)?);

    Arc::pin_init(RecvQueue::new(wrs, 1, 0, None), GFP_KERNEL)
}

/// Takes the oldest WR, without its buffers.
fn take(queue: &RecvQueue) -> Option<TakenWr> {
    queue.take(&mut Buffers::none())
}

/// Takes the oldest WR in turn, without its buffers.
fn take_in_turn(queue: &RecvQueue, number: u32, waits: bool) -> (Option<TakenWr>, NextTurn) {
    queue.take_in_turn(number, waits, &mut Buffers::none())
}

/// Returns a queue for the queue pairs 1 to `users`, which all wait in line, in this order.
fn awaited(users: u32) -> Result<Arc<RecvQueue>> {
    let queue = queue(8)?;

    for number in 1..=users {
        queue.add_user()?;
        if take_in_turn(&queue, number, false).0.is_some() {
            return Err(EBUSY);
        }
    }
    Ok(queue)
}

/// Lets queue pair `number`, which waits, look for a WR. Returns the id of the WR, and whose turn
/// is next.
fn look(queue: &RecvQueue, number: u32) -> (Option<u64>, Option<u32>) {
    let (taken, NextTurn(next)) = take_in_turn(queue, number, true);

    (taken.map(|taken| taken.wr.id.number()), next)
}

/// Returns the ring that the process posts to.
fn ring_of(queue: &RecvQueue) -> Result<&Ring<{ siw::RQE_WORDS }>> {
    match &queue.wrs {
        RecvWrs::Ring(ring) => Ok(ring),
        _ => Err(EINVAL),
    }
}

#[kunit_tests(riw_recvq)]
mod tests {
    use super::*;

    const LEN: u32 = 8;
    const ENTRIES: u32 = 30_000;
    const TAKERS: u32 = 2;

    /// No WR is taken twice or skipped, and each taker gets its WRs in order.
    #[test]
    fn each_request_is_taken_once() -> Result {
        let queue = queue(LEN)?;
        let sum = Arc::new(Atomic::new(0u64), GFP_KERNEL)?;
        let taken = Arc::new(Atomic::new(0u32), GFP_KERNEL)?;
        let disorder = Arc::new(Atomic::new(0u32), GFP_KERNEL)?;
        let workers = Workers::new(TAKERS)?;
        let mut posted = 0;

        for _ in 0..TAKERS {
            let (queue, sum) = (queue.clone(), sum.clone());
            let (taken, disorder) = (taken.clone(), disorder.clone());
            workers.add(move || {
                let mut next = 0;
                wait_until(|| {
                    while let Some(next_wr) = take(&queue) {
                        let id = next_wr.wr.id.number();
                        disorder.fetch_add(u32::from(id < next), ordering::Relaxed);
                        next = id.wrapping_add(1);
                        sum.fetch_add(id, ordering::Relaxed);
                        taken.fetch_add(1, ordering::Relaxed);
                    }
                    taken.load(ordering::Relaxed) >= ENTRIES
                });
            })?;
        }
        let ring = ring_of(&queue)?;
        for number in 0..ENTRIES {
            if !wait_until(|| !ring.is_valid(number)) {
                break;
            }
            ring.publish(number, &entry(number, 1));
            posted += 1;
        }
        drop(workers);
        assert_eq!(posted, ENTRIES);
        assert_eq!(taken.load(ordering::Relaxed), ENTRIES);
        assert_eq!(disorder.load(ordering::Relaxed), 0);
        assert_eq!(
            sum.load(ordering::Relaxed),
            u64::from(ENTRIES) * u64::from(ENTRIES - 1) / 2
        );
        Ok(())
    }

    /// If several takers drain the queue below its limit, exactly one reports it. At the limit none
    /// does.
    #[test]
    fn the_limit_is_reported_once() -> Result {
        for round in 0..100 {
            let queue = queue(LEN)?;
            let reports = Arc::new(Atomic::new(0u32), GFP_KERNEL)?;
            let workers = Workers::new(TAKERS)?;
            let mut early = false;
            let ring = ring_of(&queue)?;

            for number in 0..LEN {
                ring.publish(number, &entry(number, 1));
            }
            let limit = 1 + round % LEN;
            queue.set_limit(limit)?;
            // Take WRs down to the limit; the takers then go below it.
            for _ in limit..LEN {
                early |= take(&queue).is_none_or(|taken| taken.limit_reached);
            }
            for _ in 0..TAKERS {
                let (queue, reports) = (queue.clone(), reports.clone());
                workers.add(move || {
                    while let Some(taken) = take(&queue) {
                        reports.fetch_add(taken.limit_reached.into(), ordering::Relaxed);
                    }
                })?;
            }
            drop(workers);
            assert!(!early);
            assert_eq!(reports.load(ordering::Relaxed), 1);
            assert_eq!(queue.attr().srq_limit, 0);
        }
        Ok(())
    }

    /// Queue pairs that wait get WRs in the order in which they came, whoever looks first. Each
    /// learns whose turn is next.
    #[test]
    fn a_wr_goes_to_the_first_in_line() -> Result {
        let queue = awaited(3)?;
        let ring = ring_of(&queue)?;

        assert_eq!(queue.first_waiting(), Some(1));
        assert_eq!(look(&queue, 1), (None, None));
        for number in 0..2 {
            ring.publish(number, &entry(number, 1));
        }
        assert_eq!(look(&queue, 3), (None, Some(1)));
        assert_eq!(look(&queue, 2), (None, Some(1)));
        // One that comes now is behind them, though a WR is posted.
        queue.add_user()?;
        let (taken, NextTurn(next)) = take_in_turn(&queue, 4, false);
        assert!(taken.is_none());
        assert_eq!(next, Some(1));
        assert_eq!(look(&queue, 1), (Some(0), Some(2)));
        // There is no WR for the next one, but it must look for one from now on.
        assert_eq!(look(&queue, 2), (Some(1), Some(3)));
        assert_eq!(queue.first_waiting(), Some(3));
        assert!(queue.is_first_in_line(3));
        assert!(!queue.is_first_in_line(4));
        // It does so already.
        assert_eq!(look(&queue, 4), (None, None));
        assert_eq!(look(&queue, 3), (None, None));
        for number in 2..5 {
            ring.publish(number, &entry(number, 1));
        }
        assert_eq!(look(&queue, 3), (Some(2), Some(4)));
        assert_eq!(look(&queue, 4), (Some(3), None));
        assert_eq!(queue.first_waiting(), None);
        let (taken, NextTurn(next)) = take_in_turn(&queue, 1, false);
        assert_eq!(taken.map(|taken| taken.wr.id.number()), Some(4));
        assert_eq!(next, None);
        Ok(())
    }

    /// One that leaves the line, wherever it is, does not hold the others up.
    #[test]
    fn the_turn_passes_to_the_next() -> Result {
        let queue = awaited(4)?;

        assert_eq!(queue.leave(1).0, Some(2));
        assert_eq!(queue.first_waiting(), Some(2));
        ring_of(&queue)?.publish(0, &entry(0, 1));
        assert_eq!(queue.leave(3).0, Some(2));
        assert_eq!(queue.leave(2).0, Some(4));
        assert_eq!(look(&queue, 4), (Some(0), None));
        // It does not wait any more.
        assert_eq!(queue.leave(4).0, None);
        assert_eq!(queue.first_waiting(), None);
        Ok(())
    }

    /// The line has room for all users, also if they come while others wait.
    #[test]
    fn the_line_has_room_for_all_users() -> Result {
        const USERS: u32 = 100;
        let queue = awaited(USERS)?;

        for number in 1..=USERS {
            assert_eq!(queue.first_waiting(), Some(number));
            assert_eq!(
                queue.leave(number).0,
                (number < USERS).then_some(number + 1)
            );
            queue.remove_user();
        }
        assert_eq!(queue.first_waiting(), None);
        Ok(())
    }

    /// If no WR is posted yet, the poster sees that one waits: whoever comes first, none waits for
    /// a WR that is posted.
    #[test]
    fn no_wakeup_is_lost() -> Result {
        let queue = awaited(0)?;
        let woken = Arc::new(Atomic::new(0u32), GFP_KERNEL)?;
        let taken = Arc::new(Atomic::new(0u32), GFP_KERNEL)?;
        let workers = Workers::new(1)?;
        let mut posted = 0;

        queue.add_user()?;
        {
            let (queue, woken, taken) = (queue.clone(), woken.clone(), taken.clone());
            workers.add(move || {
                for number in 1..=ENTRIES {
                    let got = take_in_turn(&queue, 1, false).0.is_some()
                        || (wait_until(|| woken.load(ordering::Acquire) >= number)
                            && take_in_turn(&queue, 1, true).0.is_some());
                    if !got {
                        break;
                    }
                    taken.store(number, ordering::Release);
                }
            })?;
        }
        let ring = ring_of(&queue)?;
        for number in 0..ENTRIES {
            if !wait_until(|| taken.load(ordering::Acquire) == number) {
                break;
            }
            ring.publish(number, &entry(number, 1));
            if queue.first_waiting().is_some() {
                woken.store(number.wrapping_add(1), ordering::Release);
            }
            posted += 1;
        }
        drop(workers);
        assert_eq!(posted, ENTRIES);
        assert_eq!(taken.load(ordering::Relaxed), ENTRIES);
        Ok(())
    }

    /// A process that writes any entry at any time harms only its own WRs: one with too many SGEs
    /// is invalid.
    #[test]
    fn a_hostile_process_cannot_exceed_the_sges() -> Result {
        let queue = queue(LEN)?;
        let workers = Workers::new(1)?;
        let (mut sound, mut refused, mut wrong) = (0u32, 0u32, 0u32);
        let mut buffers = Buffers::none();

        let process = queue.clone();
        let mut number = 0u32;
        workers.add_loop(move || {
            let [elements, ..] = number.to_le_bytes();
            if let Ok(ring) = ring_of(&process) {
                ring.publish(number, &entry(number, elements));
            }
            number = number.wrapping_add(5);
        })?;
        let enough = wait_until(|| {
            if let Some(taken) = queue.take(&mut buffers) {
                let elements = buffers.iter().count();
                match taken.wr.valid {
                    Ok(()) => {
                        sound += 1;
                        wrong += u32::from(elements > siw::MAX_SGE);
                    }
                    // The SGEs are of an earlier WR.
                    Err(_) => refused += 1,
                }
            }
            sound > 1000 && refused > 1000
        });
        drop(workers);
        assert!(enough);
        assert_eq!(wrong, 0);
        Ok(())
    }
}
