// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

//! Send WRs: turns the WRs of a program into entries of a ring.

use super::bind::type2_entry;
use super::errno::{Result, EINVAL, EOPNOTSUPP};
use super::mapping::Mapping;
use super::receive::{entries, sges};
use crate::ffi::verbs::*;
use crate::ring::{Payload, SendQueue};
use core::ffi::c_uint;
use core::ptr;
use riw_abi::wr::{opcode, Sge, Sqe};
use riw_abi::MAX_INLINE;

/// Adds a WR to the queue.
///
/// # Safety
///
/// The WR is valid: it has as many SGEs as it says, and the memory of inline data can be read.
pub(super) unsafe fn post_one(queue: &mut SendQueue<Mapping>, wr: &ibv_send_wr) -> Result {
    // These have neither SGEs nor inline data, whatever the WR says about them.
    match wr.opcode {
        IBV_WR_LOCAL_INV => {
            let head = Sqe {
                rkey: wr.imm_data,
                ..head(wr, opcode::LOCAL_INVALIDATE)
            };

            return Ok(queue.post_head(head)?);
        }
        IBV_WR_BIND_MW => {
            let bind = &wr.bind_mw;
            let head = Sqe {
                wr_id: wr.wr_id,
                flags: flags(wr.send_flags),
                // SAFETY: The program passes a window and a region of this library.
                ..unsafe { type2_entry(bind.mw, bind.rkey, &bind.bind_info) }?
            };

            return Ok(queue.post_head(head)?);
        }
        _ => {}
    }
    let opcode = u8::try_from(wr.opcode).map_err(|_| EOPNOTSUPP)?;
    // SAFETY: The program passes that many SGEs, and leaves them alone meanwhile.
    let list = unsafe { sges(wr.sg_list, wr.num_sge) }?;
    let head = head(wr, opcode);

    if wr.send_flags & IBV_SEND_INLINE == 0 {
        return Ok(queue.post(head, Payload::Sges(entries(list)))?);
    }
    let mut room = [0; MAX_INLINE];
    let mut data = Gathered::new(&mut room, queue.max_inline());
    for sge in list {
        let address = usize::try_from(sge.addr).map_err(|_| EINVAL)?;
        let len = usize::try_from(sge.length).map_err(|_| EINVAL)?;

        // SAFETY: By the caller's promise.
        unsafe { data.add(ptr::with_exposed_provenance(address), len) }?;
    }
    Ok(queue.post(head, inline(data.bytes()))?)
}

/// Returns the head of an entry. Opcodes and flags have the same [`numbers`](super::numbers).
fn head(wr: &ibv_send_wr, opcode: u8) -> Sqe {
    let mut head = Sqe {
        wr_id: wr.wr_id,
        opcode,
        flags: flags(wr.send_flags),
        invalidate_or_imm: wr.imm_data,
        ..Sqe::default()
    };

    match wr.opcode {
        IBV_WR_RDMA_WRITE | IBV_WR_RDMA_WRITE_WITH_IMM | IBV_WR_RDMA_READ => {
            // SAFETY: These fields of the union are numbers, so any content is valid.
            let remote = unsafe { wr.wr.rdma };

            head.remote_addr = remote.remote_addr;
            head.rkey = remote.rkey;
        }
        IBV_WR_ATOMIC_CMP_AND_SWP | IBV_WR_ATOMIC_FETCH_AND_ADD => {
            // SAFETY: These fields of the union are numbers, too.
            let remote = unsafe { wr.wr.atomic };

            head.remote_addr = remote.remote_addr;
            head.rkey = remote.rkey;
            if wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP {
                head.compare = remote.compare_add;
                head.add_or_swap = remote.swap;
            } else {
                head.add_or_swap = remote.compare_add;
            }
        }
        _ => {}
    }
    head
}

/// Returns the flags that entries have, too: the flags in the lowest bits.
pub(super) fn flags(flags: c_uint) -> u16 {
    let [low, ..] = flags.to_le_bytes();

    low.into()
}

pub(super) fn inline(bytes: &[u8]) -> Payload<'_, core::iter::Empty<Sge>> {
    Payload::Inline(bytes)
}

/// Inline data, gathered from the program's memory.
pub(super) struct Gathered<'a> {
    room: &'a mut [u8],
    len: usize,
}

impl<'a> Gathered<'a> {
    pub(super) fn new(room: &'a mut [u8; MAX_INLINE], most: usize) -> Self {
        let room = room.get_mut(..most).unwrap_or_default();

        Self { room, len: 0 }
    }

    /// Adds memory. Errors: `EINVAL` if there is more data than fits in a WR.
    ///
    /// # Safety
    ///
    /// That many bytes can be read at `from`.
    pub(super) unsafe fn add(&mut self, from: *const u8, len: usize) -> Result {
        let end = self.len.checked_add(len).ok_or(EINVAL)?;
        let to = self.room.get_mut(self.len..end).ok_or(EINVAL)?;

        // The program may have a null pointer with the length 0.
        if len != 0 {
            // SAFETY: The source can be read by the caller's promise, the target is as long, and is
            // memory of this thread only.
            unsafe { ptr::copy_nonoverlapping(from, to.as_mut_ptr(), len) };
        }
        self.len = end;
        Ok(())
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.room.get(..self.len).unwrap_or_default()
    }
}
