// SPDX-License-Identifier: GPL-2.0

//! The right to what a kernel user's queue pair has registered.

use crate::wr::PostedQueue;
use kernel::{
    prelude::*,
    sync::{
        atomic::{ordering, Atomic},
        Arc,
    },
};
use kernel_ext::sync::BhUses;

/// The right to access memory that a queue pair has registered. It serves only this queue pair.
#[pin_data]
pub(crate) struct Grant {
    /// The send queue, to which the WRs that register are posted.
    pub(super) send: Arc<PostedQueue>,
    /// The address of the protection domain, only to be compared.
    pub(super) pd: usize,
    /// Cleared when the stream of the queue pair ends. The queue pair has only one
    /// stream: that of a kernel user cannot be reset.
    in_force: Atomic<bool>,
    /// Set when no copy is in progress any more, either.
    ended: Atomic<bool>,
    /// Copies to and from the memory that is registered.
    #[pin]
    copies: BhUses,
}

impl Grant {
    /// Creates the right for a queue pair in the protection domain at `pd`. Process context; may
    /// sleep. Fails with `ENOMEM` without memory.
    pub(crate) fn new(send: Arc<PostedQueue>, pd: usize) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                send,
                pd,
                in_force: Atomic::new(true),
                ended: Atomic::new(false),
                copies <- BhUses::new(),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Whether the stream has not ended. Any context.
    pub(super) fn is_in_force(&self) -> bool {
        self.in_force.load(ordering::Relaxed)
    }

    /// Calls `copy`, unless the stream has ended. Process context or softirq; `copy` must not
    /// sleep.
    pub(super) fn while_in_force<R>(&self, copy: impl FnOnce() -> R) -> Option<R> {
        self.copies.during(|| self.is_in_force().then(copy))
    }

    /// Ends the right. Process context or softirq; not within a copy. On return none is in
    /// progress.
    pub(crate) fn revoke(&self) {
        self.in_force.store(false, ordering::Relaxed);
        // A copy that begins later sees the store (selftests/litmus/bh_uses.litmus).
        self.copies.wait();
        self.ended.store(true, ordering::Release);
    }

    /// Whether [`Self::revoke`] has returned. Any context.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(ordering::Acquire)
    }
}
