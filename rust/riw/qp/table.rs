// SPDX-License-Identifier: GPL-2.0

//! Queue pairs by their numbers.

use crate::qp::Qp;
use kernel::{
    new_spinlock_irq,
    prelude::*,
    rbtree::{RBTree, RBTreeNode},
    sync::{Arc, SpinLockIrq},
};

/// Numbers have 24 bits; 0 and 1 are other transports' special queue pairs.
const MASK: u32 = 0xff_ffff;
const FIRST: u32 = 2;
/// How often a free number is looked for: of 2^24 at most one in 160 is taken.
const ATTEMPTS: usize = 32;

/// The queue pairs of a device.
///
/// The connection manager is told a queue pair by its number, which any user can read
/// (`rdma resource show qp`) or guess. So a look-up finds those of the calling process only: see
/// [`Owner`](super::owner::Owner).
///
/// Interrupts are off while the lock is held: iw_cm looks numbers up under a lock of its own, which
/// is taken with interrupts off.
#[pin_data]
pub(crate) struct Numbers {
    #[pin]
    qps: SpinLockIrq<RBTree<u32, Arc<Qp>>>,
}

impl Numbers {
    /// No queue pairs.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            qps <- new_spinlock_irq!(RBTree::new(), "riw::Numbers::qps"),
        })
    }

    /// A number that is free now, at random: a late user of an old number does not meet the next
    /// queue pair. Any context.
    pub(crate) fn free_number(&self) -> Result<u32> {
        for _ in 0..ATTEMPTS {
            let [a, b, c, ..] = rdma::device::random().to_ne_bytes();
            let number = u32::from_ne_bytes([a, b, c, 0]) & MASK;

            if number >= FIRST && self.qps.lock().get(&number).is_none() {
                return Ok(number);
            }
        }
        Err(ENOSPC)
    }

    /// Adds a queue pair; `EBUSY` if the number is taken. May sleep.
    pub(crate) fn insert(&self, number: u32, qp: Arc<Qp>) -> Result {
        let node = RBTreeNode::new(number, qp, GFP_KERNEL)?;
        let mut qps = self.qps.lock();

        if qps.get(&number).is_some() {
            // Not under the lock: the reference may be the last.
            drop(qps);
            drop(node);
            return Err(EBUSY);
        }
        qps.insert(node);
        Ok(())
    }

    /// Takes a queue pair out. Process context: the reference may be the last.
    pub(crate) fn remove(&self, number: u32) {
        let node = self.qps.lock().remove_node(&number);
        drop(node);
    }

    /// Finds a queue pair of the calling process. Process context: the reference may become the
    /// last.
    pub(crate) fn get(&self, number: u32) -> Option<Arc<Qp>> {
        self.with(number, |qp| Some(qp.clone()))
    }

    /// Asks a queue pair of the calling process for something, with interrupts off. Process context,
    /// also with a spin lock held.
    pub(crate) fn with<R>(
        &self,
        number: u32,
        ask: impl FnOnce(&Arc<Qp>) -> Option<R>,
    ) -> Option<R> {
        let qps = self.qps.lock();

        ask(qps.get(&number).filter(|qp| qp.owner.is_current())?)
    }
}
