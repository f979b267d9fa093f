// SPDX-License-Identifier: GPL-2.0

//! Work requests that kernel users post.
//!
//! A kernel user passes WRs by reference. The driver copies the parts that it needs, and later
//! completes each WR by its [`WrId`]: see [`crate::wc`]. Processes cannot post WRs by reference:
//! their calls of these verbs have empty lists.
//!
//! C header: `include/rdma/ib_verbs.h`

mod account;
mod atomic;
#[cfg(CONFIG_KUNIT = "y")]
#[path = "kunit/wr.rs"]
pub(crate) mod kunit;
mod list;
mod queue;
mod register;
mod sge;

pub use atomic::PostedAtomic;
pub use list::{PostedList, RecvWrs};
pub(crate) use queue::{PostedQueue, PostedQueues, QueueOfPair};
pub use sge::{Memory, Posted, PostedSge, PostedSingle};

use crate::{mr::PostedMapping, Driver};
use account::{Call, Entry};
use core::{marker::PhantomData, ptr::NonNull};
use kernel::{prelude::*, sync::Arc};
use list::take;
use riw_bindings as bindings;

/// Refuses the WRs of a call of a process. Fails with `EOPNOTSUPP` unless the list is empty.
///
/// # Safety
///
/// `bad` must be valid for a write.
pub(crate) unsafe fn refuse_any<W>(first: *const W, bad: *mut *const W) -> Result {
    if first.is_null() {
        return Ok(());
    }
    // SAFETY: The caller promises it.
    unsafe { *bad = first };
    Err(EOPNOTSUPP)
}

/// The lkey by which kernel users name any memory of the kernel (`ib_device::local_dma_lkey`). No
/// region has it.
pub const LOCAL_DMA_LKEY: u32 = 0;

/// Identifies a WR of a kernel user: its `wr_id`, or the address of its `struct ib_cqe`.
///
/// ib_core calls a function through the `struct ib_cqe` when the WR is completed, so the id cannot
/// be made up or copied, and it knows the queue to which the WR was posted:
/// [`WcRoom::push`](crate::wc::WcRoom::push) takes it only for that one, and only after the ids of
/// all WRs that were posted there before. Drop it to complete nothing. The end of the queue waits
/// for that.
///
/// A WR that invalidates a registration has to do so before: see
/// [`Registrar::invalidate`](crate::mr::Registrar::invalidate). If its id is dropped without that,
/// unless the post fails, no WR of the queue can be completed any more.
///
/// ```compile_fail,E0382
/// fn complete<T: rdma::Driver>(to: &mut rdma::wc::WcRoom<'_, T>, wc: rdma::wc::Wc<'_, T>) {
///     let _ = to.push(wc);
///     let _ = to.push(wc);
/// }
/// ```
///
/// ```compile_fail,E0507
/// fn copy(id: &rdma::wr::WrId) -> rdma::wr::WrId {
///     *id
/// }
/// ```
pub struct WrId {
    id: u64,
    /// The size of the WR's buffers in bytes: no completion reports more.
    room: u32,
    /// Its place in the account of the queue, and [`INVALIDATES`].
    place: u32,
    /// The queue to which the WR was posted.
    queue: Arc<PostedQueue>,
}

/// Which registration a WR ends.
pub enum Ends {
    /// None.
    Nothing,
    /// The one with this STag.
    Stag(u32),
    /// The one that its only SGE names.
    Sink,
}

impl WrId {
    /// Whether the consumer has given none (`wr_cqe` is null). Any context.
    pub fn is_null(&self) -> bool {
        self.id == 0
    }

    /// Returns a hash to trace the id by, since the id itself is mostly an address of the kernel:
    /// equal for equal ids, until the module is unloaded; 0 if there is none. Any context.
    pub fn hash(&self) -> u32 {
        match self.is_null() {
            true => 0,
            // SAFETY: hash_secret() has no preconditions.
            false => unsafe { bindings::hash_secret(self.id) },
        }
    }

    /// Returns the `byte_len` of a completion for a message of `bytes`. Consumers take it as the
    /// part of their buffers that has data.
    pub(crate) fn byte_len(&self, bytes: u32) -> u32 {
        bytes.min(self.room)
    }

    /// Returns the queue to which the WR was posted.
    pub(crate) fn queue(&self) -> &Arc<PostedQueue> {
        &self.queue
    }

    /// Its place in the account of the queue.
    fn place(&self) -> u32 {
        self.place & !INVALIDATES
    }

    /// Returns the number of the WR in its queue, in the order of posting.
    pub(crate) fn number(&self) -> u64 {
        self.queue.number(self.place())
    }

    /// Returns the STag of the registration that the WR has still to end. Any context.
    pub fn invalidates(&self) -> Option<u32> {
        match self.place & INVALIDATES {
            0 => None,
            _ => self.queue.invalidates(self.place()),
        }
    }

    /// Notes that the WR was executed: it cannot count as not posted any more.
    pub(crate) fn note_executed(&mut self) {
        self.queue.note_executed(self.place());
        self.place = self.place();
    }

    /// Completes the WR, and returns the `wr_id` of its completion, which the consumer gets.
    /// Returns the id if the consumer must not learn yet that the WR is complete: it has not
    /// invalidated what it must, or a WR before it is not complete. Any context.
    pub(crate) fn complete(mut self) -> Result<u64, Self> {
        if !self.queue.complete(self.place()) {
            return Err(self);
        }
        self.place = GONE;
        Ok(self.id)
    }
}

impl Drop for WrId {
    fn drop(&mut self) {
        if self.place != GONE {
            self.queue.give_up(self.place());
        }
    }
}

impl core::fmt::Debug for WrId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("WrId").field(&self.place()).finish()
    }
}

/// The place of a WR that the consumer has the completion of.
const GONE: u32 = u32::MAX;

/// A flag beside the place of a WR that has still to invalidate: others need not ask the account.
const INVALIDATES: u32 = 1 << 31;

/// A list of WRs that a consumer posts to a send queue (`struct ib_send_wr`), in order. They name
/// only regions of driver `T`.
pub type SendWrs<'a, T> = PostedList<'a, bindings::ib_send_wr, T>;

impl<T: Driver> SendWrs<'_, T> {
    /// Returns the next WR. Any context.
    pub fn next_wr(&mut self) -> Option<SendWr<'_, T>> {
        let raw = self.step()?;

        // INVARIANT: The WR is one of the list, and is handed out once.
        Some(SendWr {
            queue: self.queue,
            call: self.call,
            taken: &mut self.taken,
            raw,
            _wr: PhantomData,
        })
    }
}

/// A WR that a consumer posts to a send queue (`struct ib_send_wr`). All methods: any context.
///
/// # Invariants
///
/// `raw` is one of [`SendWrs`] with this queue and lifetime `'a`, and there is no other value for
/// it. Consumers leave fields that their opcode does not need uninitialized, so there is no
/// reference to the whole struct.
pub struct SendWr<'a, T: Driver> {
    queue: &'a Arc<PostedQueue>,
    call: Call,
    taken: &'a mut Option<Entry>,
    raw: NonNull<bindings::ib_send_wr>,
    _wr: PhantomData<&'a T>,
}

/// The operation of a WR.
pub enum SendOperation {
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
        /// Immediate Data that follows (`IB_WR_RDMA_WRITE_WITH_IMM`), in network byte order.
        immediate: Option<[u8; 4]>,
    },
    /// Atomic operation on 8 bytes. The original value goes to the only SGE.
    Atomic {
        /// The operation.
        op: PostedAtomic,
        /// It was posted as a masked operation.
        masked: bool,
        /// The STag of the peer's region.
        rkey: u32,
        /// The address in the peer's region.
        addr: u64,
    },
    /// RDMA Read. With `IB_WR_RDMA_READ_WITH_INV` it also [invalidates](WrId::invalidates) its
    /// sink.
    Read {
        /// The STag of the peer's region.
        rkey: u32,
        /// The address in the peer's region.
        addr: u64,
    },
    /// Ends the registration that the WR [invalidates](WrId::invalidates) (`IB_WR_LOCAL_INV`).
    LocalInvalidate,
    /// Registers memory (`IB_WR_REG_MR`).
    Register(PostedMapping),
}

impl<T: Driver> SendWr<'_, T> {
    /// Returns the operation, but for one that registers memory. `None` if drivers of this crate do
    /// not support it.
    fn operation(&self) -> Option<SendOperation> {
        // SAFETY: By the type invariant the WR is valid. Each opcode says which other fields are,
        // and which struct contains the WR.
        unsafe {
            Some(match (*self.raw.as_ptr()).opcode {
                bindings::ib_wr_opcode_IB_WR_SEND => SendOperation::Send { invalidate: None },
                bindings::ib_wr_opcode_IB_WR_SEND_WITH_INV => SendOperation::Send {
                    invalidate: Some(self.invalidate_rkey()),
                },
                bindings::ib_wr_opcode_IB_WR_RDMA_WRITE => {
                    let (rkey, addr) = self.remote();

                    SendOperation::Write {
                        rkey,
                        addr,
                        immediate: None,
                    }
                }
                bindings::ib_wr_opcode_IB_WR_RDMA_WRITE_WITH_IMM => {
                    let (rkey, addr) = self.remote();

                    SendOperation::Write {
                        rkey,
                        addr,
                        // A big-endian number in memory: its bytes are in network byte order.
                        immediate: Some((*self.raw.as_ptr()).ex.imm_data.to_ne_bytes()),
                    }
                }
                opcode @ (bindings::ib_wr_opcode_IB_WR_ATOMIC_FETCH_AND_ADD
                | bindings::ib_wr_opcode_IB_WR_ATOMIC_CMP_AND_SWP
                | bindings::ib_wr_opcode_IB_WR_MASKED_ATOMIC_FETCH_AND_ADD
                | bindings::ib_wr_opcode_IB_WR_MASKED_ATOMIC_CMP_AND_SWP) => self.atomic(opcode),
                bindings::ib_wr_opcode_IB_WR_RDMA_READ
                | bindings::ib_wr_opcode_IB_WR_RDMA_READ_WITH_INV => {
                    let (rkey, addr) = self.remote();

                    SendOperation::Read { rkey, addr }
                }
                bindings::ib_wr_opcode_IB_WR_LOCAL_INV => SendOperation::LocalInvalidate,
                _ => return None,
            })
        }
    }

    /// # Safety
    ///
    /// The opcode must be the opcode of an invalidation.
    unsafe fn invalidate_rkey(&self) -> u32 {
        // SAFETY: By the caller's promise and the rules of the verbs, the field is initialized.
        unsafe { (*self.raw.as_ptr()).ex.invalidate_rkey }
    }

    /// Returns STag and address of the peer's region.
    ///
    /// # Safety
    ///
    /// The opcode must be the opcode of an RDMA Read or Write.
    unsafe fn remote(&self) -> (u32, u64) {
        let wr = self.raw.as_ptr().cast::<bindings::ib_rdma_wr>();

        // SAFETY: By the caller's promise and the rules of the verbs, the WR is the first member of
        // a `struct ib_rdma_wr` whose fields are initialized.
        unsafe { ((*wr).rkey, (*wr).remote_addr) }
    }

    fn has(&self, flag: bindings::ib_send_flags) -> bool {
        // SAFETY: By the type invariant the WR is valid. Consumers set the flags of each WR.
        unsafe { (*self.raw.as_ptr()).send_flags & flag != 0 }
    }

    /// Whether the WR gives a completion even if it succeeds.
    pub fn is_signaled(&self) -> bool {
        self.has(bindings::ib_send_flags_IB_SEND_SIGNALED)
    }

    /// Whether the WR waits for all earlier RDMA Reads and atomic operations (read fence).
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

    /// Takes the WR, with the memory that it names. Fails with `EOPNOTSUPP` if drivers of this
    /// crate do not support its operation; `ENOMEM` if the driver has too many WRs of the queue;
    /// `EINVAL` if it has more than `N` SGEs. A WR that registers memory also fails with `EINVAL`
    /// if none is mapped, if the range wraps, or if the STag is of another region.
    // Its frame has copies of both.
    #[inline(never)]
    pub fn take<const N: usize>(self) -> Result<(SendOperation, Posted<N>)> {
        let other = match self.registers() {
            true => None,
            false => Some(self.operation().ok_or(EOPNOTSUPP)?),
        };
        // SAFETY: By the invariants of `SendWrs` the WR is valid, and its consumer keeps the memory
        // until it learns that the WR is complete.
        let (posted, entry) = unsafe { take(self.queue, self.call, self.raw) }?;

        *self.taken = Some(entry);
        let operation = match other {
            Some(operation) => operation,
            // SAFETY: The WR registers memory.
            None => SendOperation::Register(unsafe { self.mapping(posted.id()) }?),
        };

        Ok((operation, posted))
    }
}
