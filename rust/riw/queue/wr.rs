// SPDX-License-Identifier: GPL-2.0

//! Work requests, decoded from their ring entries and checked. The stream uses only these, and sees
//! nothing of the user ABI.

use crate::abi;
use iwarp::Stag;
use kernel::prelude::*;

/// An operation, as a completion names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WcOpcode {
    Send,
    SendInvalidate,
    Write,
    Read,
    Receive,
}

/// The status of a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WcStatus {
    Success,
    /// A message was longer than its receive WR, or the lengths of a WR are invalid.
    LocalLength,
    /// The WR may not use a local buffer in this way.
    LocalProtection,
    /// The queue pair does not support the WR.
    LocalOperation,
    /// Flushed: the queue pair is in ERROR.
    Flushed,
    /// The peer may not invalidate the region that it named.
    LocalAccess,
    /// The peer denied an access.
    RemoteAccess,
    /// The peer refused the WR as invalid.
    RemoteInvalid,
    /// Any other error.
    General,
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
        let count = from.count();
        let mut sges = [Sge::EMPTY; abi::MAX_SGE];

        if count > sges.len() {
            return Err(WcStatus::LocalOperation);
        }
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

/// Data that the WR itself holds.
#[derive(Clone, Copy)]
pub(crate) struct Inline {
    data: [u8; abi::MAX_INLINE],
    len: u32,
}

impl Inline {
    /// Fails with `LocalLength` if there is more data than fits.
    fn new(from: &abi::Sges) -> Result<Self, WcStatus> {
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

/// What a send WR asks for.
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
    /// What to do, and the length of the message in bytes; or why the WR is invalid.
    pub(crate) request: Result<(SendRequest, u32), WcStatus>,
}

impl From<abi::Sqe> for SendWr {
    fn from(sqe: abi::Sqe) -> Self {
        let opcode = abi::WrOpcode::of_send(sqe.opcode);

        Self {
            id: sqe.id,
            opcode: opcode.map_or(WcOpcode::Send, WcOpcode::from),
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
    fn decode(sqe: &abi::Sqe, opcode: abi::WrOpcode) -> Result<(Self, u32), WcStatus> {
        let (stag, to) = (Stag(sqe.rkey), sqe.raddr);
        let buffers = SgList::new(&sqe.sges)?;

        if opcode == abi::WrOpcode::Read {
            return Self::decode_read(sqe, &buffers);
        }
        let (payload, len) = if sqe.flags & abi::INLINE != 0 {
            let inline = Inline::new(&sqe.sges)?;
            (Payload::Inline(inline), inline.len)
        } else {
            let len = buffers.len().ok_or(WcStatus::LocalLength)?;
            (Payload::Buffers(buffers), len)
        };
        let request = match opcode {
            abi::WrOpcode::Write => Self::Write { payload, stag, to },
            _ => Self::Send {
                payload,
                solicited: sqe.flags & abi::SOLICITED != 0,
                invalidate: (opcode == abi::WrOpcode::SendInvalidate).then_some(stag),
            },
        };

        Ok((request, len))
    }

    fn decode_read(sqe: &abi::Sqe, buffers: &SgList) -> Result<(Self, u32), WcStatus> {
        if sqe.flags & abi::INLINE != 0 {
            return Err(WcStatus::LocalOperation);
        }
        let len = buffers.len().ok_or(WcStatus::LocalLength)?;
        let mut sges = buffers.iter();
        let sink = sges.next().copied().unwrap_or(Sge::EMPTY);

        if sges.next().is_some() {
            return Err(WcStatus::LocalOperation);
        }
        let request = Self::Read {
            sink,
            stag: Stag(sqe.rkey),
            to: sqe.raddr,
        };
        Ok((request, len))
    }
}

impl From<abi::WrOpcode> for WcOpcode {
    fn from(opcode: abi::WrOpcode) -> Self {
        match opcode {
            abi::WrOpcode::Write => Self::Write,
            abi::WrOpcode::Read => Self::Read,
            abi::WrOpcode::Send => Self::Send,
            abi::WrOpcode::SendInvalidate => Self::SendInvalidate,
            abi::WrOpcode::Receive => Self::Receive,
        }
    }
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
