// SPDX-License-Identifier: GPL-2.0

//! Work requests that kernel users post, and their checks.

use crate::{
    abi::siw,
    driver::Riw,
    mr::check_terms,
    queue::wr::{
        AtomicSink, Buffers, Immediate, Inline, Posted, RecvWr, SendData, SendImmediate,
        SendRequest, SendWr, WcOpcode, WrId,
    },
};
use iwarp::{AtomicOp, Stag};
use kernel::prelude::*;
use rdma::wr::{PostedAtomic, SendOperation};

/// A send WR as the list of a kernel user keeps it.
pub(crate) struct PostedSend {
    wr: SendWr,
    data: PostedData,
}

/// The data of a WR in the list. It is shorter than [`SendData`], which has room for the largest WR
/// of a process.
enum PostedData {
    /// None, or the request has it.
    None,
    /// Buffers, with the id of the WR.
    Lent(Posted),
    Inline(Inline<{ siw::MAX_INLINE }>),
}

impl PostedSend {
    /// Takes a WR that a kernel user posts. Any context. Fails with `EOPNOTSUPP` for an
    /// operation that riw does not support, `EINVAL` for an invalid WR.
    pub(crate) fn new(wr: rdma::wr::SendWr<'_, Riw>) -> Result<Self> {
        let (signaled, fence) = (wr.is_signaled(), wr.is_fenced());
        let (solicited, inline) = (wr.is_solicited(), wr.is_inline());
        let (operation, posted) = wr.take()?;
        let (id, request, len, data) = request(operation, posted, solicited, inline)?;

        Ok(Self {
            wr: SendWr {
                id,
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
        let request = self.wr.request.as_ref().ok();
        let lent = match &self.data {
            PostedData::Lent(posted) => Some(posted.id()),
            _ => request.and_then(|(request, _)| request.lent_id()),
        };

        trace::PostedWr {
            wr_id: lent.map_or_else(|| self.wr.id.number(), |id| id.hash().into()),
            opcode: self.wr.trace_opcode(),
        }
    }

    /// Returns the WR, and moves its data to `data`. Any context.
    pub(super) fn take(self, data: &mut SendData) -> SendWr {
        match self.data {
            PostedData::None => *data = SendData::Buffers(Buffers::Kernel(None)),
            PostedData::Lent(posted) => *data = SendData::Buffers(Buffers::Kernel(Some(posted))),
            PostedData::Inline(inline) => data.store_inline(&inline),
        }
        self.wr
    }

    /// Puts a WR together again that [`Self::take`] took apart. Any context.
    pub(super) fn put_back(wr: SendWr, data: &mut SendData) -> Self {
        let data = match data {
            SendData::Buffers(buffers) => {
                let posted = buffers.take_posted();

                posted.map_or(PostedData::None, PostedData::Lent)
            }
            SendData::Inline(inline) => PostedData::Inline(Inline::copied(inline)),
        };

        Self { wr, data }
    }
}

/// A WR of a kernel user apart: its id, or [`WrId::LENT`]; its request; the length of its message;
/// and its data.
type Parts = (WrId, SendRequest, u32, PostedData);

/// Returns the parts of a Send or Write. Fails with `EINVAL` if it is too long.
fn message(request: SendRequest, posted: Posted, inline: bool) -> Result<Parts> {
    if inline {
        let inline = Inline::of_kernel(&posted)?;
        let len = inline.len();
        let id = WrId::Kernel(posted.give_up());

        return Ok((id, request, len, PostedData::Inline(inline)));
    }
    let mut sges = posted.sges().iter();
    let len = sges.try_fold(0u32, |sum, sge| sum.checked_add(sge.len));
    let len = len.ok_or(EINVAL)?;

    Ok((WrId::LENT, request, len, PostedData::Lent(posted)))
}

/// Returns the parts of a WR of a kernel user. Fails with `EINVAL` if it is invalid.
// The caller's frame has copies of the data, too.
#[inline(never)]
fn request(
    operation: SendOperation,
    posted: Posted,
    solicited: bool,
    inline: bool,
) -> Result<Parts> {
    let with_solicited = |data| SendImmediate {
        data: Immediate(data),
        solicited,
    };

    match operation {
        SendOperation::Send { invalidate } => {
            let request = SendRequest::Send {
                solicited,
                invalidate: invalidate.map(Stag),
            };

            message(request, posted, inline)
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

            message(request, posted, inline)
        }
        operation => {
            let (id, request, len) = request_without_payload(operation, posted, inline)?;

            Ok((id, request, len, PostedData::None))
        }
    }
}

/// Returns the id, the request, and the length of the message of an operation that sends no
/// payload, as [`request`] does.
fn request_without_payload(
    operation: SendOperation,
    posted: Posted,
    inline: bool,
) -> Result<(WrId, SendRequest, u32)> {
    let (request, len) = match operation {
        // They have payload.
        SendOperation::Send { .. } | SendOperation::Write { .. } => return Err(EINVAL),
        SendOperation::Read { rkey, addr } => {
            let mut sink = Buffers::Kernel(Some(posted));
            let read = SendRequest::read(&sink, Stag(rkey), addr);
            let (request, len) = read.map_err(|_| EINVAL)?;

            // The sink is in a region: no memory is lent.
            return Ok((sink.give_up().ok_or(EINVAL)?, request, len));
        }
        SendOperation::Atomic { .. } if inline => return Err(EINVAL),
        SendOperation::Atomic {
            op,
            masked,
            rkey,
            addr,
        } => {
            let sink = AtomicSink::of_kernel(posted).ok_or(EINVAL)?;
            let (request, len) = SendRequest::atomic(atomic_op(op), masked, sink, Stag(rkey), addr);

            return Ok((WrId::LENT, request, len));
        }
        SendOperation::LocalInvalidate => (SendRequest::Unregister, 0),
        SendOperation::Register(mapping) => {
            check_terms(mapping.terms())?;
            (SendRequest::Register(mapping), 0)
        }
    };

    Ok((WrId::Kernel(posted.give_up()), request, len))
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
            wr_id: posted.id().hash().into(),
            opcode: siw::trace_opcode(WcOpcode::Receive),
        }
    }

    /// Returns the WR that a kernel user has posted, and moves its buffers to `buffers`. Any
    /// context.
    pub(super) fn of_kernel(posted: Posted, buffers: &mut Buffers) -> Self {
        *buffers = Buffers::Kernel(Some(posted));
        Self {
            id: WrId::LENT,
            valid: Ok(()),
        }
    }
}
