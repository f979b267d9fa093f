// SPDX-License-Identifier: GPL-2.0

//! Receive WRs that kernel users post.

use super::{
    account::{Call, Entry},
    refuse, Posted, PostedQueue,
};
use core::ptr::NonNull;
use kernel::{ffi::c_int, prelude::*, sync::Arc};
use riw_bindings as bindings;

/// A list of WRs that a consumer posts to a receive queue (`struct ib_recv_wr`), in order.
///
/// # Invariants
///
/// `next` is null or valid for `'a`, and so are the WRs that follow it. A kernel user posts them to
/// `queue`. Consumers leave the list of SGEs of a WR without SGEs uninitialized, so there is no
/// reference to the whole struct.
pub struct RecvWrs<'a> {
    queue: &'a Arc<PostedQueue>,
    call: Call,
    next: *const bindings::ib_recv_wr,
    /// The WR that was taken last: the one that fails if the post does.
    last: *const bindings::ib_recv_wr,
    /// Its entry, if it could be taken.
    taken: Option<Entry>,
}

impl RecvWrs<'_> {
    /// Calls `post` with a list of WRs, and stores the one that fails, as [`SendWrs::post`] does.
    ///
    /// # Safety
    ///
    /// `first` must satisfy the type invariants, with `queue`, and `bad` be valid. The consumer
    /// must keep the memory that the WRs name until it learns that they are complete.
    pub(crate) unsafe fn post(
        queue: &Arc<PostedQueue>,
        first: *const bindings::ib_recv_wr,
        bad: *mut *const bindings::ib_recv_wr,
        post: impl FnOnce(&mut RecvWrs<'_>) -> Result,
    ) -> Result<c_int> {
        queue.while_posting(|call| {
            // INVARIANT: The caller promises them.
            let mut wrs = RecvWrs {
                queue,
                call,
                next: first,
                last: first,
                taken: None,
            };

            let Err(error) = post(&mut wrs) else {
                return Ok(0);
            };
            let failed = match queue.may_refuse(wrs.taken) {
                true => wrs.last,
                false => wrs.next,
            };

            // SAFETY: By the caller's promise `bad` is valid.
            unsafe { refuse(failed, bad, error) }
        })
    }

    /// Takes the next WR, with the memory that it names. Any context. Fails as [`SendWr::take`]
    /// does.
    pub fn take(&mut self) -> Option<Result<Posted>> {
        let raw = NonNull::new(self.next.cast_mut())?.as_ptr();

        self.last = self.next;
        self.taken = None;
        // SAFETY: `raw` is not null, so it is valid by the type invariant. Its consumer keeps the
        // memory until it learns that the WR is complete: see `post`.
        let posted = unsafe {
            self.next = (*raw).next;
            Posted::new(
                (self.queue, self.call),
                (*raw).__bindgen_anon_1.wr_id,
                &raw const (*raw).sg_list,
                (*raw).num_sge,
            )
        };

        Some(posted.map(|(posted, entry)| {
            self.taken = Some(entry);
            posted
        }))
    }
}
