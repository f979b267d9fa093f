// SPDX-License-Identifier: GPL-2.0

//! The queues of kernel users, and where their WRs are completed.

use core::num::NonZeroU32;
use kernel::{
    prelude::*,
    sync::atomic::{ordering, Atomic},
};
use riw_bindings as bindings;

/// The number of a queue that a kernel user posts to: a send queue, a receive queue of one queue
/// pair, or a shared one. No two queues ever have the same, so a WR that outlives its queue belongs
/// to no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueId(NonZeroU32);

/// The number that was given last.
static LAST: Atomic<u32> = Atomic::new(0);

impl QueueId {
    /// Returns a number that no queue has had. Any context. Fails with `ENOSPC` once all of the
    /// 2^32 are used up: kernel users get no queue then until the module is loaded again.
    pub(crate) fn new() -> Result<Self> {
        let mut last = LAST.load(ordering::Relaxed);

        loop {
            let id = Self::after(last)?;

            match LAST.cmpxchg(last, id.0.get(), ordering::Relaxed) {
                Ok(_) => return Ok(id),
                Err(now) => last = now,
            }
        }
    }

    /// Returns the number after `last`.
    pub(super) fn after(last: u32) -> Result<Self> {
        let next = last.checked_add(1).and_then(NonZeroU32::new);

        next.map(Self).ok_or(ENOSPC)
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
