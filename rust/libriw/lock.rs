// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

//! A mutex that may stay locked from one verb to another (`ibv_wr_start()` to `ibv_wr_complete()`).
//! The mutex of the standard library cannot. And a lock that several threads may share; that of the
//! standard library can panic.

use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::mem;
use core::ops::{Deref, DerefMut};
use libc::{pthread_mutex_t, pthread_rwlock_t, PTHREAD_RWLOCK_INITIALIZER};

/// A mutex whose waiters spin first. Miri knows only the plain kind.
#[cfg(not(miri))]
use libc::PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP as INITIALIZER;
#[cfg(miri)]
use libc::PTHREAD_MUTEX_INITIALIZER as INITIALIZER;

/// Makes a guard neither `Send` nor `Sync`: the thread that locks must unlock.
type OfThisThread = PhantomData<*const ()>;

/// A value that one thread at a time accesses. A thread that waits spins first, and then sleeps.
pub(crate) struct Lock<T> {
    mutex: UnsafeCell<pthread_mutex_t>,
    value: UnsafeCell<T>,
}

// SAFETY: Only the thread that holds the mutex has a reference to the value. It may be another
// thread than the one that made the value, so the value must be `Send`.
unsafe impl<T: Send> Sync for Lock<T> {}
// SAFETY: A mutex that nobody holds or waits for is an integer.
unsafe impl<T: Send> Send for Lock<T> {}

impl<T> Lock<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            mutex: UnsafeCell::new(INITIALIZER),
            value: UnsafeCell::new(value),
        }
    }

    /// Locks the value. A thread must not lock it again before it drops the guard.
    pub(crate) fn lock(&self) -> Guard<'_, T> {
        // SAFETY: The mutex is initialized. It does not move while it is locked: its guard borrows
        // it.
        unsafe { libc::pthread_mutex_lock(self.mutex.get()) };
        Guard {
            lock: self,
            _thread: PhantomData,
        }
    }

    /// Returns the guard that this thread has given away by [`Guard::keep`].
    ///
    /// # Safety
    ///
    /// This thread has kept a guard, and has not taken it back yet.
    pub(crate) unsafe fn take_back(&self) -> Guard<'_, T> {
        Guard {
            lock: self,
            _thread: PhantomData,
        }
    }
}

/// A locked value. Dropping it unlocks the value.
pub(crate) struct Guard<'a, T> {
    lock: &'a Lock<T>,
    _thread: OfThisThread,
}

impl<T> Guard<'_, T> {
    /// Leaves the value locked, for [`Lock::take_back`].
    pub(crate) fn keep(self) {
        mem::forget(self);
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: The guard stands for the mutex being held, so no other thread accesses the value.
        // There is one guard at a time, and it is borrowed.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: The guard stands for the mutex being held, so no other thread accesses the value.
        // The only guard is borrowed mutably.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        // SAFETY: This thread holds the mutex: the guard stands for that.
        unsafe { libc::pthread_mutex_unlock(self.lock.mutex.get()) };
    }
}

/// A lock that either several threads hold or one alone.
pub(crate) struct SharedLock(UnsafeCell<pthread_rwlock_t>);

// SAFETY: Only the functions of pthreads access the lock, and several threads may call them at
// once.
unsafe impl Sync for SharedLock {}
// SAFETY: A lock that nobody holds or waits for is made of integers.
unsafe impl Send for SharedLock {}

impl SharedLock {
    pub(crate) fn new() -> Self {
        Self(UnsafeCell::new(PTHREAD_RWLOCK_INITIALIZER))
    }

    /// Locks it with others who share it. A thread must not lock it again before it drops the
    /// guard.
    pub(crate) fn share(&self) -> SharedGuard<'_> {
        // SAFETY: The lock is initialized. It does not move while it is locked: its guard borrows
        // it.
        unsafe { libc::pthread_rwlock_rdlock(self.0.get()) };
        SharedGuard(self, PhantomData)
    }

    /// Locks it alone: waits for all others. A thread must not lock it again before it drops the
    /// guard.
    pub(crate) fn hold_alone(&self) -> SharedGuard<'_> {
        // SAFETY: As in `share`, the lock is initialized, and its guard borrows it.
        unsafe { libc::pthread_rwlock_wrlock(self.0.get()) };
        SharedGuard(self, PhantomData)
    }
}

/// A [`SharedLock`] that is held. Dropping it gives it back.
pub(crate) struct SharedGuard<'a>(&'a SharedLock, OfThisThread);

impl Drop for SharedGuard<'_> {
    fn drop(&mut self) {
        // SAFETY: This thread holds the lock, shared or alone: the guard stands for that.
        unsafe { libc::pthread_rwlock_unlock(self.0 .0.get()) };
    }
}

#[cfg(test)]
mod tests {
    use super::{Lock, SharedLock};
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::thread;

    const ROUNDS: u32 = if cfg!(miri) { 100 } else { 10_000 };

    #[test]
    fn one_thread_at_a_time_has_the_value() {
        let lock = Lock::new((0u32, 0u32));

        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..ROUNDS {
                        let mut value = lock.lock();

                        value.0 += 1;
                        value.1 += 1;
                        assert_eq!(value.0, value.1);
                    }
                });
            }
        });
        assert_eq!(lock.lock().0, 4 * ROUNDS);
    }

    #[test]
    fn a_thread_alone_waits_for_those_that_share() {
        let lock = SharedLock::new();
        let inside = AtomicU32::new(0);

        thread::scope(|scope| {
            let both = (lock.share(), scope.spawn(|| drop(lock.share())));

            // The second one does not wait for the first.
            both.1.join().unwrap();
            drop(both.0);
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..ROUNDS {
                        let _alone = lock.hold_alone();

                        assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0);
                        inside.fetch_sub(1, Ordering::Relaxed);
                    }
                });
            }
            for _ in 0..ROUNDS {
                let _shared = lock.share();

                assert_eq!(inside.load(Ordering::Relaxed), 0);
            }
        });
    }

    #[test]
    fn a_kept_guard_keeps_other_threads_out() {
        let lock = Lock::new(1);
        let waited = std::sync::atomic::AtomicBool::new(false);

        lock.lock().keep();
        thread::scope(|scope| {
            let other = scope.spawn(|| {
                let value = *lock.lock();

                assert!(waited.load(std::sync::atomic::Ordering::Relaxed));
                value
            });
            waited.store(true, std::sync::atomic::Ordering::Relaxed);
            // SAFETY: Kept above.
            *unsafe { lock.take_back() } = 2;
            assert_eq!(other.join().unwrap(), 2);
        });
    }
}
