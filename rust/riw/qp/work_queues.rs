// SPDX-License-Identifier: GPL-2.0

//! The work queues of queue pairs.

use super::Qp;
use kernel::sync::{atomic::ordering, Arc};
use kernel_ext::workqueue::{HasQueue, Queue};

/// The work queues of queue pairs. When there is no memory for another worker, the one rescuer of a
/// queue runs its items in turn. So an item that reclaim may wait for is not on a queue with items
/// that may wait for reclaim.
pub(crate) struct WorkQueues {
    /// For processes. An item may wait for reclaim, and be charged to the process.
    pub(crate) processes: Arc<Queue>,
    /// For kernel users that connect, or have no stream yet. Reclaim may wait for an item.
    pub(crate) initiators: Arc<Queue>,
    /// For kernel users that accept. An item may wait for reclaim without I/O.
    pub(crate) servers: Arc<Queue>,
}

impl HasQueue for Qp {
    fn queue(&self) -> &Queue {
        if !self.owner.is_kernel() {
            &self.queues.processes
        } else if self.below_reclaim.load(ordering::Relaxed) {
            &self.queues.initiators
        } else {
            &self.queues.servers
        }
    }
}
