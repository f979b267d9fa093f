// SPDX-License-Identifier: GPL-2.0

//! Allocation scopes.
//!
//! C header: [`include/linux/sched/mm.h`](srctree/include/linux/sched/mm.h)

use kernel::bindings::{PF_MEMALLOC, PF_MEMALLOC_NOIO};
use riw_bindings as bindings;

/// Calls `f` and returns its result. Memory that `f` allocates comes from the reserves if
/// necessary, and no allocation waits for memory to be reclaimed (`memalloc_noreclaim_save()`). For
/// work that reclaim itself may wait for, such as the work of a network block device. Process
/// context.
pub fn without_reclaim<R>(f: impl FnOnce() -> R) -> R {
    with_flags(PF_MEMALLOC, f)
}

/// Calls `f` and returns its result. No allocation of `f` starts or awaits I/O
/// (`memalloc_noio_save()`). For work that I/O itself may wait for. Process context.
pub fn without_io<R>(f: impl FnOnce() -> R) -> R {
    with_flags(PF_MEMALLOC_NOIO, f)
}

/// Calls `f` with flags of an allocation scope set. Process context.
fn with_flags<R>(flags: u32, f: impl FnOnce() -> R) -> R {
    // SAFETY: The function changes flags of the running task, which are restored below. `f` cannot
    // unwind past that: the kernel does not unwind.
    let changed = unsafe { bindings::memalloc_flags_save(flags) };
    let result = f();

    // SAFETY: `changed` is from the matching call above, by the same task.
    unsafe { bindings::memalloc_flags_restore(changed) };
    result
}
