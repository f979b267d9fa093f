// SPDX-License-Identifier: GPL-2.0

//! Memory cgroups, to charge what the kernel holds for a user to that user.
//!
//! C header: [`include/linux/memcontrol.h`](srctree/include/linux/memcontrol.h)

use kernel::bindings::mem_cgroup;
use riw_bindings as bindings;

/// A reference to a memory cgroup.
///
/// # Invariants
///
/// The pointer is null, or one reference of the memory cgroup is ours.
pub struct MemCgroup(*mut mem_cgroup);

// SAFETY: A reference may be dropped by any thread.
unsafe impl Send for MemCgroup {}
// SAFETY: There is nothing that one could do with a shared one but to charge memory to it, which
// all threads may.
unsafe impl Sync for MemCgroup {}

impl MemCgroup {
    /// That of the calling process; the root's for a kernel thread. Process context.
    pub fn current() -> Self {
        // INVARIANT: What is returned comes with a reference.
        // SAFETY: A task's `mm` is its own to read.
        Self(unsafe { bindings::current_memcg() })
    }

    /// Calls `f`; what it allocates with `__GFP_ACCOUNT` is charged to this memory cgroup, or to that
    /// of the calling process where the kernel knows none.
    pub fn charge<R>(&self, f: impl FnOnce() -> R) -> R {
        // SAFETY: The memory cgroup is null, or valid until the one before it is back below: a closure
        // does not unwind in the kernel.
        let before = unsafe { bindings::set_active_memcg(self.0) };
        let result = f();

        // SAFETY: Who has set it waits for us to return.
        unsafe { bindings::set_active_memcg(before) };
        result
    }
}

impl Clone for MemCgroup {
    fn clone(&self) -> Self {
        // INVARIANT: The reference just taken, if there is a memory cgroup.
        // SAFETY: It is null, or valid as one reference is ours.
        Self(unsafe { bindings::get_memcg(self.0) })
    }
}

impl Drop for MemCgroup {
    fn drop(&mut self) {
        // SAFETY: The reference is ours, or there is none, which is ignored.
        unsafe { bindings::put_memcg(self.0) }
    }
}
