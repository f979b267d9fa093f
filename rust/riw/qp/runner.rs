// SPDX-License-Identifier: GPL-2.0

//! Who transmits: one at a time, and nothing that is wanted meanwhile is forgotten.

use kernel::sync::atomic::{ordering, Atomic};

#[cfg(CONFIG_KUNIT = "y")]
#[path = "../kunit/runner.rs"]
mod kunit;

/// Nobody runs, and nothing is wanted.
const IDLE: u32 = 0;
/// Somebody runs, or is on the way to.
const RUNNING: u32 = 1;
/// Somebody runs, and will look again.
const WANTED: u32 = 2;

/// The right to transmit for a queue pair.
///
/// It is taken by [`Runner::want`], which tells one caller to run, and handed back by
/// [`Runner::done`], which refuses when something was wanted in between. Both are full barriers:
/// what is written before `want` is seen by the run that follows.
pub(crate) struct Runner(Atomic<u32>);

impl Runner {
    /// Idle.
    pub(crate) fn new() -> Self {
        Self(Atomic::new(IDLE))
    }

    /// There is something to do. Returns whether the caller must run, or have somebody run; if
    /// not, who runs already will do it. Any context.
    pub(crate) fn want(&self) -> bool {
        let mut state = self.0.load(ordering::Relaxed);

        loop {
            let next = if state == IDLE { RUNNING } else { WANTED };
            match self.0.cmpxchg(state, next, ordering::Full) {
                Ok(_) => return state == IDLE,
                Err(now) => state = now,
            }
        }
    }

    /// The run is over. Returns whether it is; if not, the caller must run again. Any context.
    pub(crate) fn done(&self) -> bool {
        if self.0.cmpxchg(RUNNING, IDLE, ordering::Full).is_ok() {
            return true;
        }
        // Only who runs leaves WANTED, so this cannot lose another's change.
        self.0.xchg(RUNNING, ordering::Full);
        false
    }
}
