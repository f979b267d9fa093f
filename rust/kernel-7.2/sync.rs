// SPDX-License-Identifier: GPL-2.0

//! Barriers, and a spin lock that disables interrupts.

pub use crate::new_spinlock_irq;
pub use ::kernel::sync::*;

use crate::bindings as compat;
use ::kernel::{
    bindings,
    ffi::c_char,
    sync::lock::{Backend, Lock},
};

pub mod barrier {
    //! Barriers. Only that of an ordering that riw uses.

    use ::kernel::sync::{atomic::ordering::Full, barrier};

    /// A full barrier between CPUs.
    #[inline(always)]
    pub fn smp_mb(_: Full) {
        barrier::smp_mb()
    }
}

/// Creates an initializer of a [`SpinLockIrq`] with its own lock class.
#[macro_export]
macro_rules! new_spinlock_irq {
    ($inner:expr $(, $name:literal)? $(,)?) => {
        $crate::sync::SpinLockIrq::new(
            $inner,
            $crate::optional_name!($($name)?),
            $crate::static_lock_class!(),
        )
    };
}

/// A spin lock that disables interrupts on this CPU while it is held. Any context.
///
/// A guard restores the interrupt state that it has found. So nested guards must be dropped in the
/// reverse order, which those of Linux 7.3 need not be.
pub type SpinLockIrq<T> = Lock<T, SpinLockIrqBackend>;

/// The backend of [`SpinLockIrq`]: a `spinlock_t` taken by `spin_lock_irqsave()`.
pub struct SpinLockIrqBackend;

// SAFETY: A `spinlock_t` has one owner at a time, from `lock` to `unlock`. `relock` is the default,
// which calls `lock`.
unsafe impl Backend for SpinLockIrqBackend {
    type State = bindings::spinlock_t;
    // The interrupt state before.
    type GuardState = usize;

    unsafe fn init(ptr: *mut Self::State, name: *const c_char, key: *mut bindings::lock_class_key) {
        // SAFETY: The caller promises that `ptr` is valid for writes, and that `name` and `key` are
        // valid for the life of the lock.
        unsafe { bindings::__spin_lock_init(ptr, name, key) }
    }

    #[inline]
    unsafe fn lock(ptr: *mut Self::State) -> Self::GuardState {
        // SAFETY: The caller promises that `init` has initialized the lock.
        unsafe { compat::riw_compat_spin_lock_irqsave(ptr) }
    }

    #[inline]
    unsafe fn unlock(ptr: *mut Self::State, guard_state: &Self::GuardState) {
        // SAFETY: The caller promises that it holds the lock, by `lock` or `try_lock`.
        unsafe { compat::riw_compat_spin_unlock_irqrestore(ptr, *guard_state) }
    }

    #[inline]
    unsafe fn try_lock(ptr: *mut Self::State) -> Option<Self::GuardState> {
        let mut state = 0;

        // SAFETY: The caller promises that `init` has initialized the lock.
        unsafe { compat::riw_compat_spin_trylock_irqsave(ptr, &mut state) }.then_some(state)
    }

    #[inline]
    unsafe fn assert_is_held(ptr: *mut Self::State) {
        // Without lockdep the function does nothing. It would still be called, for each lock.
        if cfg!(CONFIG_LOCKDEP) {
            // SAFETY: The caller promises that `init` has initialized the lock.
            unsafe { bindings::spin_assert_is_held(ptr) }
        }
    }
}
