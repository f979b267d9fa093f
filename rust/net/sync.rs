// SPDX-License-Identifier: GPL-2.0

//! A spin lock for data shared with softirqs.

use kernel::{
    bindings,
    ffi::c_char,
    sync::lock::{Backend, Guard, Lock},
};
use riw_bindings as helpers;

/// Creates a [`BhSpinLock`] initialiser with a lock class of its own.
#[macro_export]
macro_rules! new_bh_spinlock {
    ($inner:expr, $name:literal) => {
        $crate::sync::BhSpinLock::new(
            $inner,
            ::kernel::c_str!($name),
            ::kernel::static_lock_class!(),
        )
    };
}
pub use new_bh_spinlock;

/// A spin lock that keeps softirqs off the CPU while it is held.
///
/// For what process context shares with softirqs, such as socket callbacks. Taken in process
/// context or in a softirq; not with interrupts disabled, nor in an interrupt.
pub type BhSpinLock<T> = Lock<T, BhSpinLockBackend>;

/// A [`Guard`] of a [`BhSpinLock`].
pub type BhSpinLockGuard<'a, T> = Guard<'a, T, BhSpinLockBackend>;

/// A `spinlock_t` taken by `spin_lock_bh()`.
pub struct BhSpinLockBackend;

// SAFETY: A `spinlock_t` has one owner. `relock` is the default one, which calls `lock`.
unsafe impl Backend for BhSpinLockBackend {
    type State = bindings::spinlock_t;
    type GuardState = ();

    unsafe fn init(ptr: *mut Self::State, name: *const c_char, key: *mut bindings::lock_class_key) {
        // SAFETY: The caller says that `ptr` is valid for writes, `name` and `key` for ever.
        unsafe { bindings::__spin_lock_init(ptr, name, key) }
    }

    #[inline]
    unsafe fn lock(ptr: *mut Self::State) -> Self::GuardState {
        // SAFETY: The caller says that the lock is initialised.
        unsafe { helpers::spin_lock_bh(ptr) }
    }

    #[inline]
    unsafe fn unlock(ptr: *mut Self::State, _guard_state: &Self::GuardState) {
        // SAFETY: The caller says that it owns the lock.
        unsafe { helpers::spin_unlock_bh(ptr) }
    }

    #[inline]
    unsafe fn try_lock(ptr: *mut Self::State) -> Option<Self::GuardState> {
        // SAFETY: The caller says that the lock is initialised.
        (unsafe { helpers::spin_trylock_bh(ptr) } != 0).then_some(())
    }

    #[inline]
    unsafe fn assert_is_held(ptr: *mut Self::State) {
        // SAFETY: The caller says that the lock is initialised.
        unsafe { bindings::spin_assert_is_held(ptr) }
    }
}
