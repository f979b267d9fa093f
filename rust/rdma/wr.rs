// SPDX-License-Identifier: GPL-2.0

//! Work requests that kernel users post.
//!
//! A kernel user passes WRs by reference. The driver copies what it needs, and later completes each
//! WR by its [`WrId`]: see [`crate::wc`]. User processes write their WRs to rings of the driver instead.
//!
//! C header: `include/rdma/ib_verbs.h`

use crate::{mr::Mr, Driver};
use core::{marker::PhantomData, ptr::NonNull};
use kernel::{ffi::c_int, prelude::*};
use net::{Fragment, Room};
use riw_bindings as bindings;

/// Maximum SGEs of a WR of a kernel user.
pub const MAX_SGE: usize = 6;

/// The lkey by which kernel users name any memory of the kernel (`ib_device::local_dma_lkey`). No
/// region has it.
pub const LOCAL_DMA_LKEY: u32 = 0;

/// Identifies a WR of a kernel user: its `wr_id`, or the address of its `struct ib_cqe`.
///
/// ib_core calls a function through the `struct ib_cqe` when the WR is completed, so the id cannot
/// be made up or copied. A driver must use it only for a completion of the queue pair to which the WR was
/// posted. Drop it to complete nothing.
#[derive(Debug)]
pub struct WrId(u64);

impl WrId {
    /// Returns the number, for traces. Any context.
    pub fn number(&self) -> u64 {
        self.0
    }

    /// Returns the `wr_id` of a completion.
    pub(crate) fn into_raw(self) -> u64 {
        self.0
    }
}

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

/// A WR that was posted: its id, and the memory that the consumer has lent for it.
#[derive(Debug)]
pub struct Posted {
    /// The id, for the completion.
    pub id: WrId,
    /// The memory.
    pub lent: Lent,
}

/// The SGEs of a WR, and the right to access the kernel memory that they name.
///
/// The consumer keeps the memory until it learns that the WR is complete, or has destroyed the queue. So a
/// driver must drop this before it adds the completion of the WR, or of a later one of the same queue, and
/// before the queue is destroyed.
#[derive(Debug)]
pub struct Lent {
    sges: [PostedSge; MAX_SGE],
    count: usize,
}

impl Posted {
    /// Copies the SGEs of a WR. Fails with `EINVAL` if there are too many.
    ///
    /// # Safety
    ///
    /// `list` must be valid for `count` SGEs. The consumer must keep the memory of those with
    /// [`LOCAL_DMA_LKEY`] until it learns that the WR `id` is complete.
    unsafe fn new(id: u64, list: *const bindings::ib_sge, count: c_int) -> Result<Self> {
        let count = usize::try_from(count)?;
        let mut sges = [PostedSge::default(); MAX_SGE];

        for (at, to) in sges.get_mut(..count).ok_or(EINVAL)?.iter_mut().enumerate() {
            // SAFETY: `at` is below `count`, for which the caller promises that `list` is valid.
            let sge = unsafe { *list.add(at) };

            *to = PostedSge {
                addr: sge.addr,
                len: sge.length,
                lkey: sge.lkey,
            };
        }
        Ok(Self {
            id: WrId(id),
            lent: Lent { sges, count },
        })
    }
}

impl Lent {
    /// Returns the SGEs in order. Any context.
    pub fn sges(&self) -> &[PostedSge] {
        self.sges.get(..self.count).unwrap_or_default()
    }

    /// Returns `len` bytes of the kernel's memory at `addr`. Any context. `None` unless an SGE with
    /// [`LOCAL_DMA_LKEY`] contains them.
    pub fn memory(&self, addr: u64, len: u32) -> Option<Memory<'_>> {
        let contains = |sge: &&PostedSge| {
            sge.lkey == LOCAL_DMA_LKEY
                && addr.checked_sub(sge.addr).is_some_and(|offset| {
                    offset
                        .checked_add(len.into())
                        .is_some_and(|end| end <= sge.len.into())
                })
        };

        self.sges().iter().find(contains)?;
        // INVARIANT: The range is part of an SGE with `LOCAL_DMA_LKEY`, whose memory the consumer
        // keeps while the driver may have this.
        Some(Memory {
            // CAST: An address of the kernel.
            start: NonNull::new(addr as usize as *mut u8)?,
            // CAST: A 32-bit number fits.
            len: len as usize,
            _lent: PhantomData,
        })
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
    _lent: PhantomData<&'a Lent>,
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

/// A list of WRs that a consumer posts to a send queue (`struct ib_send_wr`), in order.
///
/// # Invariants
///
/// `next` is null or valid for `'a`, and so are the WRs that follow it. They belong to a queue pair
/// of a kernel user, and name only regions of driver `T`.
pub struct SendWrs<'a, T: Driver> {
    next: *const bindings::ib_send_wr,
    /// The WR that was taken last: the one that fails if the post does.
    last: *const bindings::ib_send_wr,
    _wrs: PhantomData<&'a T>,
}

impl<T: Driver> SendWrs<'_, T> {
    /// # Safety
    ///
    /// `first` must satisfy the type invariants. The consumer must keep the memory that the WRs
    /// name until it learns that they are complete.
    pub(crate) unsafe fn new(first: *const bindings::ib_send_wr) -> Self {
        // INVARIANT: The caller promises them.
        Self {
            next: first,
            last: first,
            _wrs: PhantomData,
        }
    }

    /// Returns the WR that was taken last, or the first one.
    pub(crate) fn taken_last(&self) -> *const bindings::ib_send_wr {
        self.last
    }
}

impl<'a, T: Driver> Iterator for SendWrs<'a, T> {
    type Item = SendWr<'a, T>;

    fn next(&mut self) -> Option<SendWr<'a, T>> {
        let raw = NonNull::new(self.next.cast_mut())?;

        self.last = self.next;
        // SAFETY: `raw` is not null, so it is valid by the type invariant.
        self.next = unsafe { (*raw.as_ptr()).next };
        // INVARIANT: The WR is one of the list, and is handed out once.
        Some(SendWr {
            raw,
            _wr: PhantomData,
        })
    }
}

/// A WR that a consumer posts to a send queue (`struct ib_send_wr`). All methods: any context.
///
/// # Invariants
///
/// `raw` is one of [`SendWrs`] with lifetime `'a`, and there is no other value for it. Consumers leave
/// fields that their opcode does not need uninitialized, so there is no reference to the whole struct.
pub struct SendWr<'a, T: Driver> {
    raw: NonNull<bindings::ib_send_wr>,
    _wr: PhantomData<&'a T>,
}

/// The operation of a WR.
pub enum SendOperation<'a, T: Driver> {
    /// Send; with Invalidate if there is an STag.
    Send {
        /// The STag of the peer that it invalidates.
        invalidate: Option<u32>,
    },
    /// RDMA Write.
    Write {
        /// The STag of the peer's region.
        rkey: u32,
        /// The address in the peer's region.
        addr: u64,
    },
    /// RDMA Read.
    Read {
        /// The STag of the peer's region.
        rkey: u32,
        /// The address in the peer's region.
        addr: u64,
        /// The completion invalidates the sink's STag (`IB_WR_RDMA_READ_WITH_INV`).
        invalidate: bool,
    },
    /// Invalidates a region of this side (`IB_WR_LOCAL_INV`).
    LocalInvalidate {
        /// The STag of the region.
        stag: u32,
    },
    /// Registers what was mapped last in a region (`IB_WR_REG_MR`).
    Register {
        /// The region.
        mr: &'a Mr<T>,
        /// The address of its first byte.
        iova: u64,
        /// The STag, with the consumer's key in the low 8 bits.
        stag: u32,
        /// The rights (`enum ib_access_flags`).
        access: u32,
    },
}

impl<'a, T: Driver> SendWr<'a, T> {
    /// Returns the operation. `None` if drivers of this crate do not support it.
    pub fn operation(&self) -> Option<SendOperation<'a, T>> {
        // SAFETY: By the type invariant the WR is valid. Each opcode says which other fields are, and
        // which struct contains the WR.
        unsafe {
            Some(match (*self.raw.as_ptr()).opcode {
                bindings::ib_wr_opcode_IB_WR_SEND => SendOperation::Send { invalidate: None },
                bindings::ib_wr_opcode_IB_WR_SEND_WITH_INV => SendOperation::Send {
                    invalidate: Some(self.invalidate_rkey()),
                },
                bindings::ib_wr_opcode_IB_WR_RDMA_WRITE => {
                    let (rkey, addr) = self.remote();

                    SendOperation::Write { rkey, addr }
                }
                opcode @ (bindings::ib_wr_opcode_IB_WR_RDMA_READ
                | bindings::ib_wr_opcode_IB_WR_RDMA_READ_WITH_INV) => {
                    let (rkey, addr) = self.remote();

                    SendOperation::Read {
                        rkey,
                        addr,
                        invalidate: opcode == bindings::ib_wr_opcode_IB_WR_RDMA_READ_WITH_INV,
                    }
                }
                bindings::ib_wr_opcode_IB_WR_LOCAL_INV => SendOperation::LocalInvalidate {
                    stag: self.invalidate_rkey(),
                },
                bindings::ib_wr_opcode_IB_WR_REG_MR => self.registration(),
                _ => return None,
            })
        }
    }

    /// # Safety
    ///
    /// The opcode must be that of an invalidation.
    unsafe fn invalidate_rkey(&self) -> u32 {
        // SAFETY: By the caller's promise and the rules of the verbs, the field is initialized.
        unsafe { (*self.raw.as_ptr()).ex.invalidate_rkey }
    }

    /// Returns STag and address of the peer's region.
    ///
    /// # Safety
    ///
    /// The opcode must be that of an RDMA Read or Write.
    unsafe fn remote(&self) -> (u32, u64) {
        let wr = self.raw.as_ptr().cast::<bindings::ib_rdma_wr>();

        // SAFETY: By the caller's promise and the rules of the verbs, the WR is the first member of
        // a `struct ib_rdma_wr` whose fields are initialized.
        unsafe { ((*wr).rkey, (*wr).remote_addr) }
    }

    /// # Safety
    ///
    /// The opcode must be `IB_WR_REG_MR`.
    unsafe fn registration(&self) -> SendOperation<'a, T> {
        let wr = self.raw.as_ptr().cast::<bindings::ib_reg_wr>();

        // SAFETY: By the caller's promise and the rules of the verbs, the WR is the first member of
        // a `struct ib_reg_wr` whose fields are initialized. It names a region of the same device,
        // which the consumer keeps during the call.
        unsafe {
            SendOperation::Register {
                mr: Mr::<T>::from_base((*wr).mr.cast()),
                iova: (*(*wr).mr).iova,
                stag: (*wr).key,
                // CAST: A bit mask.
                access: (*wr).access as u32,
            }
        }
    }

    fn has(&self, flag: bindings::ib_send_flags) -> bool {
        // SAFETY: By the type invariant the WR is valid. Consumers set the flags of each WR.
        unsafe { (*self.raw.as_ptr()).send_flags & flag != 0 }
    }

    /// Whether the WR gives a completion even if it succeeds.
    pub fn is_signaled(&self) -> bool {
        self.has(bindings::ib_send_flags_IB_SEND_SIGNALED)
    }

    /// Whether the WR waits for all earlier RDMA Reads (read fence).
    pub fn is_fenced(&self) -> bool {
        self.has(bindings::ib_send_flags_IB_SEND_FENCE)
    }

    /// Whether the message triggers an event at the peer.
    pub fn is_solicited(&self) -> bool {
        self.has(bindings::ib_send_flags_IB_SEND_SOLICITED)
    }

    /// Whether the memory is the consumer's again when the post returns.
    pub fn is_inline(&self) -> bool {
        self.has(bindings::ib_send_flags_IB_SEND_INLINE)
    }

    /// Takes the WR, with the memory that it names. Fails with `EINVAL` if it has too many SGEs.
    pub fn take(self) -> Result<Posted> {
        // SAFETY: By the invariants of `SendWrs` the WR is valid, and its consumer keeps the memory
        // until it learns that the WR is complete.
        unsafe {
            let wr = self.raw.as_ptr();

            Posted::new((*wr).__bindgen_anon_1.wr_id, (*wr).sg_list, (*wr).num_sge)
        }
    }
}

/// A list of WRs that a consumer posts to a receive queue (`struct ib_recv_wr`), in order.
///
/// # Invariants
///
/// `next` is null or valid for `'a`, and so are the WRs that follow it. They belong to a queue of a
/// kernel user.
pub struct RecvWrs<'a> {
    next: *const bindings::ib_recv_wr,
    /// The WR that was taken last: the one that fails if the post does.
    last: *const bindings::ib_recv_wr,
    _wrs: PhantomData<&'a ()>,
}

impl RecvWrs<'_> {
    /// Calls `post` with a list of WRs. If it fails, stores the WR that was taken last, or the first one,
    /// in `bad`.
    ///
    /// # Safety
    ///
    /// `first` must satisfy the type invariants, and `bad` be valid. The consumer must keep the memory
    /// that the WRs name until it learns that they are complete.
    pub(crate) unsafe fn post(
        first: *const bindings::ib_recv_wr,
        bad: *mut *const bindings::ib_recv_wr,
        post: impl FnOnce(&mut RecvWrs<'_>) -> Result,
    ) -> Result<c_int> {
        // INVARIANT: The caller promises them.
        let mut wrs = RecvWrs {
            next: first,
            last: first,
            _wrs: PhantomData,
        };

        // SAFETY: By the caller's promise `bad` is valid.
        post(&mut wrs).inspect_err(|_| unsafe { *bad = wrs.last })?;
        Ok(0)
    }

    /// Takes the next WR, with the memory that it names. Any context. Fails with `EINVAL` if it has
    /// too many SGEs.
    pub fn take(&mut self) -> Option<Result<Posted>> {
        // SAFETY: By the type invariant `next` is null or valid.
        let raw = unsafe { self.next.as_ref() }?;

        self.last = self.next;
        self.next = raw.next;
        // SAFETY: By the type invariant the WR is valid. Its consumer keeps the memory until it
        // learns that the WR is complete: see `new`.
        Some(unsafe { Posted::new(raw.__bindgen_anon_1.wr_id, raw.sg_list, raw.num_sge) })
    }
}
