// SPDX-License-Identifier: GPL-2.0

//! Memory cgroups, to charge the user for kernel memory that serves the user.
//!
//! C header: [`include/linux/memcontrol.h`](srctree/include/linux/memcontrol.h)

use core::ptr::NonNull;
use kernel::{bindings::mem_cgroup, prelude::*};
use riw_bindings as bindings;

/// A reference to a memory cgroup, or none. May be cloned and dropped in any context.
///
/// # Invariants
///
/// The pointer is null, or this object owns one reference to the memory cgroup.
pub struct MemCgroup(*mut mem_cgroup);

// SAFETY: The reference count is atomic: any thread may drop a reference.
unsafe impl Send for MemCgroup {}
// SAFETY: Shared access only takes references and charges memory, which any thread may do at any
// time.
unsafe impl Sync for MemCgroup {}

impl MemCgroup {
    /// Returns the memory cgroup of the calling process; for a kernel thread, the root. Process
    /// context.
    pub fn current() -> Self {
        // INVARIANT: A pointer that is not null comes with a reference.
        // SAFETY: `current->mm` is stable for the running task.
        Self(unsafe { bindings::current_memcg() })
    }

    /// Returns none: work for it is charged to the task that does it. Any context.
    pub const fn none() -> Self {
        // INVARIANT: The pointer is null.
        Self(core::ptr::null_mut())
    }

    /// Calls `f` and returns its result. Charges memory that `f` allocates with `__GFP_ACCOUNT` to
    /// this memory cgroup; without one, to the calling process as usual. A worker does not wait
    /// because the memory cgroup is above `memory.high`. Any context that `f` allows.
    pub fn charge<R>(&self, f: impl FnOnce() -> R) -> R {
        // SAFETY: `self` keeps the memory cgroup alive until `before` is restored below. `f` cannot
        // unwind past that: the kernel does not unwind.
        let before = unsafe { bindings::set_active_memcg(self.0) };
        let result = f();

        // SAFETY: `before` was active when this function was called. Its setter restores its own
        // predecessor only after this function returns, and keeps `before` alive until then.
        unsafe { bindings::set_active_memcg(before) };
        result
    }

    /// Allocates an empty vector for `capacity` elements, charged to this memory cgroup. May sleep.
    /// `ENOMEM` if there is no memory; the kernel does not log that. A worker never meets the OOM
    /// killer of a memory cgroup at its limit.
    pub fn vec<T>(&self, capacity: usize) -> Result<KVVec<T>> {
        let start = self.zeros(capacity)?;

        // SAFETY: `zeros` allocated it for `capacity` elements as `KVmalloc` does, or there is no
        // capacity and it dangles. No element is said to be initialized.
        Ok(unsafe { KVVec::from_raw_parts(start.as_ptr(), 0, capacity) })
    }

    /// Allocates a vector of `len` zeros. May sleep, and fails as [`Self::vec`] does.
    pub fn zeroed(&self, len: usize) -> Result<KVVec<u8>> {
        let start = self.zeros(len)?;

        // SAFETY: `zeros` allocated it for `len` elements as `KVmalloc` does, and initialized them
        // all; or there is none and it dangles.
        Ok(unsafe { KVVec::from_raw_parts(start.as_ptr(), len, len) })
    }

    /// Allocates memory for `value` and moves it there. May sleep, and fails as [`Self::vec`] does.
    pub fn boxed<T>(&self, value: T) -> Result<KVBox<T>> {
        let start = self.zeros(1)?;

        // SAFETY: `zeros` allocated it for one element.
        unsafe { start.write(value) };
        // SAFETY: `zeros` allocated it as `KVmalloc` does, `value` has been written there, and
        // nobody else has the pointer.
        Ok(unsafe { KVBox::from_raw(start.as_ptr()) })
    }

    /// Allocates memory for a `KVVec` of `len` elements, all zeros. May sleep, and fails as
    /// [`Self::vec`] does.
    fn zeros<T>(&self, len: usize) -> Result<NonNull<T>> {
        const { assert!(align_of::<T>() <= align_of::<u64>() && size_of::<T>() != 0) };
        let size = len.checked_mul(size_of::<T>()).ok_or(ENOMEM)?;

        // A vector without capacity has no memory.
        if size == 0 {
            return Ok(NonNull::dangling());
        }
        // SAFETY: It takes any size. The callers' context may sleep (see above). `kvzalloc()`
        // allocates as `KVmalloc` does, fewer bytes than `isize::MAX`, and aligned for a `u64`, and
        // so for a `T`.
        let start = self.charge(|| unsafe { bindings::kvzalloc_charged(size) });

        Ok(NonNull::new(start).ok_or(ENOMEM)?.cast())
    }

    /// Makes room for another element in `vec`, as [`Self::vec`] does; then
    /// [`push_within_capacity`](KVVec::push_within_capacity) succeeds.
    pub fn reserve_one<T>(&self, vec: &mut KVVec<T>) -> Result {
        if vec.len() < vec.capacity() {
            return Ok(());
        }
        let mut larger = self.vec(vec.capacity().saturating_mul(2).max(4))?;

        for element in core::mem::take(vec) {
            larger.push_within_capacity(element)?;
        }
        *vec = larger;
        Ok(())
    }
}

/// Lets the running worker forget what it has charged above `memory.high`, for the users of earlier
/// work items and by sockets: it waits for that in a later charge, when it serves somebody else.
/// For the begin of a work item. Any context.
pub fn forget_excess() {
    // SAFETY: The function changes a counter of the running task, and has no other requirements.
    unsafe { bindings::forget_excess() };
}

impl Clone for MemCgroup {
    fn clone(&self) -> Self {
        // INVARIANT: The result is null, or comes with a new reference.
        // SAFETY: The pointer is null, which `get_memcg()` accepts, or valid by the reference of
        // `self`.
        Self(unsafe { bindings::get_memcg(self.0) })
    }
}

impl Drop for MemCgroup {
    fn drop(&mut self) {
        // SAFETY: By the type's invariant `self` owns the reference, or the pointer is null, which
        // `put_memcg()` ignores.
        unsafe { bindings::put_memcg(self.0) }
    }
}
