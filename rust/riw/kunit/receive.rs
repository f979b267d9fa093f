// SPDX-License-Identifier: GPL-2.0

//! A receive queue whose WRs several queue pairs take while a process posts.

// A counter overflow in a test should panic.
#![allow(clippy::arithmetic_side_effects)]

use super::{RecvQueue, RecvWrs};
use crate::{abi, queue::ring::Ring};
use kernel::{
    prelude::*,
    sync::{
        atomic::{ordering, Atomic},
        Arc,
    },
};
use kernel_ext::kunit::{wait_until, Workers};

/// Entry `number` that a process posts, with so many SGEs.
fn entry(number: u32, elements: u8) -> [u64; abi::RQE_WORDS] {
    let mut words = [0; abi::RQE_WORDS];
    let [a, b] = abi::VALID.to_ne_bytes();

    let [id, control, ..] = &mut words;

    *id = number.into();
    *control = u64::from_ne_bytes([a, b, elements, 0, 0, 0, 0, 0]);
    words
}

fn queue(len: u32) -> Result<Arc<RecvQueue>> {
    let wrs = RecvWrs::Ring(Ring::new(len, 0)?);

    Arc::pin_init(RecvQueue::new(wrs, 1, 0, None), GFP_KERNEL)
}

/// Returns the ring that the process posts to.
fn ring_of(queue: &RecvQueue) -> Result<&Ring<{ abi::RQE_WORDS }>> {
    match &queue.wrs {
        RecvWrs::Ring(ring) => Ok(ring),
        RecvWrs::List(_) => Err(EINVAL),
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
                    while let Some(next_wr) = queue.take() {
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
            let told = Arc::new(Atomic::new(0u32), GFP_KERNEL)?;
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
                early |= queue.take().is_none_or(|taken| taken.limit_reached);
            }
            for _ in 0..TAKERS {
                let (queue, told) = (queue.clone(), told.clone());
                workers.add(move || {
                    while let Some(taken) = queue.take() {
                        told.fetch_add(taken.limit_reached.into(), ordering::Relaxed);
                    }
                })?;
            }
            drop(workers);
            assert!(!early);
            assert_eq!(told.load(ordering::Relaxed), 1);
            assert_eq!(queue.attr().srq_limit, 0);
        }
        Ok(())
    }

    /// A process that writes any entry at any time harms only its own WRs: one with too many SGEs is
    /// invalid.
    #[test]
    fn a_hostile_process_cannot_exceed_the_sges() -> Result {
        let queue = queue(LEN)?;
        let workers = Workers::new(1)?;
        let (mut sound, mut refused) = (0u32, 0u32);

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
            if let Some(taken) = queue.take() {
                match taken.wr.buffers {
                    Ok(_) => sound += 1,
                    Err(_) => refused += 1,
                }
            }
            sound > 1000 && refused > 1000
        });
        drop(workers);
        assert!(enough);
        Ok(())
    }
}
