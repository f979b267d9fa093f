// SPDX-License-Identifier: GPL-2.0

//! Locks for data shared with softirqs.

use core::cell::UnsafeCell;
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

/// A lock that many can share, which keeps softirqs off the CPU while it is held.
///
/// Taken where a [`BhSpinLock`] may be. All are of one lockdep class, so that none may be taken
/// while another is held.
#[pin_data]
pub struct BhRwLock<T> {
    #[pin]
    raw: Opaque<helpers::rwlock_t>,
    data: UnsafeCell<T>,
}

impl<T> BhRwLock<T> {
    /// A lock that nobody holds.
    pub fn new(data: T) -> impl PinInit<Self> {
        pin_init!(Self {
            raw <- Opaque::ffi_init(|raw: *mut helpers::rwlock_t| {
                // SAFETY: `raw` is ours and pinned.
                unsafe { helpers::rwlock_init(raw) }
            }),
            data: UnsafeCell::new(data),
        })
    }

    /// Calls `f` while others may share the data, but nobody changes it. `f` must not sleep.
    pub fn shared<R>(&self, f: impl FnOnce(&T) -> R) -> R {
        // SAFETY: The lock is initialised, and given back below.
        unsafe { helpers::read_lock_bh(self.raw.get()) };
        let _unlock = ScopeGuard::new(|| {
            // SAFETY: It was taken above.
            unsafe { helpers::read_unlock_bh(self.raw.get()) }
        });

        // SAFETY: As long as the lock is shared there is no `&mut` to the data: see `exclusive`.
        f(unsafe { &*self.data.get() })
    }

    /// Calls `f` when nobody else looks at the data. `f` must not sleep.
    pub fn exclusive<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: The lock is initialised, and given back below.
        unsafe { helpers::write_lock_bh(self.raw.get()) };
        let _unlock = ScopeGuard::new(|| {
            // SAFETY: It was taken above.
            unsafe { helpers::write_unlock_bh(self.raw.get()) }
        });

        // SAFETY: The lock is held, and nobody else has it, shared or not: this is the only
        // reference to the data.
        f(unsafe { &mut *self.data.get() })
    }
}

// SAFETY: The lock may be used from any thread; the data is `Send`.
unsafe impl<T: Send> Send for BhRwLock<T> {}
// SAFETY: As above; those who share the data have references to it at the same time.
unsafe impl<T: Send + Sync> Sync for BhRwLock<T> {}
