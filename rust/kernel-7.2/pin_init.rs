// SPDX-License-Identifier: GPL-2.0

//! The crate `pin_init` of Linux 7.3 for Linux 7.2, as `lib.rs` is the crate `kernel`.

#![crate_name = "pin_init_compat"]

pub use ::pin_init::*;

/// Initializes `slot`, or returns the error of the initializer.
///
/// # Safety
///
/// `slot` is valid for writes, and does not move until it is dropped. After an error, the caller
/// only frees it.
#[inline(always)]
pub unsafe fn raw_try_init<T, E>(slot: *mut T, init: impl PinInit<T, E>) -> Result<(), E> {
    // SAFETY: By the caller's promise.
    unsafe { init.__pinned_init(slot) }
}
