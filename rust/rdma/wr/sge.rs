// SPDX-License-Identifier: GPL-2.0

//! The memory of WRs that kernel users post.

use super::{
    account::{Call, Effect, Entry},
    Ends, PostedQueue, WrId, INVALIDATES, LOCAL_DMA_LKEY,
};
use core::{marker::PhantomData, ptr::NonNull};
use kernel::{ffi::c_int, prelude::*, sync::Arc};
use kernel_ext::octets::{Fragment, Room};
use riw_bindings as bindings;

/// An SGE of a WR (`struct ib_sge`).
#[derive(Clone, Copy, Debug, Default)]
pub struct PostedSge {
    /// The address: of the kernel for [`LOCAL_DMA_LKEY`], otherwise within the region.
    pub addr: u64,
    /// The length in bytes.
    pub len: u32,
    /// The key of the region, or [`LOCAL_DMA_LKEY`].
    pub lkey: u32,
}

impl PostedSge {
    /// Returns `len` bytes of the kernel's memory at `addr`. `None` unless the SGE has
    /// [`LOCAL_DMA_LKEY`] and contains them.
    ///
    /// # Safety
    ///
    /// The memory of an SGE with [`LOCAL_DMA_LKEY`] must be valid for accesses by C code, for `'a`.
    unsafe fn memory<'a>(&self, addr: u64, len: u32) -> Option<Memory<'a>> {
        let offset = addr.checked_sub(self.addr)?;
        let end = offset.checked_add(len.into())?;
        if self.lkey != LOCAL_DMA_LKEY || end > self.len.into() {
            return None;
        }
        // INVARIANT: The range is part of the SGE, whose memory is valid by the caller's promise.
        Some(Memory {
            // CAST: An address of the kernel.
            start: NonNull::new(addr as usize as *mut u8)?,
            // CAST: A 32-bit number fits.
            len: len as usize,
            _lent: PhantomData,
        })
    }
}

/// A WR that was posted: its id, its SGEs, and the right to access the kernel memory that they
/// name. It has room for `N` SGEs: the driver chooses how many a WR may have.
///
/// The consumer keeps the memory until it learns that the WR is complete. So the id comes out only
/// when the memory is given up, and the completion consumes it: see [`Self::give_up`]. The consumer
/// also learns it by the completion of a later WR, an error of the post, and the end of the queue:
/// all of these respect the ids that the driver still has.
#[derive(Debug)]
pub struct Posted<const N: usize> {
    id: WrId,
    sges: [PostedSge; N],
    count: usize,
}

impl<const N: usize> Posted<N> {
    /// Copies the SGEs of a WR, and enters it in the account of its queue. `ends`: which
    /// registration the WR ends. Fails with `EINVAL` if there are more than `N` SGEs, or not one
    /// sink to be invalidated, `ENOMEM` if the account is full.
    ///
    /// # Safety
    ///
    /// `list` must point to the list of SGEs of the WR `id`, which `call` posts to `queue`. It is
    /// read only if `count` is positive: then it must be valid for `count` SGEs, which may begin at
    /// any address. The consumer must keep the memory of those with [`LOCAL_DMA_LKEY`] until it
    /// learns that the WR is complete.
    pub(super) unsafe fn new(
        (queue, call): (&Arc<PostedQueue>, Call),
        id: u64,
        (list, count): (*const *mut bindings::ib_sge, c_int),
        ends: Ends,
    ) -> Result<(Self, Entry)> {
        let count = usize::try_from(count)?;
        let mut sges = [PostedSge::default(); N];

        for (at, to) in sges.get_mut(..count).ok_or(EINVAL)?.iter_mut().enumerate() {
            // The list need not be aligned: that of iSER is in a packed struct (`struct
            // iser_rx_desc`). SAFETY: `at` is below `count`, for which the caller promises that
            // `list` is valid.
            let sge = unsafe { (*list).add(at).read_unaligned() };

            *to = PostedSge {
                addr: sge.addr,
                len: sge.length,
                lkey: sge.lkey,
            };
        }
        let lens = sges.iter().map(|sge| sge.len);
        let effect = match (ends, sges.get(..count)) {
            (Ends::Nothing, _) => Effect::None,
            (Ends::Stag(stag), _) => Effect::Ends(stag),
            (Ends::Sink, Some([sink])) => Effect::Ends(sink.lkey),
            (Ends::Sink, _) => return Err(EINVAL),
        };
        let entry = queue.enter(call, effect)?;
        let posted = Self {
            id: WrId {
                id,
                room: lens.fold(0, u32::saturating_add),
                place: match effect {
                    Effect::Ends(_) => entry.place | INVALIDATES,
                    Effect::None | Effect::Done => entry.place,
                },
                queue: queue.clone(),
            },
            sges,
            count,
        };

        Ok((posted, entry))
    }

    /// Gives the memory up, and returns the id, for the completion. Any context.
    ///
    /// ```
    /// fn complete(wr: rdma::wr::Posted<4>) -> rdma::wr::WrId {
    ///     let _ = wr.memory(0, 1);
    ///
    ///     wr.give_up()
    /// }
    /// ```
    ///
    /// The memory cannot be accessed any more when there may be a completion:
    ///
    /// ```compile_fail,E0382
    /// fn complete(wr: rdma::wr::Posted<4>) -> rdma::wr::WrId {
    ///     let id = wr.give_up();
    ///
    ///     let _ = wr.memory(0, 1);
    ///     id
    /// }
    /// ```
    ///
    /// Nor while it is being accessed:
    ///
    /// ```compile_fail,E0505
    /// fn complete(wr: rdma::wr::Posted<4>) -> Option<rdma::wr::WrId> {
    ///     let memory = wr.memory(0, 1)?;
    ///     let id = wr.give_up();
    ///
    ///     let _ = memory.addr();
    ///     Some(id)
    /// }
    /// ```
    pub fn give_up(self) -> WrId {
        self.id
    }

    /// Returns the id, for traces. Any context.
    pub fn id(&self) -> &WrId {
        &self.id
    }

    /// Returns the SGEs in order. Any context.
    pub fn sges(&self) -> &[PostedSge] {
        self.sges.get(..self.count).unwrap_or_default()
    }

    /// Returns the WR with its only SGE; `None`, with the WR dropped, if it has several, or none.
    /// Any context.
    pub fn into_single(self) -> Option<PostedSingle> {
        match self.sges() {
            [sge] => Some(PostedSingle {
                sge: *sge,
                id: self.id,
            }),
            _ => None,
        }
    }

    /// Returns `len` bytes of the kernel's memory at `addr`. Any context. `None` unless an SGE with
    /// [`LOCAL_DMA_LKEY`] contains them.
    pub fn memory(&self, addr: u64, len: u32) -> Option<Memory<'_>> {
        // SAFETY: The SGEs belong to the WR. Its consumer keeps the memory until it learns that the
        // WR is complete. Only the completion with the id in `self` says so, and nothing takes the
        // id out while the result borrows `self`; or the completion of a later WR of the same queue
        // (`WrId::complete`), a failed post (`PostedQueue::may_refuse`), or the end of the
        // queue (`PostedQueue::end`), and these wait for the drop of the id, or refuse.
        let memory = |sge: &PostedSge| unsafe { sge.memory(addr, len) };

        self.sges().iter().find_map(memory)
    }
}

/// A WR with a single SGE, as [`Posted`].
#[derive(Debug)]
pub struct PostedSingle {
    id: WrId,
    sge: PostedSge,
}

impl PostedSingle {
    /// Gives the memory up, and returns the id, for the completion. Any context.
    pub fn give_up(self) -> WrId {
        self.id
    }

    /// Returns the id, for traces. Any context.
    pub fn id(&self) -> &WrId {
        &self.id
    }

    /// Returns the SGE. Any context.
    pub fn sge(&self) -> &PostedSge {
        &self.sge
    }

    /// Returns its memory, unless it names a region. Any context.
    pub fn memory(&self) -> Option<Memory<'_>> {
        // SAFETY: As in `Posted::memory`.
        unsafe { self.sge.memory(self.sge.addr, self.sge.len) }
    }
}

/// Kernel memory that a consumer has lent for a WR.
///
/// The consumer and others may access it at any time, so it can be copied but not borrowed.
///
/// # Invariants
///
/// `start` is valid for accesses of `len` bytes by C code, for `'a`.
pub struct Memory<'a> {
    start: NonNull<u8>,
    len: usize,
    _lent: PhantomData<&'a WrId>,
}

impl Memory<'_> {
    /// Returns the address, for traces. Any context.
    pub fn addr(&self) -> u64 {
        // CAST: An address fits.
        self.start.as_ptr().addr() as u64
    }

    /// Copies all bytes to `to`. Any context. Fails with `EINVAL`, with nothing copied, if they do
    /// not fit.
    pub fn read(&self, to: &mut Room<'_>) -> Result {
        let copy = |to: *mut u8| {
            // SAFETY: `put_with` passes room for `len` bytes. By the type invariant C code may
            // read them from `start`.
            unsafe { bindings::copy_memory(to, self.start.as_ptr(), self.len) };
            Ok(())
        };

        // SAFETY: `copy` writes all `len` bytes, and nothing else.
        unsafe { to.put_with(self.len, copy) }
    }

    /// Copies all bytes to `to`. Any context. Fails with `EINVAL`, with nothing copied, if `to` has
    /// another length.
    pub fn copy_to(&self, to: &mut [u8]) -> Result {
        if to.len() != self.len {
            return Err(EINVAL);
        }
        // SAFETY: `to` has `len` bytes. By the type invariant C code may read them from `start`.
        unsafe { bindings::copy_memory(to.as_mut_ptr(), self.start.as_ptr(), self.len) };
        Ok(())
    }

    /// Copies `from` to the memory, `at` bytes from its start. Any context. Fails with `EINVAL`,
    /// with nothing copied, if it does not fit there.
    pub fn write(&self, at: usize, from: Fragment<'_>) -> Result {
        let end = at.checked_add(from.len()).ok_or(EINVAL)?;
        if end > self.len {
            return Err(EINVAL);
        }
        // SAFETY: The range is within `len` bytes from `start`, which C code may write to by the
        // type invariant. A `Fragment` may be read by C code.
        unsafe { bindings::copy_memory(self.start.as_ptr().add(at), from.as_ptr(), from.len()) };
        Ok(())
    }
}
