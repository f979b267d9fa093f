// SPDX-License-Identifier: GPL-2.0

//! Work queues of one's own, and items that can be kicked and cancelled.
//!
//! C header: [`include/linux/workqueue.h`](srctree/include/linux/workqueue.h)

use core::{ops::Deref, ptr::NonNull};
use kernel::{
    bindings,
    error::code::*,
    prelude::*,
    sync::Arc,
    workqueue::{HasDelayedWork, HasWork, Work, WorkItem, WorkItemPointer},
};

/// Properties of a [`Queue`]; to be joined by `|`.
#[derive(Clone, Copy)]
pub struct Flags(u32);

impl Flags {
    /// Items run on any CPU, not on the one that queued them.
    pub const UNBOUND: Self = Self(bindings::wq_flags_WQ_UNBOUND);
    /// Has a thread of its own for when memory is short, so that it always makes progress.
    pub const MEM_RECLAIM: Self = Self(bindings::wq_flags_WQ_MEM_RECLAIM);
    /// Can be seen and tuned below `/sys/bus/workqueue/devices`.
    pub const SYSFS: Self = Self(bindings::wq_flags_WQ_SYSFS);
}

impl core::ops::BitOr for Flags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// An owned work queue.
///
/// Dropping it runs what is queued, and waits for that. Delayed items whose time has not come are
/// not counted as queued: they must have been cancelled before.
///
/// # Invariants
///
/// `queue` was made by `alloc_workqueue()` and is destroyed by no one else.
pub struct Queue {
    queue: NonNull<bindings::workqueue_struct>,
}

// SAFETY: Work queues are used from any thread.
unsafe impl Send for Queue {}
// SAFETY: As above.
unsafe impl Sync for Queue {}

impl Queue {
    /// Makes a queue. Process context, may sleep.
    pub fn new(name: &CStr, flags: Flags) -> Result<Self> {
        // As many items at once as the kernel thinks right.
        Self::with_max(name, flags.0, 0)
    }

    /// Makes a queue whose items run one at a time, in the order in which they were queued. Process
    /// context, may sleep.
    pub fn ordered(name: &CStr, flags: Flags) -> Result<Self> {
        let ordered = bindings::wq_flags_WQ_UNBOUND | bindings::wq_flags___WQ_ORDERED;

        Self::with_max(name, flags.0 | ordered, 1)
    }

    fn with_max(name: &CStr, flags: u32, max_active: c_int) -> Result<Self> {
        // SAFETY: All strings are terminated; the format takes one string.
        let queue = unsafe {
            bindings::alloc_workqueue_noprof(
                c"%s".as_ptr().cast(),
                flags,
                max_active,
                name.as_ptr().cast::<c_char>(),
            )
        };

        // INVARIANT: It is a new queue.
        Ok(Self {
            queue: NonNull::new(queue).ok_or(ENOMEM)?,
        })
    }

    /// Waits until what is queued has run, and what that has queued, and so on. Only work items may
    /// queue anything meanwhile. Process context, may sleep; not from a work item.
    pub fn drain(&self) {
        // SAFETY: By the type's invariant the queue is valid.
        unsafe { bindings::drain_workqueue(self.queue.as_ptr()) }
    }

    /// Has a delayed item run as soon as may be, whether it is idle or waits for its time to come.
    ///
    /// If it is queued already it keeps its place. If it is running now it will run once more.
    /// While it is being cancelled nothing happens. Any context in which the reference may be
    /// dropped.
    pub fn kick<T, const ID: u64>(&self, item: Arc<T>)
    where
        T: WorkItem<ID, Pointer = Arc<T>> + HasDelayedWork<T, ID> + Send + Sync + 'static,
        Arc<T>: WorkItemPointer<ID>,
    {
        let item = Arc::into_raw(item).cast_mut();
        // SAFETY: `item` is valid: we own a reference. By the requirements of `HasDelayedWork` the
        // work is part of a delayed work.
        let delayed = unsafe {
            let work = raw_work::<T, ID>(item);
            kernel::container_of!(work, bindings::delayed_work, work)
        };

        // mod_delayed_work() would not do: it moves what is queued to the end, and when the item is
        // being cancelled it queues nothing, but says the same as when it has queued an idle item.
        loop {
            // SAFETY: The function of the work is that of `Arc<T>`, which takes over one reference
            // if this says that it is queued. The queue is valid.
            if unsafe {
                bindings::queue_delayed_work_on(
                    bindings::wq_misc_consts_WORK_CPU_UNBOUND as c_int,
                    self.queue.as_ptr(),
                    delayed,
                    0,
                )
            } {
                return;
            }
            // SAFETY: The work is valid, and initialised.
            if !unsafe { riw_bindings::delayed_work_waits(delayed) } {
                // It has not begun to run, and will; or it is being cancelled.
                // SAFETY: It comes from `into_raw`, and nobody has taken it over.
                drop(unsafe { Arc::from_raw(item) });
                return;
            }
            // SAFETY: As above.
            if unsafe { bindings::cancel_delayed_work(delayed) } {
                // SAFETY: The queue had a reference, from `into_raw`, and has it no more. It is not
                // the last one.
                drop(unsafe { Arc::from_raw(item) });
            }
        }
    }
}

impl Deref for Queue {
    type Target = kernel::workqueue::Queue;

    fn deref(&self) -> &Self::Target {
        // SAFETY: By the type's invariant it is valid for as long as `self`.
        unsafe { kernel::workqueue::Queue::from_raw(self.queue.as_ptr()) }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: By the type's invariant it is ours.
        unsafe { bindings::destroy_workqueue(self.queue.as_ptr()) }
    }
}

/// The `work_struct` of an item.
///
/// # Safety
///
/// `item` must be valid.
unsafe fn raw_work<T: HasWork<T, ID>, const ID: u64>(item: *mut T) -> *mut bindings::work_struct {
    // SAFETY: As the caller says; the result points into the same object.
    unsafe { Work::raw_get(T::raw_get_work(item)) }
}

/// Takes a delayed item off its queue, or off its timer, without waiting if it runs. Any context.
///
/// Returns whether it was queued; the reference that the queue had is dropped.
pub fn cancel_delayed_work<T, const ID: u64>(item: &Arc<T>) -> bool
where
    T: WorkItem<ID, Pointer = Arc<T>> + HasDelayedWork<T, ID>,
{
    // SAFETY: The item is valid, and its work part of a delayed work, which is initialised.
    unsafe { cancel_delayed::<T, ID>(item, bindings::cancel_delayed_work) }
}

/// Takes a delayed item off its queue, or off its timer, and waits for its end if it runs.
///
/// Afterwards it neither runs nor is queued, unless someone queues it again. Returns whether it
/// was queued; the reference that the queue had is dropped. Process context, may sleep; not from
/// the item itself.
pub fn cancel_delayed_work_sync<T, const ID: u64>(item: &Arc<T>) -> bool
where
    T: WorkItem<ID, Pointer = Arc<T>> + HasDelayedWork<T, ID>,
{
    // SAFETY: As above.
    unsafe { cancel_delayed::<T, ID>(item, bindings::cancel_delayed_work_sync) }
}

/// # Safety
///
/// `cancel` must be sound to call for any delayed work, and say whether it was queued.
unsafe fn cancel_delayed<T, const ID: u64>(
    item: &Arc<T>,
    cancel: unsafe extern "C" fn(*mut bindings::delayed_work) -> bool,
) -> bool
where
    T: WorkItem<ID, Pointer = Arc<T>> + HasDelayedWork<T, ID>,
{
    let item: *const T = &**item;
    // SAFETY: `item` is valid; its work is part of a delayed work, which is initialised.
    let pending = unsafe {
        let work = raw_work::<T, ID>(item.cast_mut());

        cancel(kernel::container_of!(work, bindings::delayed_work, work))
    };

    if pending {
        // SAFETY: It was queued, by `Arc::into_raw`, and will not run: the reference is ours.
        drop(unsafe { Arc::from_raw(item) });
    }
    pending
}
