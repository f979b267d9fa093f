// SPDX-License-Identifier: GPL-2.0

//! Lists of WRs that kernel users post.

use super::{
    account::{Call, Entry},
    Ends, Posted, PostedQueue,
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

    /// Returns which registration the WR ends.
    ///
    /// # Safety
    ///
    /// `wr` must be valid.
    unsafe fn ends(wr: *const Self) -> Ends;
}

macro_rules! impl_raw_wr {
    ($wr:ty, $ends:expr) => {
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

            unsafe fn ends(wr: *const Self) -> Ends {
                // SAFETY: The caller promises a valid WR, as the functions below require.
                unsafe { $ends(wr) }
            }
        }
    };
}

impl_raw_wr!(bindings::ib_send_wr, ended_by_send);
impl_raw_wr!(bindings::ib_recv_wr, ended_by_recv);

/// # Safety
///
/// `wr` must be valid.
unsafe fn ended_by_send(wr: *const bindings::ib_send_wr) -> Ends {
    // SAFETY: The caller promises a valid WR. Consumers set the STag of an invalidation.
    unsafe {
        match (*wr).opcode {
            bindings::ib_wr_opcode_IB_WR_LOCAL_INV => Ends::Stag((*wr).ex.invalidate_rkey),
            bindings::ib_wr_opcode_IB_WR_RDMA_READ_WITH_INV => Ends::Sink,
            _ => Ends::Nothing,
        }
    }
}

/// # Safety
///
/// There are no requirements.
unsafe fn ended_by_recv(_wr: *const bindings::ib_recv_wr) -> Ends {
    Ends::Nothing
}

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
    /// Calls `post` with a list of WRs. If it fails, or does not take all of them, stores the first
    /// one that does not count as posted in `bad`: the one that was returned last, unless the
    /// driver has kept it.
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

            let (failed, error) = match (post(&mut wrs), wrs.taken) {
                (Ok(()), Some(_)) => (wrs.next, EINVAL),
                (Ok(()), None) => (wrs.last, EINVAL),
                (Err(error), taken) => match queue.may_refuse(taken) {
                    true => (wrs.last, error),
                    false => (wrs.next, error),
                },
            };

            if failed.is_null() {
                return Ok(0);
            }
            // SAFETY: By the caller's promise `bad` is valid.
            unsafe { *bad = failed };
            Err(error)
        })
    }

    /// Returns the next WR. The one before counts as posted from now on, so it must be taken.
    pub(super) fn step(&mut self) -> Option<NonNull<W>> {
        let raw = NonNull::new(self.next.cast_mut())?;

        // Before the first step both are the first WR.
        if self.taken.is_none() && self.last != self.next {
            self.queue.break_off();
        }
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
    pub fn take<const N: usize>(&mut self) -> Option<Result<Posted<N>>> {
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
pub(super) unsafe fn take<W: RawWr, const N: usize>(
    queue: &Arc<PostedQueue>,
    call: Call,
    raw: NonNull<W>,
) -> Result<(Posted<N>, Entry)> {
    // SAFETY: The caller promises it.
    unsafe {
        let (id, list, count) = W::parts(raw.as_ptr());

        Posted::new((queue, call), id, (list, count), W::ends(raw.as_ptr()))
    }
}
