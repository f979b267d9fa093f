// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

//! Memory regions.

use super::errno::{check, pointer, status, Result, EINVAL};
use super::object::{self, Unfinished};
use crate::ffi::commands::{
    ib_uverbs_reg_mr_resp, ib_uverbs_rereg_mr_resp, ibv_cmd_dereg_mr, ibv_cmd_reg_dmabuf_mr,
    ibv_cmd_reg_mr, ibv_cmd_rereg_mr, ibv_reg_mr, ibv_rereg_mr, Core, WithDriver,
};
use crate::ffi::driver::verbs_mr;
use crate::ffi::verbs::{ibv_mr, ibv_pd};
use core::ffi::{c_int, c_void};
use core::ptr;
use libc::size_t;
use riw_abi::udata::CreateRequest;

/// The response [`riw_abi::udata::RegMrResponse`], which follows 12 bytes of libibverbs: its first
/// number is not aligned there. Nothing of it is used.
type Response = [u32; 2];

pub(crate) unsafe extern "C" fn reg_mr(
    pd: *mut ibv_pd,
    addr: *mut c_void,
    length: size_t,
    iova: u64,
    access: c_int,
) -> *mut ibv_mr {
    // SAFETY: libibverbs passes a PD of this library.
    pointer(unsafe { register(pd, addr, length, iova, access) })
}

/// # Safety
///
/// `pd` is a PD of this library.
unsafe fn register(
    pd: *mut ibv_pd,
    addr: *mut c_void,
    length: size_t,
    iova: u64,
    access: c_int,
) -> Result<*mut ibv_mr> {
    let mut mr = Unfinished::<verbs_mr, ()>::new()?;
    let mut request = WithDriver::<ibv_reg_mr, CreateRequest>::new();
    let mut response = WithDriver::<ib_uverbs_reg_mr_resp, Response>::new();

    // SAFETY: The PD is valid, as are the other pointers; each length is the length of the
    // structure whose core is passed. The kernel checks the memory to register.
    check(unsafe {
        ibv_cmd_reg_mr(
            pd,
            addr,
            length,
            iova,
            access,
            mr.base(),
            request.as_mut_ptr(),
            request.len(),
            response.as_mut_ptr(),
            response.len(),
        )
    })?;
    // A `verbs_mr` begins with its `ibv_mr`.
    Ok(mr.finish(()).cast())
}

pub(crate) unsafe extern "C" fn reg_dmabuf_mr(
    pd: *mut ibv_pd,
    offset: u64,
    length: size_t,
    iova: u64,
    fd: c_int,
    access: c_int,
) -> *mut ibv_mr {
    // SAFETY: libibverbs passes a PD of this library.
    pointer(unsafe { register_dmabuf(pd, offset, length, iova, fd, access) })
}

/// # Safety
///
/// `pd` is a PD of this library.
unsafe fn register_dmabuf(
    pd: *mut ibv_pd,
    offset: u64,
    length: size_t,
    iova: u64,
    fd: c_int,
    access: c_int,
) -> Result<*mut ibv_mr> {
    let mut mr = Unfinished::<verbs_mr, ()>::new()?;

    // SAFETY: PD and region are valid. The kernel checks the file.
    check(unsafe {
        ibv_cmd_reg_dmabuf_mr(
            pd,
            offset,
            length,
            iova,
            fd,
            access,
            mr.base(),
            ptr::null_mut(),
        )
    })?;
    // A `verbs_mr` begins with its `ibv_mr`.
    Ok(mr.finish(()).cast())
}

/// The kernel refuses a change that it does not support, with the region unchanged.
pub(crate) unsafe extern "C" fn rereg_mr(
    mr: *mut verbs_mr,
    flags: c_int,
    pd: *mut ibv_pd,
    addr: *mut c_void,
    length: size_t,
    access: c_int,
) -> c_int {
    let Ok(flags) = u32::try_from(flags) else {
        return EINVAL.0;
    };
    let mut request = ibv_rereg_mr::ZERO;
    let mut response = ib_uverbs_rereg_mr_resp::ZERO;

    // SAFETY: The program passes a region and a PD of this library; libibverbs uses the PD only if
    // `flags` say so. Each length is the length of its structure. The kernel checks the memory to
    // register. On the wire the region has the addresses of the process.
    status(check(unsafe {
        ibv_cmd_rereg_mr(
            mr,
            flags,
            addr,
            length,
            address(addr),
            access,
            pd,
            &mut request,
            size_of_val(&request),
            &mut response,
            size_of_val(&response),
        )
    }))
}

/// Returns the number of an address. 64 bits suffice.
fn address(of: *mut c_void) -> u64 {
    u64::try_from(of.addr()).unwrap_or(0)
}

pub(crate) unsafe extern "C" fn dereg_mr(mr: *mut verbs_mr) -> c_int {
    // SAFETY: The program passes a region of this library.
    status(check(unsafe { ibv_cmd_dereg_mr(mr) }).map(|()| {
        // SAFETY: It comes from `register()`, and ends for the program.
        unsafe { object::free::<verbs_mr, ()>(mr) }
    }))
}
