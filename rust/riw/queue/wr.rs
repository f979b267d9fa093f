// SPDX-License-Identifier: GPL-2.0

//! Work requests, decoded from their ring entries and checked. The stream uses only these, and sees
//! nothing of the user ABI.

use crate::abi;
use iwarp::Stag;
use kernel::prelude::*;

/// An operation, as a completion names it. The values are those of the user ABI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum WcOpcode {
    Send = abi::OP_SEND,
    SendInvalidate = abi::OP_SEND_INVALIDATE,
    Write = abi::OP_WRITE,
    Read = abi::OP_READ,
    Receive = abi::OP_RECEIVE,
}

impl WcOpcode {
    /// Returns the operation of a send queue entry, or `None` if the opcode is unknown or not
    /// supported. Any context.
    fn of_send(raw: u8) -> Option<Self> {
        Some(match raw {
            abi::OP_SEND => Self::Send,
            abi::OP_SEND_INVALIDATE => Self::SendInvalidate,
            abi::OP_WRITE => Self::Write,
            abi::OP_READ => Self::Read,
            _ => return None,
        })
    }
}

/// The status of a completion. The values are those of the user ABI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum WcStatus {
    Success = abi::WC_SUCCESS,
    /// A message was longer than its receive WR, or the lengths of a WR are invalid.
    LocalLength = abi::WC_LOCAL_LENGTH,
    /// The WR may not use a local buffer in this way.
    LocalProtection = abi::WC_LOCAL_PROTECTION,
    /// The queue pair does not support the WR.
    LocalOperation = abi::WC_LOCAL_OPERATION,
    /// Flushed: the queue pair is in ERROR.
    Flushed = abi::WC_FLUSHED,
    /// The peer may not invalidate the region that it named.
    LocalAccess = abi::WC_LOCAL_ACCESS,
    /// The peer denied an access.
    RemoteAccess = abi::WC_REMOTE_ACCESS,
    /// The peer refused the WR as invalid.
    RemoteInvalid = abi::WC_REMOTE_INVALID,
    /// Any other error.
    General = abi::WC_GENERAL,
}

/// A buffer: part of a memory region.
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
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Sge> {
        self.sges.iter().take(self.count)
    }

    /// Returns the sum of the lengths, in bytes; `None` if it exceeds a message.
    pub(crate) fn len(&self) -> Option<u32> {
        self.iter()
            .try_fold(0u32, |sum, sge| sum.checked_add(sge.len))
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

    /// Returns `len` bytes from `offset` on; `None` if the WR has fewer.
    pub(crate) fn get(&self, offset: u32, len: usize) -> Option<&[u8]> {
        // CAST: 32-bit numbers fit.
        let data = self.data.get(..self.len as usize)?;
        let start = offset as usize;

        data.get(start..start.checked_add(len)?)
    }
}

/// Where the payload of a message is.
#[derive(Clone, Copy)]
pub(crate) enum Payload {
    Buffers(SgList),
    Inline(Inline),
}

/// The operation of a send WR.
#[derive(Clone, Copy)]
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
    Read { sink: Sge, stag: Stag, to: u64 },
}

/// A WR of a send queue.
pub(crate) struct SendWr {
    /// The `wr_id` of the consumer.
    pub(crate) id: u64,
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

impl From<abi::Sqe> for SendWr {
    fn from(sqe: abi::Sqe) -> Self {
        let opcode = WcOpcode::of_send(sqe.opcode);

        Self {
            id: sqe.id,
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

impl SendRequest {
    /// Returns the request and the length of its message.
    fn decode(sqe: &abi::Sqe, opcode: WcOpcode) -> Result<(Self, u32), WcStatus> {
        let (stag, to) = (Stag(sqe.rkey), sqe.raddr);

        if opcode == WcOpcode::Read {
            let (sink, len) = decode_sink(sqe)?;

            return Ok((Self::Read { sink, stag, to }, len));
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
    /// Returns the payload and its length.
    fn decode(sqe: &abi::Sqe) -> Result<(Self, u32), WcStatus> {
        if sqe.flags & abi::INLINE != 0 {
            let inline = Inline::new(&sqe.sges)?;

            return Ok((Self::Inline(inline), inline.len));
        }
        let buffers = SgList::new(&sqe.sges)?;
        let len = buffers.len().ok_or(WcStatus::LocalLength)?;

        Ok((Self::Buffers(buffers), len))
    }
}

/// Returns the sink of an RDMA Read and the length of the message.
fn decode_sink(sqe: &abi::Sqe) -> Result<(Sge, u32), WcStatus> {
    if sqe.flags & abi::INLINE != 0 {
        return Err(WcStatus::LocalOperation);
    }
    let buffers = SgList::new(&sqe.sges)?;
    let len = buffers.len().ok_or(WcStatus::LocalLength)?;
    let mut sges = buffers.iter();
    let sink = sges.next().copied().unwrap_or(Sge::EMPTY);

    if sges.next().is_some() {
        return Err(WcStatus::LocalOperation);
    }
    Ok((sink, len))
}

/// A WR of a receive queue.
#[derive(Clone, Copy)]
pub(crate) struct RecvWr {
    /// The `wr_id` of the consumer.
    pub(crate) id: u64,
    /// The buffers, or why the WR is invalid.
    pub(crate) buffers: Result<SgList, WcStatus>,
}

impl From<abi::Rqe> for RecvWr {
    fn from(rqe: abi::Rqe) -> Self {
        Self {
            id: rqe.id,
            buffers: SgList::new(&rqe.sges),
        }
    }
}
