// SPDX-License-Identifier: GPL-2.0

//! Work queues of one's own, and delayed items that keep them.
//!
//! C header: [`include/linux/workqueue.h`](srctree/include/linux/workqueue.h)

use core::ptr::NonNull;
use kernel::{
    bindings,
    error::code::*,
    prelude::*,
    sync::Arc,
    time::Jiffies,
    workqueue::{HasDelayedWork, RawWorkItem, Work, WorkItem},
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
/// Dropping it runs what is queued and waits for that. An item that waits for its time is not queued
/// yet, but it keeps its queue: see [`HasQueue`].
///
/// # Invariants
///
/// `queue` was made by `alloc_workqueue()`, and nobody else destroys it.
pub struct Queue {
    queue: NonNull<bindings::workqueue_struct>,
}

// SAFETY: A work queue belongs to no thread.
unsafe impl Send for Queue {}
// SAFETY: Its functions may be called by several threads at once: they take its locks.
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

    /// Has an item run. An item that is queued already keeps its place; one that is running runs
    /// once more. Any context.
    ///
    /// What is returned for an item in an `Arc` says whether it was queued now; if not, it gives the
    /// reference back.
    pub fn enqueue<W, const ID: u64>(&self, item: W) -> W::EnqueueOutput
    where
        W: RawWorkItem<ID> + Send + 'static,
    {
        self.kernel().enqueue(item)
    }

    fn kernel(&self) -> &kernel::workqueue::Queue {
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

/// An object that keeps the queue on which its delayed items run. [`impl_has_queue`] implements it.
///
/// The timer of an item that waits for its time has a pointer to the queue, and the item is kept
/// until it has run or is cancelled. So is the queue, then.
///
/// # Safety
///
/// As long as somebody else has a reference to the object, `queue` must return the same queue, and
/// the object must keep that.
pub unsafe trait HasQueue {
    /// The queue.
    fn queue(&self) -> &Queue;
}

/// Implements [`HasQueue`]: `impl_has_queue! { impl HasQueue for Thing { self.queue } }`, where the
/// field is an `Arc<Queue>`.
#[macro_export]
macro_rules! impl_has_queue {
    ($(impl HasQueue for $self:ty { self.$field:ident })*) => {$(
        // SAFETY: The field is an `Arc` itself: a raw pointer is not coerced. It cannot be replaced
        // as long as somebody else has a reference to the object.
        unsafe impl $crate::workqueue::HasQueue for $self {
            fn queue(&self) -> &$crate::workqueue::Queue {
                let queue: *const ::kernel::sync::Arc<$crate::workqueue::Queue> =
                    &raw const self.$field;

                // SAFETY: It points to a field of `self`.
                unsafe { &*queue }
            }
        }
    )*};
}
pub use impl_has_queue;

/// Has an item run on its queue when `delay` has passed. If it was waiting for another time, or was
/// queued, that is forgotten. Any context.
///
/// If two callers do this for one item at the same time, either's delay may hold.
pub fn mod_delayed_work<T, const ID: u64>(item: &Arc<T>, delay: Jiffies)
where
    T: HasQueue + WorkItem<ID, Pointer = Arc<T>> + HasDelayedWork<T, ID> + Send + Sync + 'static,
{
    cancel_delayed_work::<T, ID>(item);
    // `HasQueue` is why the queue is there when the time has come. The reference that comes back
    // where somebody else was first is not the last one.
    let _ = item
        .queue()
        .kernel()
        .enqueue_delayed::<Arc<T>, ID>(item.clone(), delay);
}

/// Takes a delayed item off its queue, or stops its timer. Does not wait for it if it runs. Any
/// context.
pub fn cancel_delayed_work<T, const ID: u64>(item: &Arc<T>)
where
    T: WorkItem<ID, Pointer = Arc<T>> + HasDelayedWork<T, ID>,
{
    let object: *const T = &**item;
    // SAFETY: The object is valid. By the requirements of `HasDelayedWork` its work is part of a
    // delayed work, which is initialised; and the pointers stay within the object.
    let cancelled = unsafe {
        let work = Work::raw_get(T::raw_get_work(object.cast_mut()));

        bindings::cancel_delayed_work(kernel::container_of!(work, bindings::delayed_work, work))
    };

    if cancelled {
        // SAFETY: It had been queued, for which `Arc::into_raw` was called, and it will not run: the
        // reference is ours.
        drop(unsafe { Arc::from_raw(object) });
    }
}
