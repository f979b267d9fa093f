// SPDX-License-Identifier: GPL-2.0

//! Memory cgroups, to charge the user for kernel memory that serves the user.
//!
//! C header: [`include/linux/memcontrol.h`](srctree/include/linux/memcontrol.h)

use kernel::bindings::mem_cgroup;
use riw_bindings as bindings;

/// A reference to a memory cgroup, or none. May be cloned and
/// dropped in any context.
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
    /// this memory cgroup; without one, to the calling process as usual. Any context that `f`
    /// allows.
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
