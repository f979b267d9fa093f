// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

//! Protection domains.

use super::errno::{check, pointer, status, Result};
use super::object::{self, Unfinished};
use crate::ffi::commands::{
    ib_uverbs_alloc_pd_resp, ibv_alloc_pd, ibv_cmd_alloc_pd, ibv_cmd_dealloc_pd, Core,
};
use crate::ffi::verbs::{ibv_context, ibv_pd};
use core::ffi::c_int;

pub(crate) unsafe extern "C" fn alloc_pd(context: *mut ibv_context) -> *mut ibv_pd {
    // SAFETY: libibverbs passes a context of this library.
    pointer(unsafe { alloc(context) })
}

/// # Safety
///
/// `context` is a context of this library.
unsafe fn alloc(context: *mut ibv_context) -> Result<*mut ibv_pd> {
    let mut pd = Unfinished::<ibv_pd, ()>::new()?;
    let mut request = ibv_alloc_pd::ZERO;
    let mut response = ib_uverbs_alloc_pd_resp::ZERO;

    // SAFETY: All pointers are valid, and each length is the length of its structure.
    check(unsafe {
        ibv_cmd_alloc_pd(
            context,
            pd.base(),
            &mut request,
            size_of_val(&request),
            &mut response,
            size_of_val(&response),
        )
    })?;
    Ok(pd.finish(()))
}

pub(crate) unsafe extern "C" fn dealloc_pd(pd: *mut ibv_pd) -> c_int {
    // SAFETY: The program passes a PD of this library.
    status(check(unsafe { ibv_cmd_dealloc_pd(pd) }).map(|()| {
        // SAFETY: It comes from `alloc()`, and ends for the program.
        unsafe { object::free::<ibv_pd, ()>(pd) }
    }))
}
