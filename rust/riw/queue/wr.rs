// SPDX-License-Identifier: GPL-2.0

//! Work requests, checked. The stream uses only these, and sees nothing of the user ABI. They come
//! from ring entries of siw's ABI (`siw_wr.rs`) or riw's own (`own_wr.rs`), or from kernel users
//! (`kernel_wr.rs`).

mod buffers;
mod data;

pub(crate) use buffers::{Buffers, Sge};
pub(crate) use data::{Inline, SendData};

use crate::{
    abi::siw,
    mr::{BindRequest, ATOMIC_LEN},
};
use iwarp::{AtomicOp, Stag};
use kernel::prelude::*;
use rdma::{
    mr::PostedMapping,
    wr::{Memory, PostedSingle},
};

pub(crate) use rdma::wc::{WcOpcode, WcStatus};

/// SGEs of a process's WR, with any ABI.
pub(super) const MAX_SGE: usize = riw_abi::MAX_SGE;
/// Inline data of a WR, in bytes.
pub(super) const MAX_INLINE: usize = riw_abi::MAX_INLINE;

// A WR of any kind fits.
const _: () = assert!(siw::MAX_SGE <= MAX_SGE && siw::MAX_INLINE <= MAX_INLINE);

/// A WR of a kernel user: siw's sizes.
pub(crate) type Posted = rdma::wr::Posted<{ siw::MAX_SGE }>;

/// Identifies a WR to its consumer.
#[derive(Debug)]
pub(crate) enum WrId {
    /// The `wr_id` of a process.
    Process(u64),
    Kernel(rdma::wr::WrId),
}

impl WrId {
    /// Stands for the id of a kernel user's WR while that is with the memory which is lent for the
    /// WR.
    pub(crate) const LENT: Self = Self::Process(0);

    /// Whether a kernel user has given none (`wr_cqe` is null). Any context.
    pub(crate) fn is_anonymous(&self) -> bool {
        matches!(self, Self::Kernel(id) if id.is_null())
    }

    /// Returns the id of a kernel user. Any context.
    pub(crate) fn of_kernel(&mut self) -> Option<&mut rdma::wr::WrId> {
        match self {
            Self::Kernel(id) => Some(id),
            Self::Process(_) => None,
        }
    }

    /// Returns the number of a process, or for a kernel user a hash. Any context.
    pub(crate) fn number(&self) -> u64 {
        match self {
            Self::Process(number) => *number,
            Self::Kernel(id) => id.hash().into(),
        }
    }
}

/// Where the original value of an atomic operation goes: one buffer of [`ATOMIC_LEN`] bytes. The
/// peer does not name it, so for a kernel user it need not be in a region.
pub(crate) enum AtomicSink {
    /// Of a process: part of a region.
    Process(Sge),
    /// With the id of the WR.
    Kernel(PostedSingle),
}

impl AtomicSink {
    /// Returns `None` unless there is one buffer of the right length.
    pub(super) fn new(buffers: &Buffers) -> Option<Self> {
        let sge = buffers.single()?;

        (sge.len == ATOMIC_LEN).then_some(Self::Process(sge))
    }

    /// As [`Self::new`], for a kernel user.
    pub(super) fn of_kernel(posted: Posted) -> Option<Self> {
        let single = posted.into_single()?;

        (single.sge().len == ATOMIC_LEN).then_some(Self::Kernel(single))
    }

    /// Gives the buffer up: the WR is done. Any context. Returns the id of a kernel user's WR.
    #[must_use]
    pub(crate) fn give_up(self) -> Option<WrId> {
        match self {
            Self::Process(_) => None,
            Self::Kernel(single) => Some(WrId::Kernel(single.give_up())),
        }
    }

    /// Returns the buffer. Any context.
    pub(crate) fn sge(&self) -> Sge {
        match self {
            Self::Process(sge) => *sge,
            Self::Kernel(single) => single.sge().into(),
        }
    }

    /// Returns the buffer, if it is a kernel user's memory and not part of a region. Any context.
    pub(crate) fn memory(&self) -> Option<Memory<'_>> {
        match self {
            Self::Process(_) => None,
            Self::Kernel(single) => single.memory(),
        }
    }
}

/// Immediate Data that follows an RDMA Write (RFC 7306, section 6): 32 bits, as the verbs have
/// them, in network byte order. The wire has room for 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Immediate(pub(crate) [u8; 4]);

impl Immediate {
    /// Returns the octets on the wire. The RFC leaves open which of them are the data: Chelsio's
    /// adapters use the first four. Any context.
    pub(crate) fn to_wire(self) -> [u8; 8] {
        let [a, b, c, d] = self.0;

        [a, b, c, d, 0, 0, 0, 0]
    }

    /// Returns the data that a peer has sent. If the first four octets are zero, a peer may use the
    /// others. Any context.
    pub(crate) fn from_wire([a, b, c, d, rest @ ..]: [u8; 8]) -> Self {
        match [a, b, c, d] {
            [0, 0, 0, 0] => Self(rest),
            first => Self(first),
        }
    }
}

/// Immediate Data to be sent.
#[derive(Clone, Copy)]
pub(crate) struct SendImmediate {
    pub(crate) data: Immediate,
    /// It triggers an event at the peer.
    pub(crate) solicited: bool,
}

/// The operation of a send WR. The data of a Send or Write is apart: [`SendData`].
pub(crate) enum SendRequest {
    Send {
        solicited: bool,
        /// The STag of the peer that it invalidates.
        invalidate: Option<Stag>,
    },
    /// RDMA Write to the peer's region `stag`.
    Write {
        stag: Stag,
        to: u64,
        /// Immediate Data that follows, as a message of its own: RDMA Write with Immediate.
        immediate: Option<SendImmediate>,
    },
    /// RDMA Read from the peer's region `stag`. The request names the sink to the peer by one
    /// STag, so there is one buffer.
    Read { sink: Sge, stag: Stag, to: u64 },
    /// Atomic operation on the 8 bytes at `to` in the peer's region `stag`. It counts as an RDMA
    /// Read (ORD, read fence).
    Atomic {
        op: AtomicOp,
        /// It was posted as a masked operation. Only the opcode of its completion shows that.
        masked: bool,
        sink: AtomicSink,
        stag: Stag,
        to: u64,
    },
    /// Registers memory of a kernel user.
    Register(PostedMapping),
    /// Ends a registration of a kernel user: the one that the id of the WR names.
    Unregister,
    /// Invalidates a region or a memory window of a process.
    LocalInvalidate(Stag),
    /// Binds a memory window of a process.
    Bind(BindRequest),
}

/// A WR of a send queue.
pub(crate) struct SendWr {
    /// [`WrId::LENT`] if memory is lent for the WR.
    pub(crate) id: WrId,
    pub(crate) opcode: WcOpcode,
    /// The WR gives a completion even if it succeeds.
    pub(crate) signaled: bool,
    /// The WR waits for all earlier RDMA Reads and atomic operations (read fence).
    pub(crate) fence: bool,
    /// The operation and the length of the message in bytes; or the error of an invalid WR.
    pub(crate) request: Result<(SendRequest, u32), WcStatus>,
}

impl SendWr {
    /// Whether the WR completes when the peer has answered: an RDMA Read or an atomic operation.
    /// Any context.
    pub(crate) fn awaits_response(&self) -> bool {
        matches!(
            self.opcode,
            WcOpcode::Read
                | WcOpcode::FetchAdd
                | WcOpcode::CmpSwap
                | WcOpcode::MaskedFetchAdd
                | WcOpcode::MaskedCmpSwap
        )
    }

    /// Takes the id: there is only one completion. Any context.
    pub(crate) fn take_id(&mut self) -> WrId {
        core::mem::replace(&mut self.id, WrId::LENT)
    }

    /// Gives up the memory of the WR, whose data is `data`: the WR is done. Any context. Returns
    /// the id, for the only completion.
    pub(crate) fn give_up(&mut self, data: &mut SendData) -> WrId {
        let lent = match (data.give_up(), self.take_request()) {
            (None, Some(SendRequest::Atomic { sink, .. })) => sink.give_up(),
            (lent, _) => lent,
        };

        lent.unwrap_or(self.take_id())
    }

    /// Returns the number of the WR, whose data is `data`, as [`WrId::number`] does. Any context.
    pub(super) fn number(&self, data: &SendData) -> u64 {
        let request = self.request.as_ref().ok();
        let lent = request.and_then(|(request, _)| request.lent_id());

        match lent.or(data.lent_id()) {
            Some(id) => id.hash().into(),
            None => self.id.number(),
        }
    }

    /// Takes the request, with the memory that is lent for it. Any context. `None` if the WR is
    /// invalid.
    pub(crate) fn take_request(&mut self) -> Option<SendRequest> {
        let taken = core::mem::replace(&mut self.request, Err(WcStatus::Flushed));

        taken.ok().map(|(request, _)| request)
    }

    /// Returns the opcode of the WR in trace events. Any context.
    pub(super) fn trace_opcode(&self) -> u8 {
        match &self.request {
            Ok((
                SendRequest::Write {
                    immediate: Some(_), ..
                },
                _,
            )) => trace::opcode::WRITE_WITH_IMM,
            _ => siw::trace_opcode(self.opcode),
        }
    }

    /// Returns the flags of the WR, with its data, in siw's encoding, as far as they mean something
    /// for it. Any context.
    pub(crate) fn flags(&self, data: &SendData) -> u16 {
        let inline = matches!(data, SendData::Inline(_));
        let (inline, solicited) = match &self.request {
            Ok((SendRequest::Send { solicited, .. }, _)) => (inline, *solicited),
            Ok((SendRequest::Write { immediate, .. }, _)) => (
                inline,
                immediate.is_some_and(|immediate| immediate.solicited),
            ),
            _ => (false, false),
        };

        [
            (inline, siw::INLINE),
            (self.signaled, siw::SIGNALLED),
            (solicited, siw::SOLICITED),
            (self.fence, siw::READ_FENCE),
        ]
        .into_iter()
        .filter(|(set, _)| *set)
        .fold(0, |flags, (_, flag)| flags | flag)
    }
}

impl SendRequest {
    /// Returns an atomic operation whose original value goes to `sink`, and the length that its
    /// completion reports. Any context.
    pub(super) fn atomic(
        op: AtomicOp,
        masked: bool,
        sink: AtomicSink,
        stag: Stag,
        to: u64,
    ) -> (Self, u32) {
        let request = Self::Atomic {
            op,
            masked,
            sink,
            stag,
            to,
        };

        (request, ATOMIC_LEN)
    }

    /// Returns the id of a kernel user's WR for which memory is lent, if the request has it. Any
    /// context.
    pub(super) fn lent_id(&self) -> Option<&rdma::wr::WrId> {
        match self {
            Self::Atomic {
                sink: AtomicSink::Kernel(single),
                ..
            } => Some(single.id()),
            _ => None,
        }
    }

    /// Returns the opcode of its completion.
    pub(super) fn opcode(&self) -> WcOpcode {
        match self {
            Self::Send {
                invalidate: Some(_),
                ..
            } => WcOpcode::SendInvalidate,
            Self::Send { .. } => WcOpcode::Send,
            Self::Write { .. } => WcOpcode::Write,
            Self::Read { .. } => WcOpcode::Read,
            Self::Atomic { op, masked, .. } => match (op, masked) {
                (AtomicOp::FetchAdd { .. }, false) => WcOpcode::FetchAdd,
                (AtomicOp::FetchAdd { .. }, true) => WcOpcode::MaskedFetchAdd,
                (AtomicOp::CmpSwap { .. }, false) => WcOpcode::CmpSwap,
                (AtomicOp::CmpSwap { .. }, true) => WcOpcode::MaskedCmpSwap,
            },
            Self::Register(_) => WcOpcode::Register,
            Self::Unregister | Self::LocalInvalidate(_) => WcOpcode::LocalInvalidate,
            Self::Bind(_) => WcOpcode::BindWindow,
        }
    }

    /// Returns an RDMA Read, and the length of its message. Any context. Fails with `LocalLength`
    /// if it is too long, `LocalOperation` if it has several buffers.
    pub(super) fn read(buffers: &Buffers, stag: Stag, to: u64) -> Result<(Self, u32), WcStatus> {
        let len = buffers.len().ok_or(WcStatus::LocalLength)?;
        let request = Self::Read {
            sink: buffers.single().ok_or(WcStatus::LocalOperation)?,
            stag,
            to,
        };

        Ok((request, len))
    }
}

/// The completion of a send WR, without its id and its status.
#[derive(Clone, Copy)]
pub(crate) struct WrReport {
    pub(super) opcode: WcOpcode,
    /// The length of the message.
    pub(crate) bytes: u32,
    /// The WR gives a completion even if it succeeds.
    pub(super) signaled: bool,
}

/// Where the send WR is that the transmitter has.
#[derive(Clone, Copy)]
pub(crate) enum WrPlace {
    /// It is still the next WR, as [`SendQueue::peek`](super::send::SendQueue::peek) has left it.
    Next(WrReport),
    /// It has begun, and has this number.
    Begun(u32),
}

/// A WR of a receive queue. Its buffers are apart: [`Buffers`].
pub(crate) struct RecvWr {
    /// [`WrId::LENT`] for a kernel user: the buffers have it.
    pub(crate) id: WrId,
    /// Why the WR is invalid.
    pub(crate) valid: Result<(), WcStatus>,
}
