// SPDX-License-Identifier: GPL-2.0

//! The table of queue pairs by number.

use core::ptr::NonNull;
use kernel::{
    new_spinlock_irq,
    prelude::*,
    rbtree::{RBTree, RBTreeNode},
    sync::SpinLockIrq,
};
use kernel_ext::random::random_u64;
use riw_bindings as bindings;

/// Queue pair numbers have 24 bits. 0 and 1 are special queue pairs of other transports.
const MASK: u32 = 0xff_ffff;
const FIRST: u32 = 2;
/// Attempts to find a free number.
const ATTEMPTS: usize = 32;

/// The queue pairs of a device. A number is taken from before the creation of its queue pair until
/// the last reference to that is dropped, so a holder of a reference has the number to itself.
///
/// The lock disables interrupts: iw_cm looks up numbers under a lock of its own that does.
#[pin_data]
pub(crate) struct QpTable {
    /// `None` before the queue pair is published.
    #[pin]
    qps: SpinLockIrq<RBTree<u32, Option<Published>>>,
}

/// A queue pair that has been created. Its memory is not freed before it leaves the table.
struct Published {
    qp: NonNull<bindings::ib_qp>,
    /// Its destruction has begun.
    hidden: bool,
}

// SAFETY: Any thread may take a reference to a queue pair: its data is `Send` and `Sync`.
unsafe impl Send for Published {}

/// A number that is taken, for a queue pair that is being created. The drop gives it back.
pub(super) struct TakenNumber<'a> {
    table: &'a QpTable,
    number: u32,
}

impl QpTable {
    /// Creates an empty table. Any context.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            qps <- new_spinlock_irq!(RBTree::new(), "rdma::QpTable::qps"),
        })
    }

    /// Takes a random free number, so that a late user of an old number does not hit the next queue
    /// pair. Process context; may sleep. Fails with `ENOSPC` if it finds none, `ENOMEM` without
    /// memory.
    pub(super) fn take_number(&self) -> Result<TakenNumber<'_>> {
        for _ in 0..ATTEMPTS {
            let [a, b, c, ..] = random_u64().to_ne_bytes();
            let number = u32::from_ne_bytes([a, b, c, 0]) & MASK;

            if number < FIRST {
                continue;
            }
            let node = RBTreeNode::new(number, None, GFP_KERNEL_ACCOUNT)?;
            let mut qps = self.qps.lock();

            if qps.get(&number).is_none() {
                qps.insert(node);
                return Ok(TakenNumber {
                    table: self,
                    number,
                });
            }
        }
        Err(ENOSPC)
    }

    /// Calls `f` with a queue pair; `hidden`: also if its destruction has begun. Its memory is not
    /// freed before `f` returns. Any context; interrupts are off.
    pub(super) fn with<R>(
        &self,
        number: u32,
        hidden: bool,
        f: impl FnOnce(NonNull<bindings::ib_qp>) -> Option<R>,
    ) -> Option<R> {
        let qps = self.qps.lock();
        let published = qps.get(&number)?.as_ref()?;

        match hidden || !published.hidden {
            true => f(published.qp),
            false => None,
        }
    }

    /// Keeps the queue pair from being found. The caller destroys it afterwards, and then calls
    /// [`Self::release`]. Process context; does not sleep.
    pub(super) fn hide(&self, number: u32) {
        if let Some(Some(published)) = self.qps.lock().get_mut(&number) {
            published.hidden = true;
        }
    }

    /// Gives a number back, after the last reference to its queue pair is dropped. Process context;
    /// does not sleep.
    pub(super) fn release(&self, number: u32) {
        let node = self.qps.lock().remove_node(&number);
        drop(node);
    }
}

impl TakenNumber<'_> {
    /// Returns the number. Any context.
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// Lets others find the queue pair. The number stays taken. Process context; does not sleep.
    ///
    /// # Safety
    ///
    /// `qp` must be created, for the device of the table. Its memory must not be freed before
    /// [`QpTable::release`] has been called for its number.
    pub(super) unsafe fn publish(self, qp: *mut bindings::ib_qp) {
        if let Some(published) = self.table.qps.lock().get_mut(&self.number) {
            *published = NonNull::new(qp).map(|qp| Published { qp, hidden: false });
        }
        core::mem::forget(self);
    }
}

impl Drop for TakenNumber<'_> {
    fn drop(&mut self) {
        self.table.release(self.number);
    }
}
