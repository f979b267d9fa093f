// SPDX-License-Identifier: GPL-2.0

//! WRs of riw's own ABI, decoded from their ring entries and checked.

use super::{
    entry::WrEntry,
    wr::{
        AtomicSink, Buffers, Immediate, RecvWr, SendData, SendImmediate, SendRequest, SendWr, WrId,
    },
};
use crate::mr::BindRequest;
use iwarp::{AtomicOp, Stag};
use rdma::wc::{WcOpcode, WcStatus};
use riw_abi::wr::{flags, opcode, Rqe, Sqe};

/// Returns the operation of a send queue entry, or `None` if the opcode is unknown or not
/// supported.
fn send_opcode(raw: u8) -> Option<WcOpcode> {
    Some(match raw {
        opcode::SEND => WcOpcode::Send,
        opcode::SEND_WITH_INVALIDATE => WcOpcode::SendInvalidate,
        opcode::WRITE | opcode::WRITE_WITH_IMM => WcOpcode::Write,
        opcode::READ => WcOpcode::Read,
        opcode::FETCH_ADD => WcOpcode::FetchAdd,
        opcode::COMPARE_SWAP => WcOpcode::CmpSwap,
        opcode::MASKED_FETCH_ADD => WcOpcode::MaskedFetchAdd,
        opcode::MASKED_COMPARE_SWAP => WcOpcode::MaskedCmpSwap,
        opcode::LOCAL_INVALIDATE => WcOpcode::LocalInvalidate,
        opcode::BIND_MW => WcOpcode::BindWindow,
        _ => return None,
    })
}

impl SendWr {
    /// Decodes an entry, and its data into `data`. Any context.
    #[inline]
    pub(super) fn of_own(entry: &WrEntry<'_>, data: &mut SendData) -> Self {
        let mut words = [0; Sqe::WORDS];
        // An entry has room for the head.
        let _ = entry.load(0, &mut words);
        let sqe = Sqe::from_words(words);
        let opcode = send_opcode(sqe.opcode);

        Self {
            id: WrId::Process(sqe.wr_id),
            opcode: opcode.unwrap_or(WcOpcode::Send),
            signaled: sqe.flags & flags::SIGNALED != 0,
            // A WR with an unknown opcode fails at once.
            fence: sqe.flags & flags::FENCE != 0 && opcode.is_some(),
            request: opcode
                .ok_or(WcStatus::LocalOperation)
                .and_then(|opcode| request(&sqe, opcode, entry, data)),
        }
    }
}

/// Returns the request and the length of its message.
fn request(
    sqe: &Sqe,
    opcode: WcOpcode,
    entry: &WrEntry<'_>,
    data: &mut SendData,
) -> Result<(SendRequest, u32), WcStatus> {
    let (stag, to) = (Stag(sqe.rkey), sqe.remote_addr);

    if let Some((op, masked)) = atomic_op(sqe) {
        let sink = AtomicSink::new(response_buffers(sqe, entry, data)?);
        let sink = sink.ok_or(WcStatus::LocalOperation)?;

        return Ok(SendRequest::atomic(op, masked, sink, stag, to));
    }
    match opcode {
        WcOpcode::Read => {
            return SendRequest::read(response_buffers(sqe, entry, data)?, stag, to);
        }
        WcOpcode::LocalInvalidate => return Ok((SendRequest::LocalInvalidate(stag), 0)),
        WcOpcode::BindWindow => return Ok((SendRequest::Bind(bind_request(sqe)), 0)),
        _ => {}
    }
    let len = payload(sqe, entry, data)?;
    let solicited = sqe.flags & flags::SOLICITED != 0;
    let request = match opcode {
        WcOpcode::Write => {
            let immediate = SendImmediate {
                // The word has the octets in their order.
                data: Immediate(sqe.invalidate_or_imm.to_ne_bytes()),
                solicited,
            };
            let has_immediate = sqe.opcode == opcode::WRITE_WITH_IMM;

            SendRequest::Write {
                stag,
                to,
                immediate: has_immediate.then_some(immediate),
            }
        }
        WcOpcode::Send | WcOpcode::SendInvalidate => SendRequest::Send {
            solicited,
            invalidate: (opcode == WcOpcode::SendInvalidate).then_some(Stag(sqe.invalidate_or_imm)),
        },
        _ => return Err(WcStatus::LocalOperation),
    };

    Ok((request, len))
}

/// Returns how an entry binds a memory window.
fn bind_request(sqe: &Sqe) -> BindRequest {
    BindRequest {
        stag: Stag(sqe.rkey),
        region: Stag(sqe.invalidate_or_imm),
        addr: sqe.remote_addr,
        len: sqe.add_or_swap,
        // Flags that do not fit are unknown.
        access: u32::try_from(sqe.compare).unwrap_or(u32::MAX),
    }
}

/// Returns the atomic operation of an entry, and whether it is masked.
fn atomic_op(sqe: &Sqe) -> Option<(AtomicOp, bool)> {
    Some(match sqe.opcode {
        opcode::FETCH_ADD => (AtomicOp::fetch_add(sqe.add_or_swap), false),
        opcode::COMPARE_SWAP => (AtomicOp::cmp_swap(sqe.compare, sqe.add_or_swap), false),
        opcode::MASKED_FETCH_ADD => {
            let op = AtomicOp::FetchAdd {
                add: sqe.add_or_swap,
                mask: sqe.add_or_swap_mask,
            };

            (op, true)
        }
        opcode::MASKED_COMPARE_SWAP => {
            let op = AtomicOp::CmpSwap {
                swap: sqe.add_or_swap,
                swap_mask: sqe.add_or_swap_mask,
                compare: sqe.compare,
                compare_mask: sqe.compare_mask,
            };

            (op, true)
        }
        _ => return None,
    })
}

/// Copies the SGEs for a response of the peer. Fails with `LocalOperation` for inline data, or too
/// many buffers.
fn response_buffers<'a>(
    sqe: &Sqe,
    entry: &WrEntry<'_>,
    data: &'a mut SendData,
) -> Result<&'a Buffers, WcStatus> {
    match sqe.flags & flags::INLINE {
        0 => send_buffers(sqe, entry, data),
        _ => Err(WcStatus::LocalOperation),
    }
}

/// Copies the payload or its SGEs. Returns its length. Fails with `LocalLength` if there is too
/// much of it.
fn payload(sqe: &Sqe, entry: &WrEntry<'_>, data: &mut SendData) -> Result<u32, WcStatus> {
    if sqe.flags & flags::INLINE == 0 {
        let buffers = send_buffers(sqe, entry, data)?;

        return buffers.len().ok_or(WcStatus::LocalLength);
    }
    // CAST: A 32-bit number fits.
    if sqe.inline_len as usize > Sqe::max_inline(entry.octets()) {
        return Err(WcStatus::LocalLength);
    }
    data.load_inline(entry, Sqe::DATA, sqe.inline_len)
        .ok_or(WcStatus::LocalLength)?;
    Ok(sqe.inline_len)
}

/// Copies the SGEs of a send WR. Fails with `LocalOperation` if there are too many.
fn send_buffers<'a>(
    sqe: &Sqe,
    entry: &WrEntry<'_>,
    data: &'a mut SendData,
) -> Result<&'a Buffers, WcStatus> {
    let count = sqe.sge_count.into();

    if count > Sqe::max_sge(entry.octets()) {
        return Err(WcStatus::LocalOperation);
    }
    data.load(entry, Sqe::DATA, count)
        .ok_or(WcStatus::LocalOperation)
}

impl RecvWr {
    /// Decodes an entry, and its SGEs into `buffers`. Any context.
    #[inline]
    pub(super) fn of_own(entry: &WrEntry<'_>, buffers: &mut Buffers) -> Self {
        let mut words = [0; Rqe::WORDS];
        // An entry has room for the head.
        let _ = entry.load(0, &mut words);
        let rqe = Rqe::from_words(words);
        // CAST: A 32-bit number fits.
        let count = rqe.sge_count as usize;
        let fits = count <= Rqe::max_sge(entry.octets());
        let loaded = fits
            .then(|| buffers.load(entry, Rqe::DATA, count))
            .flatten();

        Self {
            id: WrId::Process(rqe.wr_id),
            valid: loaded.ok_or(WcStatus::LocalOperation),
        }
    }
}
