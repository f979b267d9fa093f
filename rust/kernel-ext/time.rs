// SPDX-License-Identifier: GPL-2.0

//! Times of the monotonic clock.

use kernel::{bindings, time::Delta};

/// A time of the monotonic clock (`ktime_get()`, `include/linux/timekeeping.h`). Unlike those of
/// the kernel's `Instant`, differences saturate: with `CONFIG_RUST_OVERFLOW_CHECKS` that is
/// compiled with a panic for times that the clock never has.
#[derive(Clone, Copy)]
pub struct Ktime(bindings::ktime_t);

impl Ktime {
    /// Returns the time. Any context except NMI.
    #[inline]
    pub fn now() -> Self {
        // SAFETY: Only a context of NMI must not call it.
        Self(unsafe { bindings::ktime_get() })
    }

    /// Returns how much later this time is than `earlier`. Any context.
    #[inline]
    pub fn since(self, earlier: Self) -> Delta {
        Delta::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Returns how long ago this time was. Any context except NMI.
    #[inline]
    pub fn elapsed(self) -> Delta {
        Self::now().since(self)
    }
}
