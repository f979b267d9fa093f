// SPDX-License-Identifier: GPL-2.0

//! The handling of posted WRs in each state of the queue pair.

use iwarp::qp::State;
use kernel::sync::atomic::{ordering, Atomic};

/// The handling of posted WRs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Posting {
    /// Not connected: there may be receives.
    Unconnected,
    /// They are processed.
    Open,
    /// They are flushed.
    Error,
}

impl Posting {
    /// Returns the handling of posted WRs in a state. Any context.
    pub(super) fn of(state: State) -> Self {
        match state {
            State::Idle => Self::Unconnected,
            // WRs that are posted after the end of the queue are flushed when the connection ends.
            State::Rts | State::Draining | State::Closing => Self::Open,
            State::Terminate | State::Error => Self::Error,
        }
    }

    /// Loads it from its atomic form. Any context.
    pub(super) fn load(from: &Atomic<u32>) -> Self {
        match from.load(ordering::Relaxed) {
            value if value == Self::Unconnected as u32 => Self::Unconnected,
            value if value == Self::Open as u32 => Self::Open,
            _ => Self::Error,
        }
    }
}
