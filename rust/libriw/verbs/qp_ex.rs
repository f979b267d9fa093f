// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

//! The extended interface of queue pairs: `ibv_wr_start()`, the functions that build WRs, and
//! `ibv_wr_complete()`.

use super::bind::type2_entry;
use super::errno::{status, Errno, Result, EOPNOTSUPP};
use super::mapping::Mapping;
use super::qp::{state, Sends};
use super::receive::entries;
use super::send::{flags, inline, Gathered};
use crate::ffi::verbs::*;
use crate::lock::Guard;
use crate::ring::{Payload, SendQueue};
use core::ffi::c_int;
use core::slice;
use riw_abi::wr::{Sge, Sqe};
use riw_abi::MAX_INLINE;

/// Sets the functions that `ops` selects. Errors: `EOPNOTSUPP` for operations that the device
/// lacks.
pub(super) fn extend(qp: &mut ibv_qp_ex, queue: &SendQueue<Mapping>, ops: u64) -> Result {
    let mut left = ops;
    let mut has = |flag: u64, opcode: u32| {
        let wanted = left & flag != 0;
        let supported = u8::try_from(opcode).is_ok_and(|opcode| queue.supports(opcode));

        if supported {
            left &= !flag;
        }
        wanted && supported
    };

    qp.wr_send = has(IBV_QP_EX_WITH_SEND, IBV_WR_SEND).then_some(wr_send);
    qp.wr_send_inv = has(IBV_QP_EX_WITH_SEND_WITH_INV, IBV_WR_SEND_WITH_INV).then_some(wr_send_inv);
    qp.wr_rdma_write = has(IBV_QP_EX_WITH_RDMA_WRITE, IBV_WR_RDMA_WRITE).then_some(wr_rdma_write);
    qp.wr_rdma_write_imm = has(
        IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM,
        IBV_WR_RDMA_WRITE_WITH_IMM,
    )
    .then_some(wr_rdma_write_imm);
    qp.wr_rdma_read = has(IBV_QP_EX_WITH_RDMA_READ, IBV_WR_RDMA_READ).then_some(wr_rdma_read);
    qp.wr_atomic_cmp_swp = has(IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_CMP_AND_SWP)
        .then_some(wr_atomic_cmp_swp);
    qp.wr_atomic_fetch_add = has(
        IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
        IBV_WR_ATOMIC_FETCH_AND_ADD,
    )
    .then_some(wr_atomic_fetch_add);
    qp.wr_local_inv = has(IBV_QP_EX_WITH_LOCAL_INV, IBV_WR_LOCAL_INV).then_some(wr_local_inv);
    qp.wr_bind_mw = has(IBV_QP_EX_WITH_BIND_MW, IBV_WR_BIND_MW).then_some(wr_bind_mw);
    qp.wr_set_sge = Some(wr_set_sge);
    qp.wr_set_sge_list = Some(wr_set_sge_list);
    qp.wr_set_inline_data = Some(wr_set_inline_data);
    qp.wr_set_inline_data_list = Some(wr_set_inline_data_list);
    qp.wr_start = Some(wr_start);
    qp.wr_complete = Some(wr_complete);
    qp.wr_abort = Some(wr_abort);
    if left == 0 {
        Ok(())
    } else {
        Err(EOPNOTSUPP)
    }
}

unsafe extern "C" fn wr_start(qp: *mut ibv_qp_ex) {
    // SAFETY: The program passes a queue pair of this library.
    let mut sends = unsafe { state(qp.cast()) }.send.lock();

    sends.error = None;
    // `ibv_wr_complete()` or `ibv_wr_abort()` unlocks.
    sends.keep();
}

/// Returns the state that the posting thread has locked.
///
/// # Safety
///
/// `qp` is a queue pair of this library, for which this thread has called `ibv_wr_start()`.
unsafe fn started<'a>(qp: *mut ibv_qp_ex) -> Guard<'a, Sends> {
    // SAFETY: By the caller's promise.
    let qp = unsafe { state(qp.cast()) };

    // SAFETY: `wr_start()` has kept the guard, and nobody else takes it back.
    unsafe { qp.send.take_back() }
}

/// Does a step between `ibv_wr_start()` and `ibv_wr_complete()`. After an error nothing more is
/// done.
///
/// # Safety
///
/// As for [`started`].
unsafe fn step(qp: *mut ibv_qp_ex, step: impl FnOnce(&mut SendQueue<Mapping>) -> Result) {
    // SAFETY: By the caller's promise.
    let mut sends = unsafe { started(qp) };

    if sends.error.is_none() {
        sends.error = step(&mut sends.queue).err();
    }
    sends.keep();
}

/// Begins a WR.
///
/// # Safety
///
/// As for [`started`].
unsafe fn begin(qp: *mut ibv_qp_ex, opcode: u32, head: Sqe) {
    // SAFETY: By the caller's promise.
    let wr_id = unsafe { (*qp).wr_id };
    // SAFETY: By the caller's promise the queue pair is valid.
    let wr_flags = unsafe { (*qp).wr_flags };

    // SAFETY: The caller makes the promise that `step` needs.
    unsafe {
        step(qp, |queue| {
            queue.end()?;
            queue.begin(Sqe {
                wr_id,
                opcode: u8::try_from(opcode).map_err(|_| EOPNOTSUPP)?,
                flags: flags(wr_flags),
                ..head
            })?;
            Ok(())
        })
    };
}

macro_rules! builders {
    ($( fn $name:ident($($argument:ident: $type:ty),*) = $opcode:ident { $($head:tt)* } )*) => {
        $(
            unsafe extern "C" fn $name(qp: *mut ibv_qp_ex $(, $argument: $type)*) {
                let head = Sqe { $($head)* ..Sqe::default() };

                // SAFETY: Programs call it after `ibv_wr_start()`.
                unsafe { begin(qp, $opcode, head) };
            }
        )*
    };
}

builders! {
    fn wr_send() = IBV_WR_SEND {}
    fn wr_send_inv(stag: u32) = IBV_WR_SEND_WITH_INV { invalidate_or_imm: stag, }
    fn wr_local_inv(stag: u32) = IBV_WR_LOCAL_INV { rkey: stag, }
    fn wr_rdma_write(rkey: u32, remote_addr: u64) = IBV_WR_RDMA_WRITE { rkey, remote_addr, }
    fn wr_rdma_write_imm(rkey: u32, remote_addr: u64, imm: u32) = IBV_WR_RDMA_WRITE_WITH_IMM {
        rkey,
        remote_addr,
        invalidate_or_imm: imm,
    }
    fn wr_rdma_read(rkey: u32, remote_addr: u64) = IBV_WR_RDMA_READ { rkey, remote_addr, }
    fn wr_atomic_cmp_swp(rkey: u32, remote_addr: u64, compare: u64, swap: u64)
        = IBV_WR_ATOMIC_CMP_AND_SWP {
            rkey,
            remote_addr,
            compare,
            add_or_swap: swap,
        }
    fn wr_atomic_fetch_add(rkey: u32, remote_addr: u64, add: u64) = IBV_WR_ATOMIC_FETCH_AND_ADD {
        rkey,
        remote_addr,
        add_or_swap: add,
    }
}

unsafe extern "C" fn wr_bind_mw(
    qp: *mut ibv_qp_ex,
    mw: *mut ibv_mw,
    rkey: u32,
    info: *const ibv_mw_bind_info,
) {
    // SAFETY: The program passes such a structure.
    let info = unsafe { &*info };

    // SAFETY: The program passes a window and a region of this library.
    match unsafe { type2_entry(mw, rkey, info) } {
        // SAFETY: Programs call it after `ibv_wr_start()`.
        Ok(head) => unsafe { begin(qp, IBV_WR_BIND_MW, head) },
        // SAFETY: As above.
        Err(error) => unsafe { step(qp, |_| Err(error)) },
    }
}

unsafe extern "C" fn wr_set_sge(qp: *mut ibv_qp_ex, lkey: u32, addr: u64, length: u32) {
    let sge = Sge { addr, length, lkey };

    // SAFETY: Programs call it after `ibv_wr_start()`.
    unsafe {
        step(qp, |queue| {
            Ok(queue.set_payload(Payload::Sges([sge].into_iter()))?)
        })
    };
}

unsafe extern "C" fn wr_set_sge_list(qp: *mut ibv_qp_ex, count: usize, list: *const ibv_sge) {
    let list = if count == 0 {
        &[]
    } else {
        // SAFETY: The program passes that many SGEs, and leaves them alone meanwhile.
        unsafe { slice::from_raw_parts(list, count) }
    };

    // SAFETY: Programs call it after `ibv_wr_start()`.
    unsafe {
        step(qp, |queue| {
            Ok(queue.set_payload(Payload::Sges(entries(list)))?)
        })
    };
}

unsafe extern "C" fn wr_set_inline_data(
    qp: *mut ibv_qp_ex,
    addr: *const core::ffi::c_void,
    length: usize,
) {
    let buffer = ibv_data_buf { addr, length };

    // SAFETY: As the program promises.
    unsafe { wr_set_inline_data_list(qp, 1, &buffer) };
}

unsafe extern "C" fn wr_set_inline_data_list(
    qp: *mut ibv_qp_ex,
    count: usize,
    list: *const ibv_data_buf,
) {
    let list = if count == 0 {
        &[]
    } else {
        // SAFETY: The program passes that many buffers, and leaves them alone meanwhile.
        unsafe { slice::from_raw_parts(list, count) }
    };
    let set = |queue: &mut SendQueue<Mapping>| {
        let mut room = [0; MAX_INLINE];
        let mut data = Gathered::new(&mut room, queue.max_inline());

        for buffer in list {
            // SAFETY: The program passes buffers that can be read.
            unsafe { data.add(buffer.addr.cast(), buffer.length) }?;
        }
        Ok(queue.set_payload(inline(data.bytes()))?)
    };

    // SAFETY: Programs call it after `ibv_wr_start()`.
    unsafe { step(qp, set) };
}

unsafe extern "C" fn wr_complete(qp: *mut ibv_qp_ex) -> c_int {
    // SAFETY: Programs call it after `ibv_wr_start()`.
    let mut sends = unsafe { started(qp) };
    let ended = match sends.error.take() {
        Some(error) => Err(error),
        None => sends.queue.end().map_err(Errno::from),
    };

    if let Err(Errno(number)) = ended {
        sends.queue.withdraw();
        return number;
    }
    // SAFETY: Programs call it with a queue pair of this library.
    status(unsafe { state(qp.cast()) }.publish(sends))
}

unsafe extern "C" fn wr_abort(qp: *mut ibv_qp_ex) {
    // SAFETY: Programs call it after `ibv_wr_start()`.
    unsafe { started(qp) }.queue.withdraw();
}
