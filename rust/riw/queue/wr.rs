// SPDX-License-Identifier: GPL-2.0

//! Work requests, decoded from their ring entries and checked. The stream uses only these, and sees
//! nothing of the user ABI.

use crate::{abi, mr::Mapping, Riw};
use iwarp::Stag;
use kernel::prelude::*;
use rdma::{
    wr::{Lent, Memory, Posted, PostedSge, SendOperation, LOCAL_DMA_LKEY},
    Device,
};

pub(crate) use rdma::wc::{WcOpcode, WcStatus};

// A WR of either kind fits.
const _: () = assert!(rdma::wr::MAX_SGE <= abi::MAX_SGE);

/// Returns the operation of a send queue entry, or `None` if the opcode is unknown or not supported.
fn send_opcode(raw: u8) -> Option<WcOpcode> {
    Some(match raw {
        abi::OP_SEND => WcOpcode::Send,
        abi::OP_SEND_INVALIDATE => WcOpcode::SendInvalidate,
        abi::OP_WRITE => WcOpcode::Write,
        abi::OP_READ => WcOpcode::Read,
        _ => return None,
    })
}

/// Identifies a WR to its consumer.
#[derive(Debug)]
pub(crate) enum WrId {
    /// The `wr_id` of a process.
    Process(u64),
    Kernel(rdma::wr::WrId),
}

impl WrId {
    /// Whether a kernel user has given none (`wr_cqe` is null). Any context.
    pub(crate) fn is_anonymous(&self) -> bool {
        matches!(self, Self::Kernel(id) if id.number() == 0)
    }

    /// Returns the number. Any context.
    pub(crate) fn number(&self) -> u64 {
        match self {
            Self::Process(number) => *number,
            Self::Kernel(id) => id.number(),
        }
    }
}

/// A buffer: part of a memory region, or memory of the kernel.
#[derive(Clone, Copy)]
pub(crate) struct Sge {
    pub(crate) addr: u64,
    /// Length in bytes.
    pub(crate) len: u32,
    pub(crate) stag: Stag,
}

impl Sge {
    const EMPTY: Self = Self {
        addr: 0,
        len: 0,
        stag: Stag(0),
    };
}

/// The buffers of a WR.
pub(crate) enum Buffers {
    /// A process lends memory by its regions only.
    Process(SgList),
    Kernel(Lent),
}

impl Buffers {
    /// Iterates over the buffers in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Sge> + '_ {
        let (process, kernel) = match self {
            Self::Process(list) => (list.iter().copied(), Default::default()),
            Self::Kernel(lent) => (Default::default(), lent.sges()),
        };

        Iterator::chain(process, kernel.iter().map(Sge::from))
    }

    /// Returns the only buffer, or an empty one if there is none; `None` if there are several.
    fn single(&self) -> Option<Sge> {
        let mut sges = self.iter();
        let first = sges.next().unwrap_or(Sge::EMPTY);

        sges.next().is_none().then_some(first)
    }

    /// Returns the sum of the lengths, in bytes; `None` if it exceeds a message.
    pub(crate) fn len(&self) -> Option<u32> {
        self.iter()
            .try_fold(0u32, |sum, sge| sum.checked_add(sge.len))
    }

    /// Returns `len` bytes at `addr` of a kernel user's buffer with the key `stag`. Any context. `None`
    /// if `stag` names a region.
    pub(crate) fn memory(&self, stag: Stag, addr: u64, len: u32) -> Option<Memory<'_>> {
        match self {
            Self::Kernel(lent) if stag.0 == LOCAL_DMA_LKEY => lent.memory(addr, len),
            _ => None,
        }
    }
}

impl From<&PostedSge> for Sge {
    fn from(sge: &PostedSge) -> Self {
        Self {
            addr: sge.addr,
            len: sge.len,
            stag: Stag(sge.lkey),
        }
    }
}

/// The buffers of a process's WR.
#[derive(Clone, Copy)]
pub(crate) struct SgList {
    sges: [Sge; abi::MAX_SGE],
    count: usize,
}

impl SgList {
    /// Fails with `LocalOperation` if there are too many SGEs.
    fn new(from: &abi::Sges) -> Result<Self, WcStatus> {
        let count = checked_count(from)?;
        let mut sges = [Sge::EMPTY; abi::MAX_SGE];

        for (to, sge) in sges.iter_mut().zip(from.iter()) {
            *to = Sge {
                addr: sge.addr,
                len: sge.len,
                stag: Stag(sge.lkey),
            };
        }
        Ok(Self { sges, count })
    }

    /// Iterates over the buffers in order.
    fn iter(&self) -> core::slice::Iter<'_, Sge> {
        self.sges.get(..self.count).unwrap_or_default().iter()
    }
}

/// Returns the number of SGEs. Fails with `LocalOperation` if there are too many.
fn checked_count(sges: &abi::Sges) -> Result<usize, WcStatus> {
    match sges.count() {
        count @ 0..=abi::MAX_SGE => Ok(count),
        _ => Err(WcStatus::LocalOperation),
    }
}

/// Data that the WR itself holds.
#[derive(Clone, Copy)]
pub(crate) struct Inline {
    data: [u8; abi::MAX_INLINE],
    len: u32,
}

impl Inline {
    /// Fails with `LocalOperation` if there are too many SGEs, `LocalLength` if there is more data
    /// than fits.
    fn new(from: &abi::Sges) -> Result<Self, WcStatus> {
        checked_count(from)?;
        let len = from.iter().next().map_or(0, |sge| sge.len);

        // CAST: A 32-bit number fits.
        if len as usize > abi::MAX_INLINE {
            return Err(WcStatus::LocalLength);
        }
        Ok(Self {
            data: from.inline_data(),
            len,
        })
    }

    /// Copies the data of a kernel user's WR. Fails with `EINVAL` if there is more than fits, or if
    /// it is not memory of the kernel.
    fn of_kernel(lent: &Lent) -> Result<Self> {
        let mut data = [0; abi::MAX_INLINE];
        let mut len = 0u32;

        for sge in lent.sges().iter().filter(|sge| sge.len != 0) {
            // CAST: 32-bit numbers fit.
            let to = data.get_mut(len as usize..).ok_or(EINVAL)?;
            let to = to.get_mut(..sge.len as usize).ok_or(EINVAL)?;

            lent.memory(sge.addr, sge.len).ok_or(EINVAL)?.copy_to(to)?;
            len = len.checked_add(sge.len).ok_or(EINVAL)?;
        }
        Ok(Self { data, len })
    }

    /// Returns `len` bytes from `offset` on; `None` if the WR has fewer.
    pub(crate) fn get(&self, offset: u32, len: usize) -> Option<&[u8]> {
        // CAST: 32-bit numbers fit.
        let data = self.data.get(..self.len as usize)?;
        let start = offset as usize;

        data.get(start..start.checked_add(len)?)
    }
}

/// Where the payload of a message is.
pub(crate) enum Payload {
    Buffers(Buffers),
    Inline(Inline),
}

/// The operation of a send WR.
pub(crate) enum SendRequest {
    Send {
        payload: Payload,
        solicited: bool,
        /// The STag of the peer that it invalidates.
        invalidate: Option<Stag>,
    },
    /// RDMA Write to the peer's region `stag`.
    Write {
        payload: Payload,
        stag: Stag,
        to: u64,
    },
    /// RDMA Read from the peer's region `stag`. The request names the sink to the peer by one
    /// STag, so there is one buffer.
    Read {
        sink: Sge,
        stag: Stag,
        to: u64,
        /// The completion invalidates the sink's STag.
        invalidate: bool,
    },
    /// Registers memory of a kernel user.
    Register(Mapping),
    /// Invalidates the registration `stag` of a kernel user.
    LocalInvalidate(Stag),
}

/// A WR of a send queue.
pub(crate) struct SendWr {
    pub(crate) id: WrId,
    pub(crate) opcode: WcOpcode,
    /// The WR gives a completion even if it succeeds.
    pub(crate) signaled: bool,
    /// The WR waits for all earlier RDMA Reads (read fence).
    pub(crate) fence: bool,
    /// The operation and the length of the message in bytes; or the error of an invalid WR.
    pub(crate) request: Result<(SendRequest, u32), WcStatus>,
}

impl SendWr {
    /// Returns the flags of the WR, as far as they mean something for it. Any context.
    pub(crate) fn flags(&self) -> u16 {
        let (inline, solicited) = match &self.request {
            Ok((
                SendRequest::Send {
                    payload, solicited, ..
                },
                _,
            )) => (matches!(payload, Payload::Inline(_)), *solicited),
            Ok((SendRequest::Write { payload, .. }, _)) => {
                (matches!(payload, Payload::Inline(_)), false)
            }
            _ => (false, false),
        };

        [
            (inline, abi::INLINE),
            (self.signaled, abi::SIGNALLED),
            (solicited, abi::SOLICITED),
            (self.fence, abi::READ_FENCE),
        ]
        .into_iter()
        .filter(|(set, _)| *set)
        .fold(0, |flags, (_, flag)| flags | flag)
    }
}

impl From<[u64; abi::SQE_WORDS]> for SendWr {
    fn from(words: [u64; abi::SQE_WORDS]) -> Self {
        let sqe = abi::Sqe::from(words);
        let opcode = send_opcode(sqe.opcode);

        Self {
            id: WrId::Process(sqe.id),
            opcode: opcode.unwrap_or(WcOpcode::Send),
            signaled: sqe.flags & abi::SIGNALLED != 0,
            // A WR with an unknown opcode fails at once.
            fence: sqe.flags & abi::READ_FENCE != 0 && opcode.is_some(),
            request: opcode
                .ok_or(WcStatus::LocalOperation)
                .and_then(|opcode| SendRequest::decode(&sqe, opcode)),
        }
    }
}

impl SendWr {
    /// Takes a WR that a kernel user of `dev` posts. Any context. Fails with `EOPNOTSUPP` for an operation that
    /// riw does not support, `EINVAL` for an invalid WR.
    pub(crate) fn posted(dev: &Device<Riw>, wr: rdma::wr::SendWr<'_, Riw>) -> Result<Self> {
        let operation = wr.operation().ok_or(EOPNOTSUPP)?;
        let (signaled, fence) = (wr.is_signaled(), wr.is_fenced());
        let (solicited, inline) = (wr.is_solicited(), wr.is_inline());
        let Posted { id, lent } = wr.take()?;
        let (request, len) = SendRequest::posted(dev, operation, lent, solicited, inline)?;

        Ok(Self {
            id: WrId::Kernel(id),
            opcode: request.opcode(),
            signaled,
            fence,
            request: Ok((request, len)),
        })
    }
}

impl SendRequest {
    /// Returns the opcode of its completion.
    fn opcode(&self) -> WcOpcode {
        match self {
            Self::Send {
                invalidate: Some(_),
                ..
            } => WcOpcode::SendInvalidate,
            Self::Send { .. } => WcOpcode::Send,
            Self::Write { .. } => WcOpcode::Write,
            Self::Read { .. } => WcOpcode::Read,
            Self::Register(_) => WcOpcode::Register,
            Self::LocalInvalidate(_) => WcOpcode::LocalInvalidate,
        }
    }

    /// Takes the request of a kernel user of `dev`, and returns the length of its message, too. Fails
    /// with `EINVAL` if it is invalid.
    fn posted(
        dev: &Device<Riw>,
        operation: SendOperation<'_, Riw>,
        lent: Lent,
        solicited: bool,
        inline: bool,
    ) -> Result<(Self, u32)> {
        Ok(match operation {
            SendOperation::Send { invalidate } => {
                let (payload, len) = Payload::of_kernel(lent, inline)?;
                let request = Self::Send {
                    payload,
                    solicited,
                    invalidate: invalidate.map(Stag),
                };

                (request, len)
            }
            SendOperation::Write { rkey, addr } => {
                let (payload, len) = Payload::of_kernel(lent, inline)?;
                let request = Self::Write {
                    payload,
                    stag: Stag(rkey),
                    to: addr,
                };

                (request, len)
            }
            SendOperation::Read {
                rkey,
                addr,
                invalidate,
            } => {
                let buffers = Buffers::Kernel(lent);
                let request = Self::Read {
                    sink: buffers.single().ok_or(EINVAL)?,
                    stag: Stag(rkey),
                    to: addr,
                    invalidate,
                };

                (request, buffers.len().ok_or(EINVAL)?)
            }
            SendOperation::LocalInvalidate { stag } => (Self::LocalInvalidate(Stag(stag)), 0),
            SendOperation::Register {
                mr,
                iova,
                stag,
                access,
            } => {
                let mapping = mr.take_mapping(dev, Stag(stag), iova, access)?;

                (Self::Register(mapping), 0)
            }
        })
    }

    /// Returns the request and the length of its message.
    fn decode(sqe: &abi::Sqe, opcode: WcOpcode) -> Result<(Self, u32), WcStatus> {
        let (stag, to) = (Stag(sqe.rkey), sqe.raddr);

        if opcode == WcOpcode::Read {
            let (sink, len) = decode_sink(sqe)?;

            let request = Self::Read {
                sink,
                stag,
                to,
                invalidate: false,
            };
            return Ok((request, len));
        }
        let (payload, len) = Payload::decode(sqe)?;
        let request = match opcode {
            WcOpcode::Write => Self::Write { payload, stag, to },
            _ => Self::Send {
                payload,
                solicited: sqe.flags & abi::SOLICITED != 0,
                invalidate: (opcode == WcOpcode::SendInvalidate).then_some(stag),
            },
        };

        Ok((request, len))
    }
}

impl Payload {
    /// Returns the payload of a kernel user's WR and its length. Fails with `EINVAL` if it is too long.
    fn of_kernel(lent: Lent, inline: bool) -> Result<(Self, u32)> {
        if inline {
            let inline = Inline::of_kernel(&lent)?;

            return Ok((Self::Inline(inline), inline.len));
        }
        let buffers = Buffers::Kernel(lent);
        let len = buffers.len().ok_or(EINVAL)?;

        Ok((Self::Buffers(buffers), len))
    }

    /// Returns the payload and its length.
    fn decode(sqe: &abi::Sqe) -> Result<(Self, u32), WcStatus> {
        if sqe.flags & abi::INLINE != 0 {
            let inline = Inline::new(&sqe.sges)?;

            return Ok((Self::Inline(inline), inline.len));
        }
        let buffers = Buffers::Process(SgList::new(&sqe.sges)?);
        let len = buffers.len().ok_or(WcStatus::LocalLength)?;

        Ok((Self::Buffers(buffers), len))
    }
}

/// Returns the sink of an RDMA Read and the length of the message.
fn decode_sink(sqe: &abi::Sqe) -> Result<(Sge, u32), WcStatus> {
    if sqe.flags & abi::INLINE != 0 {
        return Err(WcStatus::LocalOperation);
    }
    let buffers = Buffers::Process(SgList::new(&sqe.sges)?);
    let len = buffers.len().ok_or(WcStatus::LocalLength)?;
    let sink = buffers.single().ok_or(WcStatus::LocalOperation)?;

    Ok((sink, len))
}

/// A WR of a receive queue.
pub(crate) struct RecvWr {
    pub(crate) id: WrId,
    /// The buffers, or why the WR is invalid.
    pub(crate) buffers: Result<Buffers, WcStatus>,
}

impl From<[u64; abi::RQE_WORDS]> for RecvWr {
    fn from(words: [u64; abi::RQE_WORDS]) -> Self {
        let rqe = abi::Rqe::from(words);

        Self {
            id: WrId::Process(rqe.id),
            buffers: SgList::new(&rqe.sges).map(Buffers::Process),
        }
    }
}

impl From<Posted> for RecvWr {
    fn from(posted: Posted) -> Self {
        Self {
            id: WrId::Kernel(posted.id),
            buffers: Ok(Buffers::Kernel(posted.lent)),
        }
    }
}
