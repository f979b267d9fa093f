// SPDX-License-Identifier: GPL-2.0

//! Waiting for a receive WR: a message that takes one has arrived, and none is posted.
//!
//! The message stays in the link, with all that is behind it, so the receive window closes and
//! holds the peer back. A FIN behind it takes effect when the message has been delivered: it says
//! that all was sent, not that nothing is to be delivered any more. A RST ends the wait.
//!
//! The wait ends with a receive WR, with the time of the setting `receive_wait`, or with the
//! stream. [`Qp`](crate::qp::Qp) lets the stream look again: at once when a call of the driver
//! posts a WR or its doorbell rings, else at intervals, as with siw's ABI a process only writes to
//! its ring. Of the streams that wait for one receive queue, only the first in line looks at
//! intervals; the others could not take a WR.

use crate::link::Deadline;
use kernel::time::{msecs_to_jiffies, Jiffies};

#[cfg(CONFIG_KUNIT = "y")]
#[path = "../kunit/wait.rs"]
mod kunit;

/// Initial and maximum interval between two looks at the ring of a process, in milliseconds. It
/// doubles, so that a stream that waits for long costs little.
const INTERVAL_MS: u32 = 1;
const INTERVAL_MAX_MS: u32 = 16;

/// The wait of the message at the front of a stream.
pub(super) struct ReceiveWait {
    /// When the stream ends, if no WR has been posted.
    deadline: Deadline,
    /// The interval to the next look at the ring, in milliseconds; `None` if WRs are posted by
    /// calls of the driver.
    interval_ms: Option<u32>,
}

impl ReceiveWait {
    /// A wait of `time` milliseconds that begins now. Any context.
    pub(super) fn new(time: i64, looks_at_ring: bool) -> Self {
        Self {
            deadline: Deadline::new(time),
            interval_ms: looks_at_ring.then_some(INTERVAL_MS),
        }
    }

    /// Whether the time is over. Any context.
    pub(super) fn is_over(&self) -> bool {
        self.deadline.left().is_none()
    }

    /// Returns the time to the next look, at least a jiffy, and makes the interval longer. `first`:
    /// the stream is the first in line; another one only looks when its time is over. Any context.
    pub(super) fn next_look(&mut self, first: bool) -> Jiffies {
        // The link of a stream that is ending may be gone, so that no look ends the wait.
        let left = self.deadline.left().unwrap_or(1);

        match &mut self.interval_ms {
            Some(interval) if first => {
                let look = msecs_to_jiffies(*interval);

                *interval = interval.saturating_mul(2).min(INTERVAL_MAX_MS);
                look.min(left)
            }
            _ => left,
        }
    }
}
