// SPDX-License-Identifier: GPL-2.0

//! Completions, and how kernel users poll them.
//!
//! C header: `include/rdma/ib_verbs.h`

use crate::{
    mr::{Grant, Invalidated},
    qp::Qp,
    wr::WrId,
    Driver,
};
use core::marker::PhantomData;
use kernel::{ffi::c_int, prelude::*, sync::Arc};
use riw_bindings as bindings;

/// The operation of a completion (`enum ib_wc_opcode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WcOpcode {
    /// Send.
    Send,
    /// Send with Invalidate. ib_core has one opcode for both.
    SendInvalidate,
    /// RDMA Write.
    Write,
    /// RDMA Read.
    Read,
    /// Atomic addition.
    FetchAdd,
    /// Atomic comparison and swap.
    CmpSwap,
    /// Masked atomic addition.
    MaskedFetchAdd,
    /// Masked atomic comparison and swap.
    MaskedCmpSwap,
    /// Invalidation of a region of this side.
    LocalInvalidate,
    /// Registration of a region.
    Register,
    /// Binding of a memory window.
    BindWindow,
    /// Receive.
    Receive,
    /// Receive of the Immediate Data that follows an RDMA Write.
    ReceiveImmediate,
}

impl WcOpcode {
    /// Whether it is of a WR of a receive queue.
    fn is_receive(self) -> bool {
        matches!(self, Self::Receive | Self::ReceiveImmediate)
    }

    fn into_raw(self) -> bindings::ib_wc_opcode {
        match self {
            Self::Send | Self::SendInvalidate => bindings::ib_wc_opcode_IB_WC_SEND,
            Self::Write => bindings::ib_wc_opcode_IB_WC_RDMA_WRITE,
            Self::Read => bindings::ib_wc_opcode_IB_WC_RDMA_READ,
            Self::FetchAdd => bindings::ib_wc_opcode_IB_WC_FETCH_ADD,
            Self::CmpSwap => bindings::ib_wc_opcode_IB_WC_COMP_SWAP,
            Self::MaskedFetchAdd => bindings::ib_wc_opcode_IB_WC_MASKED_FETCH_ADD,
            Self::MaskedCmpSwap => bindings::ib_wc_opcode_IB_WC_MASKED_COMP_SWAP,
            Self::LocalInvalidate => bindings::ib_wc_opcode_IB_WC_LOCAL_INV,
            Self::Register => bindings::ib_wc_opcode_IB_WC_REG_MR,
            // Only processes bind windows, and no callback polls for them.
            Self::BindWindow => bindings::ib_wc_opcode_IB_WC_BIND_MW,
            Self::Receive => bindings::ib_wc_opcode_IB_WC_RECV,
            Self::ReceiveImmediate => bindings::ib_wc_opcode_IB_WC_RECV_RDMA_WITH_IMM,
        }
    }
}

/// The status of a completion (`enum ib_wc_status`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WcStatus {
    /// The WR has succeeded.
    Success,
    /// A message was longer than its receive WR, or the lengths of a WR are invalid.
    LocalLength,
    /// The WR may not use a local buffer in this way.
    LocalProtection,
    /// The queue pair does not support the WR.
    LocalOperation,
    /// Flushed: the queue pair is in ERROR.
    Flushed,
    /// A memory window could not be bound.
    Bind,
    /// The peer may not invalidate the region that it named.
    LocalAccess,
    /// The peer denied an access.
    RemoteAccess,
    /// The peer refused the WR as invalid.
    RemoteInvalid,
}

impl WcStatus {
    fn into_raw(self) -> bindings::ib_wc_status {
        match self {
            Self::Success => bindings::ib_wc_status_IB_WC_SUCCESS,
            Self::LocalLength => bindings::ib_wc_status_IB_WC_LOC_LEN_ERR,
            Self::LocalProtection => bindings::ib_wc_status_IB_WC_LOC_PROT_ERR,
            Self::LocalOperation => bindings::ib_wc_status_IB_WC_LOC_QP_OP_ERR,
            Self::Flushed => bindings::ib_wc_status_IB_WC_WR_FLUSH_ERR,
            Self::Bind => bindings::ib_wc_status_IB_WC_MW_BIND_ERR,
            Self::LocalAccess => bindings::ib_wc_status_IB_WC_LOC_ACCESS_ERR,
            Self::RemoteAccess => bindings::ib_wc_status_IB_WC_REM_ACCESS_ERR,
            Self::RemoteInvalid => bindings::ib_wc_status_IB_WC_REM_INV_REQ_ERR,
        }
    }
}

/// The extra that a received message has besides its payload (`ib_wc::ex`). It has one at most.
pub enum WcEx {
    /// Nothing.
    None,
    /// The message has invalidated a registration.
    Invalidated(Invalidated),
    /// Immediate Data, in network byte order.
    Immediate([u8; 4]),
}

impl WcEx {
    fn into_raw(
        self,
        grant: &Arc<Grant>,
    ) -> (bindings::ib_wc__bindgen_ty_2, bindings::ib_wc_flags) {
        let stag = match &self {
            Self::Invalidated(invalidated) => invalidated.holds(grant),
            Self::None | Self::Immediate(_) => None,
        };

        match self {
            Self::Immediate(data) => (
                bindings::ib_wc__bindgen_ty_2 {
                    // A big-endian number in memory: its bytes are in network byte order.
                    imm_data: u32::from_ne_bytes(data),
                },
                bindings::ib_wc_flags_IB_WC_WITH_IMM,
            ),
            Self::None | Self::Invalidated(_) => (
                bindings::ib_wc__bindgen_ty_2 {
                    invalidate_rkey: stag.unwrap_or(0),
                },
                stag.map_or(0, |_| bindings::ib_wc_flags_IB_WC_WITH_INVALIDATE),
            ),
        }
    }
}

/// A completion for a kernel user (`struct ib_wc`).
pub struct Wc<'a, T: Driver> {
    /// The WR.
    pub id: WrId,
    /// Its operation.
    pub opcode: WcOpcode,
    /// How it ended.
    pub status: WcStatus,
    /// Length of the message in bytes. The consumer gets at most the size of the WR's buffers.
    pub bytes: u32,
    /// The extra that a received message has besides its payload.
    pub ex: WcEx,
    /// The queue pair.
    pub qp: &'a Qp<T>,
}

/// Room for the completions that a kernel user polls (`ib_device_ops::poll_cq`). All methods: any
/// context.
///
/// # Invariants
///
/// `next` is valid for writes of `left` completions, which the consumer of `cq` gets.
pub struct WcRoom<'a, T: Driver> {
    cq: *mut bindings::ib_cq,
    next: *mut bindings::ib_wc,
    left: usize,
    _room: PhantomData<&'a mut T>,
}

impl<T: Driver> WcRoom<'_, T> {
    /// # Safety
    ///
    /// The consumer must poll `cq`. `first` must be valid for writes of `count` completions, which
    /// nothing else accesses for the life of the value.
    pub(crate) unsafe fn new(
        cq: *mut bindings::ib_cq,
        first: *mut bindings::ib_wc,
        count: usize,
    ) -> Self {
        // INVARIANT: The caller promises it.
        Self {
            cq,
            next: first,
            left: count,
            _room: PhantomData,
        }
    }

    /// Returns how many completions fit.
    pub fn left(&self) -> usize {
        self.left
    }

    /// Adds a completion. Fails with `ENOSPC` if there is no room, and with `EINVAL`, with the WR
    /// completed by nothing, if
    ///
    /// - the WR was not posted to the queue of the queue pair whose completions these are, or
    ///   another completion queue gets them;
    /// - the driver still has the id of a WR that was posted before it, unless the queue is shared;
    /// - the WR is to end a registration, and has not;
    /// - it is flushed, and what the queue pair has registered has not ended: see
    ///   [`Registrar::revoke`].
    ///
    /// An invalidation that was of another queue pair, or before the present registration, is left
    /// out.
    ///
    /// [`Registrar::revoke`]: crate::mr::Registrar::revoke
    pub fn push(&mut self, wc: Wc<'_, T>) -> Result {
        let lent = wc.qp.lent().ok_or(EINVAL)?;
        let is_of_queue = (lent.queues).completes(wc.opcode.is_receive(), wc.id.queue(), self.cq);
        let is_early = wc.status == WcStatus::Flushed && !lent.grant.has_ended();

        if !is_of_queue || is_early {
            return Err(EINVAL);
        }
        let left = self.left.checked_sub(1).ok_or(ENOSPC)?;
        let byte_len = wc.id.byte_len(wc.bytes);
        let wr_id = wc.id.complete().map_err(|_| EINVAL)?;

        self.left = left;
        let (ex, flags) = wc.ex.into_raw(&lent.grant);
        let raw = bindings::ib_wc {
            __bindgen_anon_1: bindings::ib_wc__bindgen_ty_1 { wr_id },
            status: wc.status.into_raw(),
            opcode: wc.opcode.into_raw(),
            byte_len,
            qp: wc.qp.raw(),
            ex,
            // CAST: A bit.
            wc_flags: flags as c_int,
            port_num: 1,
            ..bindings::ib_wc::default()
        };

        // SAFETY: By the type invariant there was room for `left` completions from `next` on, and
        // `left` was not 0. ib_core calls a function through the id, once: a `WrId` exists once for
        // each WR that was posted, and this consumes it. The function expects its queue pair, which
        // exists as long as the reference to it, and its completion queue: both are compared.
        unsafe {
            self.next.write(raw);
            self.next = self.next.add(1);
        }
        Ok(())
    }
}
