// SPDX-License-Identifier: GPL-2.0

//! The table of queue pairs by number.

use crate::qp::Qp;
use kernel::{
    new_spinlock_irq,
    prelude::*,
    rbtree::{RBTree, RBTreeNode},
    sync::{Arc, SpinLockIrq},
};

/// Queue pair numbers have 24 bits. 0 and 1 are special queue pairs of other transports.
const MASK: u32 = 0xff_ffff;
const FIRST: u32 = 2;
/// Attempts to find a free number. At most one in 160 of the 2^24 is taken.
const ATTEMPTS: usize = 32;

/// The queue pairs of a device.
///
/// Any user can read the number of a queue pair (`rdma resource show qp`) or guess it, and rdma_cm
/// accepts it. So a lookup finds no queue pair of another process: see
/// [`Owner`](super::owner::Owner).
///
/// The lock disables interrupts: iw_cm looks up numbers under a lock of its own that does.
#[pin_data]
pub(crate) struct QpTable {
    #[pin]
    qps: SpinLockIrq<RBTree<u32, Arc<Qp>>>,
}

impl QpTable {
    /// Creates an empty table. Any context.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            qps <- new_spinlock_irq!(RBTree::new(), "riw::QpTable::qps"),
        })
    }

    /// Returns a random free number, so that a late user of an old number does not hit the next
    /// queue pair. Any context. Fails with `ENOSPC` if it finds none.
    pub(super) fn free_number(&self) -> Result<u32> {
        for _ in 0..ATTEMPTS {
            let [a, b, c, ..] = rdma::device::random().to_ne_bytes();
            let number = u32::from_ne_bytes([a, b, c, 0]) & MASK;

            if number >= FIRST && self.qps.lock().get(&number).is_none() {
                return Ok(number);
            }
        }
        Err(ENOSPC)
    }

    /// Adds a queue pair. Process context; may sleep. Fails with `EBUSY` if the number is taken,
    /// `ENOMEM` without memory.
    pub(super) fn insert(&self, number: u32, qp: Arc<Qp>) -> Result {
        let node = RBTreeNode::new(number, qp, GFP_KERNEL_ACCOUNT)?;
        let mut qps = self.qps.lock();

        if qps.get(&number).is_some() {
            // Drop the lock first: this may be the last reference.
            drop(qps);
            drop(node);
            return Err(EBUSY);
        }
        qps.insert(node);
        Ok(())
    }

    /// Removes a queue pair. Process context, since this may drop the last reference.
    pub(crate) fn remove(&self, number: u32) {
        let node = self.qps.lock().remove_node(&number);
        drop(node);
    }

    /// Lets a queue pair look for a receive WR, if it exists. Any context.
    pub(super) fn retry_receive(&self, number: u32) {
        if let Some(qp) = self.qps.lock().get(&number) {
            qp.retry_receive();
        }
    }

    /// Calls `f` with a queue pair of the calling process or of a kernel user, with interrupts off.
    /// Process context, maybe with a spin lock held.
    pub(crate) fn with<R>(&self, number: u32, f: impl FnOnce(&Arc<Qp>) -> Option<R>) -> Option<R> {
        let qps = self.qps.lock();

        f(qps.get(&number).filter(|qp| qp.owner.may_be_current())?)
    }
}
