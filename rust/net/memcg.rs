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

    /// The pointer, which is null where the kernel knows no memory cgroups.
    pub(crate) fn as_raw(&self) -> *mut mem_cgroup {
        self.0
    }
}

impl Drop for MemCgroup {
    fn drop(&mut self) {
        // SAFETY: The reference is ours, or there is none, which is ignored.
        unsafe { bindings::put_memcg(self.0) }
    }
}
