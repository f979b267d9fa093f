// SPDX-License-Identifier: GPL-2.0

//! Per-CPU counters.
//!
//! C header: [`include/linux/percpu.h`](srctree/include/linux/percpu.h)

use crate::sync::{without_softirqs, BhSpinLockGuard};
use core::ptr::NonNull;
use kernel::prelude::*;
use riw_bindings as bindings;

/// `N` counters, each with a part on each CPU: an addition writes to no cache line that another CPU
/// writes to. They start at 0 and wrap around.
///
/// # Invariants
///
/// It is the pointer of a per-CPU allocation of `N` `u64`, which this object owns.
pub struct PerCpuCounters<const N: usize>(NonNull<u64>);

// SAFETY: The allocation belongs to no thread and no CPU: any thread may free it.
unsafe impl<const N: usize> Send for PerCpuCounters<N> {}
// SAFETY: Shared access only adds, which is atomic for the CPU that adds, and reads words that
// other CPUs write, which is atomic on 64-bit machines.
unsafe impl<const N: usize> Sync for PerCpuCounters<N> {}

impl<const N: usize> PerCpuCounters<N> {
    /// Creates counters, charged to the memory cgroup of the calling process. Process context; may
    /// sleep. Fails with `ENOMEM` without memory.
    pub fn new() -> Result<Self> {
        // The allocator warns about a size of 0, or of more than PCPU_MIN_UNIT_SIZE.
        const { assert!(N > 0 && N <= (32 << 10) / size_of::<u64>()) };
        // SAFETY: The function may be called in process context, with any number.
        let raw = unsafe { bindings::alloc_percpu_u64(N) };

        // INVARIANT: If `raw` is not null, it is the pointer of a new per-CPU allocation of `N`
        // `u64`.
        NonNull::new(raw).map(Self).ok_or(ENOMEM)
    }

    /// Adds `n` to counter `index`; does nothing if there is no such counter. Any context.
    #[inline]
    pub fn add(&self, index: usize, n: u64) {
        if index >= N {
            return;
        }
        // SAFETY: By the type invariant the allocation has `N` counters, and `index` is less.
        unsafe { bindings::this_cpu_add_u64(self.0.as_ptr().wrapping_add(index), n) };
    }

    /// Calls `f`, which adds to several counters. Cheaper than as many calls of [`Self::add`] where
    /// an addition is not a single instruction, as it is on x86. Process context or softirq; `f`
    /// must not sleep.
    ///
    /// The counters must be ones that no hard interrupt adds to: one of the two additions would be
    /// lost.
    #[inline]
    pub fn add_several<R>(&self, f: impl FnOnce(&Batch<'_, N>) -> R) -> R {
        if cfg!(CONFIG_X86) {
            // INVARIANT: It has no words.
            return f(&Batch {
                words: None,
                counters: self,
            });
        }
        // SAFETY: Softirqs are disabled until `f` returns, which cannot keep the batch.
        without_softirqs(|| f(&unsafe { self.batch() }))
    }

    /// As [`Self::add_several`], for the holder of a lock that disables softirqs already.
    #[inline]
    pub fn add_several_locked<T, R>(
        &self,
        _lock: &BhSpinLockGuard<'_, T>,
        f: impl FnOnce(&Batch<'_, N>) -> R,
    ) -> R {
        // SAFETY: The lock is held, and so softirqs are disabled, until `f` returns, which cannot
        // keep the batch.
        f(&unsafe { self.batch() })
    }

    /// Returns the part of this CPU.
    ///
    /// # Safety
    ///
    /// Softirqs are disabled as long as the batch is used.
    #[inline]
    unsafe fn batch(&self) -> Batch<'_, N> {
        // SAFETY: `self.0` is the pointer of a per-CPU allocation, by the type invariant.
        let words = || unsafe { bindings::this_cpu_ptr_u64(self.0.as_ptr()) };

        Batch {
            // Tasks with softirqs disabled preempt each other on PREEMPT_RT.
            // INVARIANT: By the type invariant each CPU has `N` counters. The caller stays on this
            // CPU, since softirqs are disabled.
            words: (!cfg!(CONFIG_PREEMPT_RT)).then(words),
            counters: self,
        }
    }

    /// Returns the sum of counter `index` over all CPUs; 0 if there is no such counter. Includes
    /// each addition that happened before this call, and maybe concurrent ones. Any context.
    pub fn sum(&self, index: usize) -> u64 {
        if index >= N {
            return 0;
        }
        // SAFETY: By the type invariant the allocation has `N` counters, and `index` is less.
        unsafe { bindings::percpu_sum_u64(self.0.as_ptr().wrapping_add(index)) }
    }
}

/// Counters to which several additions are made.
///
/// # Invariants
///
/// `words`, if any, points to the `N` counters of this CPU, on which softirqs are disabled.
pub struct Batch<'a, const N: usize> {
    /// `None`: each addition is atomic for this CPU by itself.
    words: Option<*mut u64>,
    counters: &'a PerCpuCounters<N>,
}

impl<const N: usize> Batch<'_, N> {
    /// Adds `n` to counter `index`; does nothing if there is no such counter.
    #[inline]
    pub fn add(&self, index: usize, n: u64) {
        let Some(words) = self.words else {
            return self.counters.add(index, n);
        };
        if index >= N {
            return;
        }
        let word = words.wrapping_add(index);
        // SAFETY: By the type invariant there are `N` words, and `index` is less. Only this CPU
        // writes to them, and no other code of it does meanwhile: with softirqs disabled, neither
        // tasks, as the kernel is not PREEMPT_RT, nor softirqs; and hard interrupts do not add to
        // these counters. Other CPUs read whole words at any time: hence volatile, as READ_ONCE()
        // and WRITE_ONCE() are.
        unsafe { word.write_volatile(word.read_volatile().wrapping_add(n)) };
    }
}

impl<const N: usize> Drop for PerCpuCounters<N> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant this object owns the allocation, and nothing uses it any
        // more.
        unsafe { bindings::free_percpu(self.0.as_ptr().cast()) };
    }
}
