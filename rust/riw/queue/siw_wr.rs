// SPDX-License-Identifier: GPL-2.0

//! WRs of siw's ABI, decoded from their ring entries and checked.

use super::{
    entry::WrEntry,
    wr::{Buffers, RecvWr, SendData, SendRequest, SendWr, WcOpcode, WcStatus, WrId},
};
use crate::abi::siw::{self, Rqe, Sqe};
use iwarp::Stag;
use riw_abi::wr::Sge;

/// Returns the operation of siw's send queue entry, or `None` if the opcode is unknown or not
/// supported.
fn send_opcode(raw: u8) -> Option<WcOpcode> {
    Some(match raw {
        siw::OP_SEND => WcOpcode::Send,
        siw::OP_SEND_INVALIDATE => WcOpcode::SendInvalidate,
        siw::OP_WRITE => WcOpcode::Write,
        siw::OP_READ => WcOpcode::Read,
        _ => return None,
    })
}

impl SendWr {
    /// Decodes an entry with this control word, and its data into `data`. Any context.
    #[inline]
    pub(super) fn of_siw(entry: &WrEntry<'_>, control: u64, data: &mut SendData) -> Self {
        let mut words = [0; Sqe::WORDS];
        // An entry has room for the head.
        let _ = entry.load(0, &mut words);
        let sqe = Sqe::new(words, control);
        let opcode = send_opcode(sqe.opcode);

        Self {
            id: WrId::Process(sqe.id),
            opcode: opcode.unwrap_or(WcOpcode::Send),
            signaled: sqe.flags & siw::SIGNALLED != 0,
            // A WR with an unknown opcode fails at once.
            fence: sqe.flags & siw::READ_FENCE != 0 && opcode.is_some(),
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
    let (stag, to) = (Stag(sqe.rkey), sqe.raddr);

    if opcode == WcOpcode::Read {
        if sqe.flags & siw::INLINE != 0 {
            return Err(WcStatus::LocalOperation);
        }
        return SendRequest::read(buffers(sqe, entry, data)?, stag, to);
    }
    let len = match sqe.flags & siw::INLINE {
        0 => buffers(sqe, entry, data)?
            .len()
            .ok_or(WcStatus::LocalLength)?,
        _ => inline(sqe, entry, data)?,
    };
    let request = match opcode {
        WcOpcode::Write => SendRequest::Write {
            stag,
            to,
            immediate: None,
        },
        _ => SendRequest::Send {
            solicited: sqe.flags & siw::SOLICITED != 0,
            invalidate: (opcode == WcOpcode::SendInvalidate).then_some(stag),
        },
    };

    Ok((request, len))
}

/// Fails with `LocalOperation` if there are too many SGEs.
fn check_count(count: u8) -> Result<usize, WcStatus> {
    match count.into() {
        count @ 0..=siw::MAX_SGE => Ok(count),
        _ => Err(WcStatus::LocalOperation),
    }
}

/// Copies the SGEs. Fails with `LocalOperation` if there are too many.
fn buffers<'a>(
    sqe: &Sqe,
    entry: &WrEntry<'_>,
    data: &'a mut SendData,
) -> Result<&'a Buffers, WcStatus> {
    data.load(entry, Sqe::SGES, check_count(sqe.sge_count)?)
        .ok_or(WcStatus::LocalOperation)
}

/// Copies the inline data, and returns its length. Fails with `LocalOperation` if there are too
/// many SGEs, `LocalLength` if there is more data than fits.
fn inline(sqe: &Sqe, entry: &WrEntry<'_>, data: &mut SendData) -> Result<u32, WcStatus> {
    let len = match check_count(sqe.sge_count)? {
        0 => 0,
        _ => {
            let mut words = [0; Sge::WORDS];
            // An entry has room for the SGEs.
            let _ = entry.load(Sqe::SGES, &mut words);

            Sge::from_words(words).length
        }
    };

    // CAST: A 32-bit number fits.
    if len as usize > siw::MAX_INLINE {
        return Err(WcStatus::LocalLength);
    }
    data.load_inline(entry, Sqe::INLINE, len)
        .ok_or(WcStatus::LocalLength)?;
    Ok(len)
}

impl RecvWr {
    /// Decodes an entry with this control word, and its SGEs into `buffers`. Any context.
    #[inline]
    pub(super) fn of_siw(entry: &WrEntry<'_>, control: u64, buffers: &mut Buffers) -> Self {
        let mut words = [0; Rqe::WORDS];
        // An entry has room for the head.
        let _ = entry.load(0, &mut words);
        let rqe = Rqe::new(words, control);
        let valid = check_count(rqe.sge_count).and_then(|count| {
            buffers
                .load(entry, Rqe::SGES, count)
                .ok_or(WcStatus::LocalOperation)
        });

        Self {
            id: WrId::Process(rqe.id),
            valid,
        }
    }
}
