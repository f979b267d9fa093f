// SPDX-License-Identifier: GPL-2.0

//! Which messages wait for more.

// A counter overflow in a test should panic.
#![allow(clippy::arithmetic_side_effects)]

use super::{
    Coalescer, Wait, BYTES, DOORBELLS, ENOUGH, FIRST_SAMPLES, PATIENCE, PERIOD, WAIT_MAX, WAIT_MIN,
};
use kernel::{prelude::*, time::Delta};
use kernel_ext::time::Ktime;

/// Nanoseconds of a send, and between the doorbells of a process that only sends: each message by
/// itself, or many of them at a time.
const SEND: i64 = 5_000;
const QUICK: i64 = 6_000;
const QUICKER: i64 = 2_500;

/// Returns one that knows the time of a send, and has no credit.
fn knowing() -> Coalescer {
    let mut coalescer = Coalescer::new();

    coalescer.cost = SEND;
    coalescer.samples = FIRST_SAMPLES;
    // The tests that need none see no sample.
    coalescer.until_sample = u32::MAX;
    coalescer
}

/// Returns one that permits waiting.
fn permitting() -> Coalescer {
    let mut coalescer = knowing();

    coalescer.credit = SEND * ENOUGH;
    coalescer
}

/// Rings doorbells until messages wait. Returns how many that took, at most `limit`.
fn until_one_waits(coalescer: &mut Coalescer, limit: u32) -> u32 {
    for round in 0..limit {
        if coalescer.decide(QUICK, 64, false) != Wait::No {
            return round;
        }
    }
    limit
}

/// Posts a message `gap` nanoseconds after the last, and sends the batch unless it waits. Returns
/// whether it waits.
fn posted(coalescer: &mut Coalescer, gap: i64) -> bool {
    let waits = coalescer.decide(gap, 64, false) != Wait::No;

    if !waits {
        match coalescer.has_waiting() {
            true => coalescer.settle(),
            false => sampled(coalescer, SEND),
        }
    }
    waits
}

/// Notes that a send has taken `time`, if a sample is due.
fn sampled(coalescer: &mut Coalescer, time: i64) {
    if coalescer.until_sample == 0 {
        coalescer.until_sample = PERIOD;
        coalescer.timed(time);
    }
}

/// Posts `count` messages in a row, and awaits their arrival. Returns how many waited.
fn burst(coalescer: &mut Coalescer, count: u32) -> u32 {
    let mut waited = 0;

    for _ in 0..count {
        let gap = if coalescer.has_waiting() {
            QUICKER
        } else {
            QUICK
        };

        waited += u32::from(posted(coalescer, gap));
    }
    if coalescer.has_waiting() {
        coalescer.late(SEND * PATIENCE);
    }
    waited
}

#[kunit_tests(riw_coalesce)]
mod tests {
    use super::*;

    /// A batch waits until it serves 16 doorbells, and then the next begins.
    #[test]
    fn one_send_serves_sixteen_doorbells() {
        let mut coalescer = permitting();

        for _ in 0..100 {
            assert!(matches!(
                coalescer.decide(QUICKER, 64, false),
                Wait::Begins(_)
            ));
            for _ in 2..DOORBELLS {
                assert_eq!(coalescer.decide(QUICKER, 64, false), Wait::GoesOn);
            }
            assert_eq!(coalescer.decide(QUICKER, 64, false), Wait::No);
            assert!(coalescer.has_waiting());
            coalescer.sent(Some(Ktime::now()), 64);
            assert!(!coalescer.has_waiting());
        }
    }

    /// A large batch does not wait.
    #[test]
    fn many_bytes_are_sent_at_once() {
        let mut coalescer = permitting();

        assert_eq!(coalescer.decide(QUICK, BYTES, false), Wait::No);
        assert!(matches!(
            coalescer.decide(QUICK, BYTES - 1, false),
            Wait::Begins(_)
        ));
        assert_eq!(coalescer.decide(QUICK, BYTES, false), Wait::No);
    }

    /// Neither the messages of a process that has time wait, nor those that the peer answers.
    #[test]
    fn a_process_that_does_not_stream_is_not_held_up() {
        let mut coalescer = permitting();

        for _ in 0..1000 {
            assert_eq!(coalescer.decide(2 * SEND, 64, false), Wait::No);
            assert_eq!(coalescer.decide(QUICK, 64, true), Wait::No);
        }
        // Nor before the time of a send is known.
        let mut coalescer = Coalescer::new();

        for _ in 0..3 * PERIOD {
            assert!(!posted(&mut coalescer, 0));
        }
    }

    /// A process whose doorbells do not follow each other faster when its messages wait has its own
    /// pace.
    #[test]
    fn a_paced_process_is_not_held_up() {
        let mut coalescer = permitting();
        let mut waited = 0;

        for _ in 0..10_000 {
            waited += u32::from(posted(&mut coalescer, SEND * 5 / 4));
        }
        assert!(waited < 500);
    }

    /// A send that takes very long does not make a stream of a process that posts seldom.
    #[test]
    fn an_interrupted_send_changes_little() {
        let mut coalescer = knowing();

        coalescer.until_sample = 0;
        sampled(&mut coalescer, SEND * 1000);
        for _ in 0..20_000 {
            assert!(!posted(&mut coalescer, SEND * 10));
        }
        assert_eq!(coalescer.cost, SEND);
        // Nor if it is the first.
        let mut coalescer = Coalescer::new();

        for time in [SEND * 1000, SEND, SEND * 2, SEND] {
            coalescer.timed(time);
        }
        assert_eq!(coalescer.cost, SEND);
    }

    /// The time of a send is measured again while messages wait.
    #[test]
    fn a_stream_is_sampled() {
        let mut coalescer = permitting();

        coalescer.until_sample = PERIOD;
        coalescer.cost = SEND * 2;
        coalescer.credit = SEND * 2 * ENOUGH;
        for _ in 0..100 {
            burst(&mut coalescer, 1000);
        }
        assert!(coalescer.cost < SEND + SEND / 10);
    }

    /// The time to wait follows that of a send, within limits.
    #[test]
    fn the_time_to_wait_is_bounded() {
        for (cost, time) in [
            (SEND, SEND * PATIENCE),
            (10, WAIT_MIN),
            (1_000_000_000, WAIT_MAX),
        ] {
            let mut coalescer = knowing();

            coalescer.cost = cost;
            coalescer.credit = cost * ENOUGH;
            assert_eq!(
                coalescer.decide(cost, 64, false),
                Wait::Begins(Delta::from_nanos(time))
            );
        }
    }

    /// A process that waits for something after each message loses the time of a wait only once in
    /// hundreds of messages: less than 2 % of its time.
    #[test]
    fn losses_are_rare() {
        let mut coalescer = knowing();

        for _ in 0..10 {
            let messages = until_one_waits(&mut coalescer, 10_000);

            assert!((500..10_000).contains(&messages));
            coalescer.late(SEND * PATIENCE);
        }
    }

    /// A worker that is very late costs more, but not all future.
    #[test]
    fn a_late_worker_costs_more() {
        let mut coalescer = permitting();

        assert_eq!(until_one_waits(&mut coalescer, 10), 0);
        coalescer.late(SEND * 1_000_000);
        let messages = until_one_waits(&mut coalescer, 10_000);

        assert!((4000..10_000).contains(&messages));
    }

    /// A process that sends 32 or more messages and then waits gains more than it loses. One that
    /// sends a few does not, and rarely waits.
    #[test]
    fn long_bursts_gain() {
        for (count, gains) in [(2, false), (8, false), (12, false), (32, true), (64, true)] {
            let mut coalescer = permitting();
            let mut waited = 0;

            for _ in 0..1000 {
                waited += burst(&mut coalescer, count);
            }
            match gains {
                true => assert!(waited > count * 800),
                false => assert!(waited < count * 100),
            }
        }
    }

    /// A stream that has gained much stops to wait soon after it has become something else.
    #[test]
    fn gains_are_bounded() {
        let mut coalescer = permitting();

        burst(&mut coalescer, 10_000);
        let mut losses = 0;
        while until_one_waits(&mut coalescer, 1) == 0 {
            coalescer.late(SEND * PATIENCE);
            losses += 1;
        }
        assert!(losses <= 3);
    }
}
