// SPDX-License-Identifier: GPL-2.0

//! Locks for data shared with softirqs.

use kernel::{
    bindings,
    ffi::c_char,
    prelude::*,
    sync::lock::{Backend, Guard, Lock},
    types::{Opaque, ScopeGuard},
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

/// Uses of something, in stretches that do not sleep, for whose end one can wait.
///
/// Who waits is not held up by those that begin later, if these find out by other means that
/// they should not.
///
/// Used where a [`BhSpinLock`] may be taken. All are of one lockdep class, so that one may not be
/// used within another's use.
#[pin_data]
pub struct BhUses {
    /// Shared by each use.
    #[pin]
    raw: Opaque<helpers::rwlock_t>,
}

impl BhUses {
    /// No uses.
    pub fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            raw <- Opaque::ffi_init(|raw: *mut helpers::rwlock_t| {
                // SAFETY: `raw` is ours and pinned.
                unsafe { helpers::rwlock_init(raw) }
            }),
        })
    }

    /// Calls `f` as a use. `f` must not sleep.
    pub fn during<R>(&self, f: impl FnOnce() -> R) -> R {
        // SAFETY: The lock is initialised, and given back below.
        unsafe { helpers::read_lock_bh(self.raw.get()) };
        let _unlock = ScopeGuard::new(|| {
            // SAFETY: It was taken above.
            unsafe { helpers::read_unlock_bh(self.raw.get()) }
        });

        f()
    }

    /// Waits until the uses that have begun are over. What was written before is seen by those
    /// that begin after it.
    pub fn wait(&self) {
        // SAFETY: The lock is initialised.
        unsafe { helpers::write_lock_bh(self.raw.get()) };
        // SAFETY: It was taken above.
        unsafe { helpers::write_unlock_bh(self.raw.get()) };
    }
}

// SAFETY: A `rwlock_t` belongs to no thread.
unsafe impl Send for BhUses {}
// SAFETY: A lock is there to be used by many threads.
unsafe impl Sync for BhUses {}
