// SPDX-License-Identifier: GPL-2.0

//! Time limits.

use kernel::time::{msecs_to_jiffies, Jiffies};
use kernel_ext::time::Ktime;

/// The end of a time limit.
#[derive(Clone, Copy)]
pub(crate) struct Deadline {
    since: Ktime,
    /// Milliseconds from `since`.
    time: i64,
}

impl Deadline {
    /// A deadline in `time` milliseconds. Any context.
    pub(crate) fn new(time: i64) -> Self {
        Self {
            since: Ktime::now(),
            time,
        }
    }

    /// Returns the earlier of two deadlines. Any context.
    pub(crate) fn min(self, other: Self) -> Self {
        if self.left() < other.left() {
            self
        } else {
            other
        }
    }

    /// Whether less than a quarter of the time is left. Any context.
    pub(crate) fn is_near(&self) -> bool {
        self.since.elapsed().as_millis() > self.time.saturating_sub(self.time / 4)
    }

    /// Returns the time left; `None` if the deadline has passed. Any context.
    pub(crate) fn left(&self) -> Option<Jiffies> {
        let left = self.time.saturating_sub(self.since.elapsed().as_millis());

        // One more jiffy: the current one has begun already.
        (left > 0)
            .then(|| msecs_to_jiffies(u32::try_from(left).unwrap_or(u32::MAX)).saturating_add(1))
    }
}
