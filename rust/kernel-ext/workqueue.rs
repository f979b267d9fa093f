// SPDX-License-Identifier: GPL-2.0

//! Owned work queues, and delayed work items that hold a reference to their queue.
//!
//! C header: [`include/linux/workqueue.h`](srctree/include/linux/workqueue.h)

use crate::cpu::Cpu;
use core::ptr::NonNull;
use kernel::{
    bindings,
    error::code::*,
    prelude::*,
    sync::Arc,
    time::Jiffies,
    workqueue::{HasDelayedWork, HasWork, RawWorkItem, Work, WorkItem},
};

/// Flags of a [`Queue`], combined with `|`.
#[derive(Clone, Copy)]
pub struct Flags(u32);

impl Flags {
    /// Items may run on any CPU, not only on the CPU that queued them.
    pub const UNBOUND: Self = Self(bindings::wq_flags_WQ_UNBOUND);
    /// The queue has a rescuer thread, so that it makes progress when memory is short.
    pub const MEM_RECLAIM: Self = Self(bindings::wq_flags_WQ_MEM_RECLAIM);
}

impl core::ops::BitOr for Flags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// An owned work queue.
///
/// Dropping it drains it: process context, may sleep, not from one of its items. A delayed item
/// whose timer runs is not queued yet, but holds a reference to its queue: see [`HasQueue`].
///
/// # Invariants
///
/// `queue` comes from `alloc_workqueue()`. Only `drop` destroys it.
pub struct Queue {
    queue: NonNull<bindings::workqueue_struct>,
}

// SAFETY: A work queue is not bound to a thread: any thread may use or destroy it.
unsafe impl Send for Queue {}
// SAFETY: Shared access only queues and drains, which the work queue serializes with its own locks.
unsafe impl Sync for Queue {}

impl Queue {
    /// Makes a queue. Process context, may sleep. `ENOMEM` if there is no memory.
    pub fn new(name: &CStr, flags: Flags) -> Result<Self> {
        // 0: the kernel's default limit of active items.
        Self::with_max(name, flags.0, 0)
    }

    /// Makes a queue whose items run one at a time, in the order in which they were queued.
    /// Process context, may sleep. `ENOMEM` if there is no memory.
    pub fn ordered(name: &CStr, flags: Flags) -> Result<Self> {
        let ordered = bindings::wq_flags_WQ_UNBOUND | bindings::wq_flags___WQ_ORDERED;

        Self::with_max(name, flags.0 | ordered, 1)
    }

    /// Makes a queue whose items run on the CPU for which they are queued, up to `max` at a time on
    /// each CPU. They may keep their CPU for long. Process context, may sleep. `ENOMEM` if there is
    /// no memory.
    pub fn per_cpu(name: &CStr, flags: Flags, max: u32) -> Result<Self> {
        let per_cpu = bindings::wq_flags_WQ_PERCPU | bindings::wq_flags_WQ_CPU_INTENSIVE;

        Self::with_max(name, flags.0 | per_cpu, max.try_into()?)
    }

    fn with_max(name: &CStr, flags: u32, max_active: c_int) -> Result<Self> {
        // SAFETY: Both strings are NUL-terminated, and `%s` takes the one argument, a string.
        let queue = unsafe {
            bindings::alloc_workqueue_noprof(
                c"%s".as_char_ptr(),
                flags,
                max_active,
                name.as_char_ptr(),
            )
        };

        // INVARIANT: `alloc_workqueue()` made this queue, and nothing else has its pointer.
        Ok(Self {
            queue: NonNull::new(queue).ok_or(ENOMEM)?,
        })
    }

    /// Waits until the queue is empty and idle. Meanwhile only items of the queue may queue items
    /// on it. Process context, may sleep; not from an item of the queue.
    pub fn drain(&self) {
        // SAFETY: By the type's invariant the queue is valid until `drop`.
        unsafe { bindings::drain_workqueue(self.queue.as_ptr()) }
    }

    /// Queues an item. An item that is already queued keeps its place; an item that is running
    /// runs once more. Any context.
    ///
    /// For an item in an `Arc`, returns an error with the `Arc` in it if the item was already
    /// queued.
    pub fn enqueue<W, const ID: u64>(&self, item: W) -> W::EnqueueOutput
    where
        W: RawWorkItem<ID> + Send + 'static,
    {
        self.kernel().enqueue(item)
    }

    /// Queues an item, unless it is queued already, or its timer runs. In each case a run follows
    /// that sees the caller's earlier writes, unless somebody cancels the item. Any context.
    pub fn kick<T, const ID: u64>(&self, item: &Arc<T>)
    where
        T: HasWork<T, ID> + WorkItem<ID, Pointer = Arc<T>> + Send + Sync + 'static,
    {
        // The `Arc` comes back if the item was queued: then the queue has a reference already.
        let _ = self.enqueue::<Arc<T>, ID>(item.clone());
    }

    /// As [`Self::kick`], for a queue that [`Self::per_cpu`] has made: the item runs on `cpu`, or
    /// on any CPU if that is not online any more.
    pub fn kick_on<T, const ID: u64>(&self, cpu: Cpu, item: &Arc<T>)
    where
        T: HasWork<T, ID> + WorkItem<ID, Pointer = Arc<T>> + Send + Sync + 'static,
    {
        let queue = self.queue.as_ptr();
        let enqueue =
            // SAFETY: By the type's invariant the queue is valid until `drop`. `__enqueue` passes a
            // pointer to an item that is valid now, and, if it gets queued, until it runs. A CPU
            // that has been online has a pool of workers.
            |work| unsafe { bindings::queue_work_on(cpu.as_raw(), queue, work) };

        // The `Arc` comes back if the item was queued: then the queue has a reference already.
        // SAFETY: `enqueue` returns false only if the item is on a queue already. The item is
        // `Send` and `'static`, so any thread may run it at any time.
        let _ = unsafe { RawWorkItem::<ID>::__enqueue(item.clone(), enqueue) };
    }

    fn kernel(&self) -> &kernel::workqueue::Queue {
        // SAFETY: By the type's invariant the queue is valid until `drop`, so as long as `self`.
        unsafe { kernel::workqueue::Queue::from_raw(self.queue.as_ptr()) }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: By the type's invariant the queue is valid and nothing else destroys it. No timer
        // points to it: see `HasQueue`.
        unsafe { bindings::destroy_workqueue(self.queue.as_ptr()) }
    }
}

/// An object that knows the queue of its delayed items. It may change its choice: the next item
/// that is queued goes to the new one.
///
/// The timer of a delayed item has a raw pointer to the queue, and the queue must outlive it. This
/// is why any `queue` without unsafe code is sound: it cannot know how long the caller will borrow
/// the object, so the queue is valid for as long as the object is shared, and a timer that runs has
/// an `Arc` of it.
pub trait HasQueue {
    /// Returns the queue. Any context.
    fn queue(&self) -> &Queue;
}

/// Queues an item on its queue after `delay` (in jiffies). Replaces a running timer, and takes the
/// item off the queue if it is queued. Any context.
///
/// If two callers race, either delay may win.
pub fn mod_delayed_work<T, const ID: u64>(item: &Arc<T>, delay: Jiffies)
where
    T: HasQueue + WorkItem<ID, Pointer = Arc<T>> + HasDelayedWork<T, ID> + Send + Sync + 'static,
{
    cancel_delayed_work::<T, ID>(item);
    // The queue is valid until the timer has expired: see `HasQueue`. If another caller wins the
    // race, this drops a reference, but not the last one: the caller has `item`.
    let _ = item
        .queue()
        .kernel()
        .enqueue_delayed::<Arc<T>, ID>(item.clone(), delay);
}

/// Lets the timer of a delayed item expire at once, if it runs. Any context.
pub fn expedite_delayed_work<T, const ID: u64>(item: &Arc<T>)
where
    T: WorkItem<ID, Pointer = Arc<T>> + HasDelayedWork<T, ID>,
{
    let object: *const T = &**item;

    // SAFETY: `item` keeps the object alive. `HasDelayedWork` guarantees that the work is the
    // `work` field of an initialized `delayed_work`. The function changes nothing but the time of a
    // timer that runs, which any context may do at any time. Each read of `jiffies` gives a time.
    unsafe {
        let work = Work::raw_get(T::raw_get_work(object.cast_mut()));
        let work = kernel::container_of!(work, bindings::delayed_work, work);

        bindings::mod_timer_pending(
            &raw mut (*work).timer,
            (&raw const bindings::jiffies).read_volatile(),
        );
    }
}

/// Takes a delayed item off its queue, or stops its timer. Does not wait for a running item. Any
/// context.
///
/// Somebody who queues the item at the same time may find that it is queued already. So only for
/// callers that exclude others who queue it, or that do not need a run any more.
pub fn cancel_delayed_work<T, const ID: u64>(item: &Arc<T>)
where
    T: WorkItem<ID, Pointer = Arc<T>> + HasDelayedWork<T, ID>,
{
    // SAFETY: `HasDelayedWork` guarantees that the work is the `work` field of an initialized
    // `delayed_work` with the same access rules. The function returns true only if it has taken the
    // item off its queue, or stopped its timer.
    unsafe {
        cancel_with::<T, ID>(item, |work| {
            bindings::cancel_delayed_work(kernel::container_of!(work, bindings::delayed_work, work))
        })
    };
}

/// Takes an item off its queue. Does not wait for a running item. Any context. Returns whether it
/// was queued.
pub fn cancel_work<T, const ID: u64>(item: &Arc<T>) -> bool
where
    T: WorkItem<ID, Pointer = Arc<T>> + HasWork<T, ID>,
{
    // SAFETY: The function returns true only if it has taken the item off its queue.
    unsafe { cancel_with::<T, ID>(item, |work| bindings::cancel_work(work)) }
}

/// Cancels an item by `cancel`, and drops the reference that its queue had. Any context. Returns
/// what `cancel` returns.
///
/// # Safety
///
/// `cancel` gets the initialized work of `item`. It must return true only if the work was queued,
/// or its timer ran, and now neither is so.
unsafe fn cancel_with<T, const ID: u64>(
    item: &Arc<T>,
    cancel: impl FnOnce(*mut bindings::work_struct) -> bool,
) -> bool
where
    T: WorkItem<ID, Pointer = Arc<T>> + HasWork<T, ID>,
{
    let object: *const T = &**item;
    // SAFETY: `item` keeps the object alive. `HasWork` guarantees that its work is an initialized
    // `work_struct` in the object.
    let cancelled = cancel(unsafe { Work::raw_get(T::raw_get_work(object.cast_mut())) });

    if cancelled {
        // SAFETY: Queueing the item turned an `Arc` into a raw pointer for `run` to take back. By
        // the caller's promise it was cancelled, so `run` does not, and this is the only owner of
        // that reference.
        drop(unsafe { Arc::from_raw(object) });
    }
    cancelled
}
