// SPDX-License-Identifier: GPL-2.0

//! The queues of kernel users, and where their WRs are completed.

use kernel::sync::atomic::{ordering, Atomic};
use riw_bindings as bindings;

/// The number of a queue that a kernel user posts to: a send queue, a receive queue of one queue
/// pair, or a shared one. No two queues ever have the same, so a WR that outlives its queue belongs
/// to no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueId(u64);

impl QueueId {
    /// Returns a number that no queue has had: 64 bits are never used up. Any context.
    pub(crate) fn new() -> Self {
        static NEXT: Atomic<u64> = Atomic::new(0);

        Self(NEXT.fetch_add(1, ordering::Relaxed))
    }
}

/// A queue of a queue pair, and the completion queue that gets the completions of its WRs.
#[derive(Clone, Copy)]
pub(crate) struct PostedQueue {
    pub(crate) id: QueueId,
    /// Only to be compared.
    pub(crate) cq: *mut bindings::ib_cq,
}

/// The queues of a queue pair to which a kernel user posts.
#[derive(Clone, Copy)]
pub(crate) struct PostedQueues {
    pub(crate) send: PostedQueue,
    /// Its own, or the shared one.
    pub(crate) recv: PostedQueue,
}

impl PostedQueues {
    /// Whether `cq` gets the completions of WRs that were posted to `queue`: to the receive queue
    /// if `receive`, or to the send queue. Any context.
    pub(crate) fn complete(&self, receive: bool, queue: QueueId, cq: *mut bindings::ib_cq) -> bool {
        let own = match receive {
            true => self.recv,
            false => self.send,
        };

        own.id == queue && own.cq == cq
    }
}
