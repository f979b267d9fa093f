// SPDX-License-Identifier: GPL-2.0

//! The right to do some work: one holder at a time, and no lost wakeup.

use kernel::sync::atomic::{ordering, Atomic};

/// No run is active, and none is requested.
const IDLE: u32 = 0;
/// A run is active, or on its way.
const RUNNING: u32 = 1;
/// A run is active, and another pass is requested.
const RERUN: u32 = 2;

/// The right to make passes over some work.
///
/// [`Runner::want`] requests a pass, and gives the right to one caller. The holder returns it by
/// [`Runner::done`], which fails if another pass was requested meanwhile. Both are full barriers: a
/// pass sees all writes before `want`.
pub struct Runner(Atomic<u32>);

impl Runner {
    /// Creates a right that nobody holds. Any context.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Self(Atomic::new(IDLE))
    }

    /// Requests a pass. Any context. Returns whether the caller now holds the right, and must run
    /// or pass it to a worker. Otherwise the holder makes the pass.
    ///
    /// Ordering, here and in [`Self::done`]: `selftests/litmus/runner.litmus`.
    #[inline]
    pub fn want(&self) -> bool {
        let mut state = self.0.load(ordering::Relaxed);

        loop {
            let next = if state == IDLE { RUNNING } else { RERUN };
            match self.0.cmpxchg(state, next, ordering::Full) {
                Ok(_) => return state == IDLE,
                Err(now) => state = now,
            }
        }
    }

    /// Takes the right if nobody holds it. A full barrier if so. Any context.
    pub fn take(&self) -> bool {
        self.0.cmpxchg(IDLE, RUNNING, ordering::Full).is_ok()
    }

    /// Whether another pass is requested. Any context.
    pub fn is_wanted(&self) -> bool {
        self.0.load(ordering::Relaxed) == RERUN
    }

    /// Accepts the requests until now, for the pass that the caller, who holds the right, makes
    /// next. A full barrier. Any context.
    pub fn accept(&self) {
        // Only the holder leaves RERUN, and the right is held: so this overwrites nothing else.
        self.0.xchg(RUNNING, ordering::Full);
    }

    /// Returns the right. Any context. Returns false if another pass was requested: the caller
    /// still holds the right, and must make it.
    #[inline]
    pub fn done(&self) -> bool {
        if self.0.cmpxchg(RUNNING, IDLE, ordering::Full).is_ok() {
            return true;
        }
        // Only the holder leaves RERUN, so this overwrites no request. An exchange that has failed
        // is no barrier, this one is (selftests/litmus/runner.litmus).
        self.0.xchg(RUNNING, ordering::Full);
        false
    }
}
