// SPDX-License-Identifier: GPL-2.0

//! Rate limits, for messages that a user or a peer can provoke.
//!
//! C header: [`include/linux/ratelimit.h`](srctree/include/linux/ratelimit.h)

use kernel::{bindings, ffi::c_int, prelude::*, time::msecs_to_jiffies, types::Opaque};
use riw_bindings as helpers;

/// A limit on how often something happens: [`BURST`](Self::BURST) times in
/// [`INTERVAL`](Self::INTERVAL) seconds, the kernel's default.
///
/// # Invariants
///
/// `raw` is initialized by `ratelimit_state_init()`, with an interval and a burst above 0.
#[pin_data]
pub struct RateLimit {
    #[pin]
    raw: Opaque<bindings::ratelimit_state>,
}

impl RateLimit {
    /// The length of an interval, in seconds.
    pub const INTERVAL: u32 = 5;
    /// The maximum number of events in an interval.
    pub const BURST: c_int = bindings::DEFAULT_RATELIMIT_BURST as c_int;

    /// Makes a limit. Any context.
    pub fn new() -> impl PinInit<Self> {
        // `bindings::HZ` is the HZ of user space: 100 whatever CONFIG_HZ is.
        // CAST: Some thousand jiffies.
        let interval = msecs_to_jiffies(Self::INTERVAL * 1000) as c_int;

        // INVARIANT: Both numbers are above 0.
        pin_init!(Self {
            raw <- Opaque::ffi_init(|raw: *mut bindings::ratelimit_state| {
                // SAFETY: `raw` points to this field, which is pinned and valid for writes.
                unsafe { helpers::ratelimit_state_init(raw, interval, Self::BURST) }
            }),
        })
    }

    /// Returns the C struct, for C helpers of other crates. The pointer is valid as long as `self`.
    /// Any context.
    pub fn as_raw(&self) -> *mut bindings::ratelimit_state {
        self.raw.get()
    }

    /// Counts an event. Any context.
    ///
    /// Returns `None` above the limit; otherwise the number of events suppressed since the last
    /// call that returned a number.
    pub fn pass(&self) -> Option<u32> {
        // SAFETY: By the type invariant `raw` is initialized; the function locks it as needed. The
        // name is a NUL-terminated string.
        let passes = unsafe { bindings::___ratelimit(self.raw.get(), c"riw".as_char_ptr()) } != 0;

        passes.then(|| {
            // SAFETY: By the type invariant `raw` is initialized; the function is atomic.
            let missed = unsafe { helpers::ratelimit_state_reset_miss(self.raw.get()) };

            // It counts events, so it is negative only after 2^31 of them.
            missed.unsigned_abs()
        })
    }
}

// SAFETY: A `struct ratelimit_state` is not bound to a thread.
unsafe impl Send for RateLimit {}
// SAFETY: `___ratelimit()` locks the state itself, and the number of missed events is atomic. So
// any thread may call the methods at any time.
unsafe impl Sync for RateLimit {}
