// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

//! The entries of a send queue that bind memory windows.

use super::errno::{Result, EINVAL};
use crate::ffi::verbs::*;
use riw_abi::wr::{opcode, Sqe};

/// Returns the entry that binds a window under `rkey`.
///
/// # Safety
///
/// The region in `info` is one of this library, or null.
pub(super) unsafe fn entry(rkey: u32, info: &ibv_mw_bind_info) -> Sqe {
    // SAFETY: By the caller's promise.
    let region = unsafe { info.mr.as_ref() };

    Sqe {
        opcode: opcode::BIND_MW,
        rkey,
        invalidate_or_imm: region.map_or(0, |region| region.lkey),
        remote_addr: info.addr,
        add_or_swap: info.length,
        compare: info.mw_access_flags.into(),
        ..Sqe::default()
    }
}

/// Returns the entry of a WR that binds a window of type 2. Errors: `EINVAL` for one of type 1,
/// which only `ibv_bind_mw()` binds, or of another domain.
///
/// # Safety
///
/// Window and region are objects of this library. The region may be null.
pub(super) unsafe fn type2_entry(
    mw: *mut ibv_mw,
    rkey: u32,
    info: &ibv_mw_bind_info,
) -> Result<Sqe> {
    // SAFETY: By the caller's promise it is null or valid.
    let mw = unsafe { mw.as_ref() }.ok_or(EINVAL)?;

    // The kernel finds the window by its key.
    if mw.r#type != IBV_MW_TYPE_2 || index(mw.rkey) != index(rkey) {
        return Err(EINVAL);
    }
    // SAFETY: By the caller's promise.
    Ok(unsafe { entry(rkey, info) })
}

/// Returns the part of a key that the kernel has chosen.
fn index(rkey: u32) -> u32 {
    rkey & !0xff
}
