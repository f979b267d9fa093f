// SPDX-License-Identifier: GPL-2.0

//! Pending events, set by threads that race.

use super::{PendingEvent, PendingEvents};
use kernel::{
    prelude::*,
    sync::{
        atomic::{ordering, Atomic},
        Arc,
    },
};
use kernel_ext::kunit::Workers;

const EVENTS: [PendingEvent; 7] = [
    PendingEvent::LlpClosed,
    PendingEvent::ConnectionLost,
    PendingEvent::FirstFpdu,
    PendingEvent::StreamEnding,
    PendingEvent::CloseRequested,
    PendingEvent::Evicted,
    PendingEvent::TimedOut,
];

#[kunit_tests(riw_pending)]
mod tests {
    use super::*;

    const ROUNDS: u32 = 500;

    /// Two threads set all events in different orders. No event is lost to one that is set at the
    /// same time, and each is new to one of the threads.
    #[test]
    fn each_event_is_new_once() -> Result {
        for _ in 0..ROUNDS {
            let events = Arc::new(PendingEvents::new(), GFP_KERNEL)?;
            let new = Arc::new(Atomic::new(0u32), GFP_KERNEL)?;
            let workers = Workers::new(2)?;

            for first in [0, 3] {
                let (events, new) = (events.clone(), new.clone());
                workers.add(move || {
                    for &event in EVENTS.iter().cycle().skip(first).take(EVENTS.len()) {
                        new.fetch_add(events.set(event).into(), ordering::Relaxed);
                    }
                })?;
            }
            drop(workers);
            assert_eq!(new.load(ordering::Relaxed), 7);
            assert!(EVENTS.iter().all(|&event| events.has(event)));
        }
        Ok(())
    }

    /// Setting an event sets no other.
    #[test]
    fn events_are_independent() {
        for &event in EVENTS.iter() {
            let events = PendingEvents::new();

            assert!(events.set(event));
            assert!(EVENTS
                .iter()
                .all(|&other| events.has(other) == (other == event)));
        }
    }
}
