// SPDX-License-Identifier: GPL-2.0

//! The state, for readers that do not take the lock.

use iwarp::qp::State;
use kernel::sync::atomic::{ordering, Atomic};

/// Set when the queue pair is being destroyed.
const DESTROYED: u32 = 1 << 31;

/// The state of a queue pair. Changes under [`Qp::status`](crate::qp::Qp), and may be read without
/// it: whoever changes it then has a transmit run make a pass, which sees the change.
pub(in crate::qp) struct CurrentState(Atomic<u32>);

impl CurrentState {
    /// The state of a new queue pair.
    pub(in crate::qp) fn new() -> Self {
        // CAST: The value of an enum.
        Self(Atomic::new(State::Idle as u32))
    }

    /// Stores a state. Readers of it see what was written before.
    pub(super) fn store(&self, state: State, destroyed: bool) {
        let destroyed = if destroyed { DESTROYED } else { 0 };

        // CAST: The value of an enum.
        self.0.store(state as u32 | destroyed, ordering::Release);
    }

    /// Returns the state; `None` if the queue pair is being destroyed. Any context.
    #[inline]
    pub(in crate::qp) fn load(&self) -> Option<State> {
        let value = self.0.load(ordering::Acquire);

        [
            State::Rts,
            State::Draining,
            State::Closing,
            State::Idle,
            State::Terminate,
            State::Error,
        ]
        .into_iter()
        // CAST: The value of an enum.
        .find(|state| *state as u32 == value)
    }
}
