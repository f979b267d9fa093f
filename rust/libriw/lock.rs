// SPDX-License-Identifier: GPL-2.0

//! A mutex that may stay locked from one verb to another (`ibv_wr_start()` to `ibv_wr_complete()`). The
//! mutex of the standard library cannot.

use core::cell::UnsafeCell;
use core::mem;
use core::ops::{Deref, DerefMut};
use libc::pthread_mutex_t;

/// A mutex whose waiters spin first. Miri knows only the plain kind.
#[cfg(not(miri))]
use libc::PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP as INITIALIZER;
#[cfg(miri)]
use libc::PTHREAD_MUTEX_INITIALIZER as INITIALIZER;

/// A value that one thread at a time accesses. A thread that waits spins first, and then sleeps.
pub(crate) struct Lock<T> {
    mutex: UnsafeCell<pthread_mutex_t>,
    value: UnsafeCell<T>,
}

// SAFETY: Only the thread that holds the mutex has a reference to the value. It may be another thread
// than the one that made the value, so the value must be `Send`.
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
        // SAFETY: The mutex is initialized. It does not move while it is locked: its guard borrows it.
        unsafe { libc::pthread_mutex_lock(self.mutex.get()) };
        Guard { lock: self }
    }

    /// Returns the guard that this thread has given away by [`Guard::keep`].
    ///
    /// # Safety
    ///
    /// This thread has kept a guard, and has not taken it back yet.
    pub(crate) unsafe fn take_back(&self) -> Guard<'_, T> {
        Guard { lock: self }
    }
}

/// A locked value. Dropping it unlocks the value.
pub(crate) struct Guard<'a, T> {
    lock: &'a Lock<T>,
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
        // SAFETY: The guard stands for the mutex being held, so no other thread accesses the value. There is
        // one guard at a time, and it is borrowed.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: The guard stands for the mutex being held, so no other thread accesses the value. The only
        // guard is borrowed mutably.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        // SAFETY: This thread holds the mutex: the guard stands for that.
        unsafe { libc::pthread_mutex_unlock(self.lock.mutex.get()) };
    }
}

#[cfg(test)]
mod tests {
    use super::Lock;
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
