// SPDX-License-Identifier: GPL-2.0

//! Events that a connection's work items have to act on.

use kernel::sync::atomic::{ordering, Atomic};

#[cfg(CONFIG_KUNIT = "y")]
#[path = "../kunit/pending.rs"]
mod kunit;

/// An event of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PendingEvent {
    /// The connection has ended, or the peer's half of it, and the queue pair is notified.
    LlpClosed,
    /// The transport has no connection any more.
    ConnectionLost,
    /// TCP has given the peer up, which takes effect later.
    TimedOut,
    /// The peer's first FPDU has arrived.
    FirstFpdu,
    /// The queue pair has begun to end the stream.
    StreamEnding,
    /// The queue pair has requested the close of the connection.
    CloseRequested,
    /// The connection, if it is not established yet, has to make room for others.
    Evicted,
}

impl PendingEvent {
    const fn bit(self) -> u32 {
        match self {
            Self::LlpClosed => 1 << 0,
            Self::ConnectionLost => 1 << 1,
            Self::FirstFpdu => 1 << 2,
            Self::StreamEnding => 1 << 3,
            Self::CloseRequested => 1 << 4,
            Self::Evicted => 1 << 5,
            Self::TimedOut => 1 << 6,
        }
    }
}

/// The events of a connection that have happened. None is ever cleared.
pub(super) struct PendingEvents(Atomic<u32>);

impl PendingEvents {
    /// No event has happened.
    pub(super) fn new() -> Self {
        Self(Atomic::new(0))
    }

    /// Notes an event. Any context. Returns whether it is new, which is true for one caller only.
    ///
    /// A full barrier, also if the event is not new: see `Endpoint::kick` and
    /// `selftests/litmus/pending_events.litmus`.
    pub(super) fn set(&self, event: PendingEvent) -> bool {
        let mut old = self.0.load(ordering::Relaxed);

        // The exchange is not skipped if the bit is set already: a load is no barrier. It fails
        // only if another event has been set meanwhile, so at most once for each of them.
        loop {
            match self.0.cmpxchg(old, old | event.bit(), ordering::Full) {
                Ok(_) => return old & event.bit() == 0,
                Err(now) => old = now,
            }
        }
    }

    /// Whether an event has happened. Any context. If so, the caller sees all writes before the
    /// event was set (`selftests/litmus/pending_events.litmus`).
    pub(super) fn has(&self, event: PendingEvent) -> bool {
        self.0.load(ordering::Acquire) & event.bit() != 0
    }
}
