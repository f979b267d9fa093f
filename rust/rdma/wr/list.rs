// SPDX-License-Identifier: GPL-2.0

//! Lists of WRs that kernel users post.

use super::{
    account::{Call, Entry},
    Posted, PostedQueue,
};
use core::{marker::PhantomData, ptr::NonNull};
use kernel::{ffi::c_int, prelude::*, sync::Arc};
use riw_bindings as bindings;

/// A WR of a list: the fields that `struct ib_send_wr` and `struct ib_recv_wr` have in common.
pub trait RawWr: Sized {
    /// Returns the WR that follows, or null.
    ///
    /// # Safety
    ///
    /// `wr` must be valid.
    unsafe fn next(wr: *const Self) -> *const Self;

    /// Returns the `wr_id`, and the list of SGEs with its length. Consumers leave the list of a WR
    /// without SGEs uninitialized.
    ///
    /// # Safety
    ///
    /// `wr` must be valid.
    unsafe fn parts(wr: *const Self) -> (u64, *const *mut bindings::ib_sge, c_int);
}

macro_rules! impl_raw_wr {
    ($wr:ty) => {
        impl RawWr for $wr {
            unsafe fn next(wr: *const Self) -> *const Self {
                // SAFETY: The caller promises a valid WR. There is no reference to it as a whole.
                unsafe { (*wr).next }
            }

            unsafe fn parts(wr: *const Self) -> (u64, *const *mut bindings::ib_sge, c_int) {
                // SAFETY: The caller promises a valid WR. There is no reference to it as a whole.
                unsafe {
                    let id = (*wr).__bindgen_anon_1.wr_id;

                    (id, &raw const (*wr).sg_list, (*wr).num_sge)
                }
            }
        }
    };
}

impl_raw_wr!(bindings::ib_send_wr);
impl_raw_wr!(bindings::ib_recv_wr);

/// A list of WRs that a consumer posts, in order: [`SendWrs`](super::SendWrs) or [`RecvWrs`].
///
/// # Invariants
///
/// `next` is null or valid for `'a`, and so are the WRs that follow it. A kernel user posts them to
/// `queue`, and those to a send queue name only regions of driver `T`. Consumers leave fields that
/// a WR does not need uninitialized, so there is no reference to a whole WR.
pub struct PostedList<'a, W, T> {
    pub(super) queue: &'a Arc<PostedQueue>,
    pub(super) call: Call,
    next: *const W,
    /// The WR that was returned last: the one that fails if the post does.
    last: *const W,
    /// Its entry, if it was taken.
    pub(super) taken: Option<Entry>,
    _driver: PhantomData<&'a T>,
}

impl<W: RawWr, T> PostedList<'_, W, T> {
    /// Calls `post` with a list of WRs. If it fails, stores the WR that was returned last, or the
    /// first one, in `bad`. If the driver has kept that one, it counts as posted.
    ///
    /// # Safety
    ///
    /// `first` must satisfy the type invariants, with `queue`, and `bad` be valid. The consumer
    /// must keep the memory that the WRs name until it learns that they are complete.
    pub(crate) unsafe fn post(
        queue: &Arc<PostedQueue>,
        first: *const W,
        bad: *mut *const W,
        post: impl FnOnce(&mut PostedList<'_, W, T>) -> Result,
    ) -> Result<c_int> {
        queue.while_posting(|call| {
            // INVARIANT: The caller promises them.
            let mut wrs = PostedList {
                queue,
                call,
                next: first,
                last: first,
                taken: None,
                _driver: PhantomData,
            };

            let Err(error) = post(&mut wrs) else {
                return Ok(0);
            };
            let failed = match queue.may_refuse(wrs.taken) {
                true => wrs.last,
                false => wrs.next,
            };

            if failed.is_null() {
                return Ok(0);
            }
            // SAFETY: By the caller's promise `bad` is valid.
            unsafe { *bad = failed };
            Err(error)
        })
    }

    /// Returns the next WR.
    pub(super) fn step(&mut self) -> Option<NonNull<W>> {
        let raw = NonNull::new(self.next.cast_mut())?;

        (self.last, self.taken) = (self.next, None);
        // SAFETY: `raw` is not null, so it is valid by the type invariant.
        self.next = unsafe { W::next(raw.as_ptr()) };
        Some(raw)
    }
}

/// A list of WRs that a consumer posts to a receive queue (`struct ib_recv_wr`), in order.
pub type RecvWrs<'a> = PostedList<'a, bindings::ib_recv_wr, ()>;

impl RecvWrs<'_> {
    /// Takes the next WR, with the memory that it names. Any context. Fails as
    /// [`SendWr::take`](super::SendWr::take) does.
    pub fn take(&mut self) -> Option<Result<Posted>> {
        let raw = self.step()?;
        // SAFETY: The WR is of the list, so it is valid. Its consumer keeps the memory until it
        // learns that the WR is complete: see `post`.
        let posted = unsafe { take(self.queue, self.call, raw) };

        Some(posted.map(|(posted, entry)| {
            self.taken = Some(entry);
            posted
        }))
    }
}

/// Takes a WR that `call` posts to `queue`, with the memory that it names. Fails as [`Posted::new`]
/// does.
///
/// # Safety
///
/// `raw` must be a valid WR of that call. The consumer must keep the memory until it learns that
/// the WR is complete.
pub(super) unsafe fn take<W: RawWr>(
    queue: &Arc<PostedQueue>,
    call: Call,
    raw: NonNull<W>,
) -> Result<(Posted, Entry)> {
    // SAFETY: The caller promises it.
    unsafe {
        let (id, list, count) = W::parts(raw.as_ptr());

        Posted::new((queue, call), id, list, count)
    }
}
