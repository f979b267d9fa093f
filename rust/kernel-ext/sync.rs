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

/// Creates an initializer of a [`BhSpinLock`] with its own lock class.
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

/// A spin lock that disables softirqs on this CPU while it is held.
///
/// For data that process context shares with softirqs, such as socket callbacks. Process context
/// or softirq; not with interrupts disabled, nor in a hard interrupt.
pub type BhSpinLock<T> = Lock<T, BhSpinLockBackend>;

/// The [`Guard`] of a [`BhSpinLock`]. Its holder must not sleep.
pub type BhSpinLockGuard<'a, T> = Guard<'a, T, BhSpinLockBackend>;

/// The backend of [`BhSpinLock`]: a `spinlock_t` taken by `spin_lock_bh()`.
pub struct BhSpinLockBackend;

// SAFETY: A `spinlock_t` has one owner at a time, from `lock` to `unlock`. `relock` is the default,
// which calls `lock`.
unsafe impl Backend for BhSpinLockBackend {
    type State = bindings::spinlock_t;
    type GuardState = ();

    unsafe fn init(ptr: *mut Self::State, name: *const c_char, key: *mut bindings::lock_class_key) {
        // SAFETY: The caller promises that `ptr` is valid for writes, and that `name` and `key` are
        // valid for the life of the lock.
        unsafe { bindings::__spin_lock_init(ptr, name, key) }
    }

    #[inline]
    unsafe fn lock(ptr: *mut Self::State) -> Self::GuardState {
        // SAFETY: The caller promises that `init` has initialized the lock.
        unsafe { helpers::spin_lock_bh(ptr) }
    }

    #[inline]
    unsafe fn unlock(ptr: *mut Self::State, _guard_state: &Self::GuardState) {
        // SAFETY: The caller promises that it holds the lock, by `lock` or `try_lock`.
        unsafe { helpers::spin_unlock_bh(ptr) }
    }

    #[inline]
    unsafe fn try_lock(ptr: *mut Self::State) -> Option<Self::GuardState> {
        // SAFETY: The caller promises that `init` has initialized the lock.
        (unsafe { helpers::spin_trylock_bh(ptr) } != 0).then_some(())
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

/// Calls `f` with softirqs disabled on this CPU, and returns its result. Softirqs that are raised
/// meanwhile run before this returns, unless the caller has disabled them. Process context or
/// softirq; `f` must not sleep.
pub fn without_softirqs<R>(f: impl FnOnce() -> R) -> R {
    // SAFETY: The function may be called in process context and in softirq. `_enable` undoes it.
    unsafe { helpers::local_bh_disable() };
    let _enable = ScopeGuard::new(|| {
        // SAFETY: This function has disabled softirqs, and the task has stayed on this CPU since.
        unsafe { helpers::local_bh_enable() }
    });

    f()
}

/// Tracks users that do not sleep; [`wait`](Self::wait) drains them.
///
/// To retire an object, first mark it dead, then wait. A user must test the mark inside
/// [`during`](Self::during) and return at once if it is set: then later users do not hold up the
/// wait.
///
/// Process context or softirq, as for a [`BhSpinLock`]. Do not nest: all instances share one
/// lockdep class.
#[pin_data]
pub struct BhUses {
    /// Each user holds it as a reader.
    #[pin]
    raw: Opaque<helpers::rwlock_t>,
}

impl BhUses {
    /// Makes a tracker without users.
    pub fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            raw <- Opaque::ffi_init(|raw: *mut helpers::rwlock_t| {
                // SAFETY: `raw` points to this field, which is pinned and valid for writes.
                unsafe { helpers::rwlock_init(raw) }
            }),
        })
    }

    /// Calls `f` as a user. Process context or softirq; `f` must not sleep.
    ///
    /// Ordering, here and in [`wait`](Self::wait): `selftests/litmus/bh_uses.litmus`.
    pub fn during<R>(&self, f: impl FnOnce() -> R) -> R {
        // SAFETY: `new` initialized the lock. `_unlock` releases it.
        unsafe { helpers::read_lock_bh(self.raw.get()) };
        let _unlock = ScopeGuard::new(|| {
            // SAFETY: This function took the lock as a reader, on this CPU: softirqs are disabled.
            unsafe { helpers::read_unlock_bh(self.raw.get()) }
        });

        f()
    }

    /// Waits until all current users are done. Users that begin later see the caller's earlier
    /// writes. Process context or softirq; spins; not inside [`during`](Self::during).
    pub fn wait(&self) {
        // Taking it waits for the users (selftests/litmus/bh_uses.litmus).
        // SAFETY: `new` initialized the lock. It is released below.
        unsafe { helpers::write_lock_bh(self.raw.get()) };
        // SAFETY: The line above took the lock as the writer.
        unsafe { helpers::write_unlock_bh(self.raw.get()) };
    }
}

// SAFETY: A `rwlock_t` is not bound to a thread; a lock that is held is borrowed, so it cannot
// move.
unsafe impl Send for BhUses {}
// SAFETY: All methods only take and release the lock, which synchronizes the threads itself.
unsafe impl Sync for BhUses {}
