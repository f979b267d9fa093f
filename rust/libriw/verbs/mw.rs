// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

//! Memory windows.

use super::bind::entry;
use super::context;
use super::errno::{check, pointer, status, Result, EOPNOTSUPP};
use super::object::{self, Unfinished};
use super::qp;
use super::send::flags;
use crate::ffi::commands::{
    ib_uverbs_alloc_mw_resp, ibv_alloc_mw, ibv_cmd_alloc_mw, ibv_cmd_dealloc_mw, Core,
};
use crate::ffi::verbs::*;
use core::ffi::c_int;
use riw_abi::udata::FEATURE_MEMORY_WINDOWS;
use riw_abi::wr::Sqe;

pub(crate) unsafe extern "C" fn alloc_mw(pd: *mut ibv_pd, kind: u32) -> *mut ibv_mw {
    // SAFETY: libibverbs passes a PD of this library.
    pointer(unsafe { alloc(pd, kind) })
}

/// # Safety
///
/// `pd` is a PD of this library.
unsafe fn alloc(pd: *mut ibv_pd, kind: u32) -> Result<*mut ibv_mw> {
    let mut mw = Unfinished::<ibv_mw, ()>::new()?;
    let mut request = ibv_alloc_mw::ZERO;
    let mut response = ib_uverbs_alloc_mw_resp::ZERO;
    // SAFETY: A PD has its context.
    let context = unsafe { (*pd).context };

    // SAFETY: It is a context of this library.
    if unsafe { context::offer(context) }.features & FEATURE_MEMORY_WINDOWS == 0 {
        return Err(EOPNOTSUPP);
    }
    // SAFETY: All pointers are valid, and each length is the length of its structure.
    check(unsafe {
        ibv_cmd_alloc_mw(
            pd,
            kind,
            mw.base(),
            &mut request,
            size_of_val(&request),
            &mut response,
            size_of_val(&response),
        )
    })?;
    Ok(mw.finish(()))
}

pub(crate) unsafe extern "C" fn dealloc_mw(mw: *mut ibv_mw) -> c_int {
    // SAFETY: The program passes a window of this library.
    status(check(unsafe { ibv_cmd_dealloc_mw(mw) }).map(|()| {
        // SAFETY: It comes from `alloc()`, and ends for the program.
        unsafe { object::free::<ibv_mw, ()>(mw) }
    }))
}

/// Binds a window of type 1, and gives it the next key.
pub(crate) unsafe extern "C" fn bind_mw(
    qp: *mut ibv_qp,
    mw: *mut ibv_mw,
    bind: *mut ibv_mw_bind,
) -> c_int {
    // SAFETY: The program passes such a structure.
    let bind = unsafe { &*bind };
    // SAFETY: The program passes a window of this library.
    let rkey = next_key(unsafe { (*mw).rkey });
    let head = Sqe {
        wr_id: bind.wr_id,
        flags: flags(bind.send_flags),
        // SAFETY: The program passes a region of this library in the structure, or null.
        ..unsafe { entry(rkey, &bind.bind_info) }
    };

    // SAFETY: The program passes a queue pair of this library.
    let posted = unsafe { qp::post_entry(qp, head) };
    if posted.is_ok() {
        // SAFETY: The window is valid. Programs do not bind it by several threads at a time.
        unsafe { (*mw).rkey = rkey };
    }
    status(posted)
}

/// Returns the key after `rkey`: the lowest 8 bits count.
fn next_key(rkey: u32) -> u32 {
    let [low, rest @ ..] = rkey.to_le_bytes();
    let [a, b, c] = rest;

    u32::from_le_bytes([low.wrapping_add(1), a, b, c])
}
