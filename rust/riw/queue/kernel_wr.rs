// SPDX-License-Identifier: GPL-2.0

//! Work requests that kernel users post, and their checks.

use crate::{
    abi::siw,
    driver::Riw,
    queue::wr::{
        AtomicSink, Buffers, Immediate, Inline, RecvWr, SendData, SendImmediate, SendRequest,
        SendWr, WcOpcode, WrId,
    },
};
use iwarp::{AtomicOp, Stag};
use kernel::prelude::*;
use rdma::{
    wr::{Lent, Posted, PostedAtomic, SendOperation},
    Device,
};

/// A send WR as the list of a kernel user keeps it.
pub(crate) struct PostedSend {
    wr: SendWr,
    data: PostedData,
}

/// The data of a WR in the list. It is shorter than [`SendData`], which has room for the largest WR
/// of a process.
enum PostedData {
    /// Buffers, or none.
    Lent(Lent),
    Inline(Inline<{ siw::MAX_INLINE }>),
}

impl PostedSend {
    /// Takes a WR that a kernel user of `dev` posts. Any context. Fails with `EOPNOTSUPP` for an
    /// operation that riw does not support, `EINVAL` for an invalid WR.
    pub(crate) fn new(dev: &Device<Riw>, wr: rdma::wr::SendWr<'_, Riw>) -> Result<Self> {
        let operation = wr.operation().ok_or(EOPNOTSUPP)?;
        let (signaled, fence) = (wr.is_signaled(), wr.is_fenced());
        let (solicited, inline) = (wr.is_solicited(), wr.is_inline());
        let Posted { id, lent } = wr.take()?;
        let (request, len, data) = request(dev, operation, lent, solicited, inline)?;

        Ok(Self {
            wr: SendWr {
                id: WrId::Kernel(id),
                opcode: request.opcode(),
                signaled,
                fence,
                request: Ok((request, len)),
            },
            data,
        })
    }

    /// Returns the WR for trace events. Any context.
    pub(crate) fn traced(&self) -> trace::PostedWr {
        trace::PostedWr {
            wr_id: self.wr.id.number(),
            opcode: self.wr.trace_opcode(),
        }
    }

    /// Returns the WR, and moves its data to `data`. Any context.
    pub(super) fn take(self, data: &mut SendData) -> SendWr {
        match self.data {
            PostedData::Lent(lent) => *data = SendData::Buffers(Buffers::Kernel(lent)),
            PostedData::Inline(inline) => data.store_inline(&inline),
        }
        self.wr
    }

    /// Puts a WR together again that [`Self::take`] took apart. Any context.
    pub(super) fn put_back(wr: SendWr, data: &mut SendData) -> Self {
        let data = match data {
            SendData::Buffers(buffers) => PostedData::Lent(buffers.take_lent()),
            SendData::Inline(inline) => PostedData::Inline(Inline::copied(inline)),
        };

        Self { wr, data }
    }
}

impl PostedData {
    /// Returns the request of a Send or Write, its length, and its data. Fails with `EINVAL` if it
    /// is too long.
    fn of_message(
        request: SendRequest,
        lent: Lent,
        inline: bool,
    ) -> Result<(SendRequest, u32, Self)> {
        if inline {
            let inline = Inline::of_kernel(&lent)?;
            let len = inline.len();

            return Ok((request, len, Self::Inline(inline)));
        }
        let mut sges = lent.sges().iter();
        let len = sges.try_fold(0u32, |sum, sge| sum.checked_add(sge.len));

        Ok((request, len.ok_or(EINVAL)?, Self::Lent(lent)))
    }
}

/// Returns the request of a kernel user of `dev`, the length of its message, and its data. Fails
/// with `EINVAL` if it is invalid.
fn request(
    dev: &Device<Riw>,
    operation: SendOperation<'_, Riw>,
    lent: Lent,
    solicited: bool,
    inline: bool,
) -> Result<(SendRequest, u32, PostedData)> {
    let with_solicited = |data| SendImmediate {
        data: Immediate(data),
        solicited,
    };

    Ok(match operation {
        SendOperation::Send { invalidate } => {
            let request = SendRequest::Send {
                solicited,
                invalidate: invalidate.map(Stag),
            };

            PostedData::of_message(request, lent, inline)?
        }
        SendOperation::Write {
            rkey,
            addr,
            immediate,
        } => {
            let request = SendRequest::Write {
                stag: Stag(rkey),
                to: addr,
                immediate: immediate.map(with_solicited),
            };

            PostedData::of_message(request, lent, inline)?
        }
        operation => {
            let (request, len) = request_without_payload(dev, operation, lent, inline)?;

            (request, len, PostedData::Lent(Lent::default()))
        }
    })
}

/// Returns the request of an operation that sends no payload, and the length of its message, as
/// [`request`] does.
fn request_without_payload(
    dev: &Device<Riw>,
    operation: SendOperation<'_, Riw>,
    lent: Lent,
    inline: bool,
) -> Result<(SendRequest, u32)> {
    Ok(match operation {
        // They have payload.
        SendOperation::Send { .. } | SendOperation::Write { .. } => return Err(EINVAL),
        SendOperation::Read {
            rkey,
            addr,
            invalidate,
        } => {
            let sink = Buffers::Kernel(lent);
            let read = SendRequest::read(&sink, Stag(rkey), addr, invalidate);

            read.map_err(|_| EINVAL)?
        }
        SendOperation::Atomic { .. } if inline => return Err(EINVAL),
        SendOperation::Atomic {
            op,
            masked,
            rkey,
            addr,
        } => {
            let sink = AtomicSink::of_kernel(lent).ok_or(EINVAL)?;

            SendRequest::atomic(atomic_op(op), masked, sink, Stag(rkey), addr)
        }
        SendOperation::LocalInvalidate { stag } => (SendRequest::LocalInvalidate(Stag(stag)), 0),
        SendOperation::Register {
            mr,
            iova,
            stag,
            access,
        } => {
            let mapping = mr.take_mapping(dev, Stag(stag), iova, access)?;

            (SendRequest::Register(mapping), 0)
        }
    })
}

/// Returns the operation on the wire.
fn atomic_op(op: PostedAtomic) -> AtomicOp {
    match op {
        PostedAtomic::FetchAdd { add, boundaries } => AtomicOp::FetchAdd {
            add,
            mask: boundaries,
        },
        PostedAtomic::CmpSwap {
            compare,
            compare_mask,
            swap,
            swap_mask,
        } => AtomicOp::CmpSwap {
            swap,
            swap_mask,
            compare,
            compare_mask,
        },
    }
}

impl RecvWr {
    /// Returns a WR that a kernel user posts, for trace events. Any context.
    pub(crate) fn traced(posted: &Posted) -> trace::PostedWr {
        trace::PostedWr {
            wr_id: posted.id.hash().into(),
            opcode: siw::trace_opcode(WcOpcode::Receive),
        }
    }

    /// Returns the WR that a kernel user has posted, and moves its buffers to `buffers`. Any
    /// context.
    pub(super) fn of_kernel(posted: Posted, buffers: &mut Buffers) -> Self {
        *buffers = Buffers::Kernel(posted.lent);
        Self {
            id: WrId::Kernel(posted.id),
            valid: Ok(()),
        }
    }
}
