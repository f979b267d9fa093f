// SPDX-License-Identifier: GPL-2.0

//! An event of a connection, while the queue pair takes over the stream.

#[allow(dead_code)]
#[path = "../../../rust/riw/cm/pending.rs"]
mod events;

use crate::tap::Model;
use events::{PendingEvent, PendingEvents};
use kernel::sync::atomic::{ordering, Atomic};
use loom::{sync::Arc, thread};

pub(crate) const MODELS: &[Model] = &[Model {
    rule: "the stream's work item sees an event, or is queued for it",
    run: take_over,
}];

/// A minimal endpoint.
struct Endpoint {
    events: PendingEvents,
    cause: Atomic<u32>,
    stream_active: Atomic<u32>,
    /// The bit in the stream's work item that queue_work() tests and sets.
    queued: Atomic<u32>,
}

impl Endpoint {
    /// `Endpoint::post_event`. Returns whether the work item of the stream is queued.
    fn post_event(&self) -> bool {
        self.cause.store(1, ordering::Relaxed);
        assert!(self.events.set(PendingEvent::LlpClosed));
        let active = self.stream_active.load(ordering::Acquire) != 0;

        if active {
            self.queued.xchg(1, ordering::Full);
        }
        active
    }

    /// `Endpoint::start`, and the work item that it queues. Returns whether that sees the event.
    fn start(&self) -> bool {
        self.stream_active.store(1, ordering::Release);
        self.queued.xchg(1, ordering::Full);
        let has = self.events.has(PendingEvent::LlpClosed);

        assert!(!has || self.cause.load(ordering::Relaxed) == 1);
        has
    }
}

fn take_over() {
    let endpoint = Arc::new(Endpoint {
        events: PendingEvents::new(),
        cause: Atomic::new(0),
        stream_active: Atomic::new(0),
        queued: Atomic::new(0),
    });
    let poster = endpoint.clone();
    let poster = thread::spawn(move || poster.post_event());
    let seen = endpoint.start();

    assert!(poster.join().unwrap() || seen);
}
