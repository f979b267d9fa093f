// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

//! Shared receive queues.

use super::context;
use super::doorbell::Bell;
use super::errno::{check, pointer, status, Result, EINVAL, EOPNOTSUPP};
use super::mapping::Mapping;
use super::object::{self, Unfinished};
use super::receive::{post_list, Receives};
use crate::ffi::commands::{
    ib_uverbs_create_srq_resp, ibv_cmd_create_srq, ibv_cmd_destroy_srq, ibv_cmd_modify_srq,
    ibv_cmd_query_srq, ibv_create_srq, ibv_modify_srq, ibv_query_srq, Core, WithDriver,
};
use crate::ffi::verbs::*;
use crate::lock::Lock;
use crate::ring::ReceiveQueue;
use core::ffi::c_int;
use riw_abi::doorbell::Doorbell;
use riw_abi::udata::{CreateRequest, CreateSrqResponse};

pub(crate) unsafe extern "C" fn create_srq(
    pd: *mut ibv_pd,
    attr: *mut ibv_srq_init_attr,
) -> *mut ibv_srq {
    // SAFETY: libibverbs passes a PD of this library, and the program's attributes.
    pointer(unsafe { create(pd, attr) })
}

/// # Safety
///
/// `pd` is a PD of this library, `attr` points to valid attributes.
unsafe fn create(pd: *mut ibv_pd, attr: *mut ibv_srq_init_attr) -> Result<*mut ibv_srq> {
    let mut srq = Unfinished::<ibv_srq, Receives>::new()?;
    let mut request = WithDriver::<ibv_create_srq, CreateRequest>::new();
    let mut response = WithDriver::<ib_uverbs_create_srq_resp, CreateSrqResponse>::new();

    // SAFETY: All pointers are valid. Each length is the length of the structure whose core is
    // passed.
    check(unsafe {
        ibv_cmd_create_srq(
            pd,
            srq.base(),
            attr,
            request.as_mut_ptr(),
            request.len(),
            response.as_mut_ptr(),
            response.len(),
        )
    })?;

    // SAFETY: A PD has its context.
    let context = unsafe { (*pd).context };
    // SAFETY: The context is valid.
    let fd = unsafe { (*context).cmd_fd };
    let map = response.driver.ring;
    let queue = Mapping::new(fd, &map)
        .and_then(|memory| ReceiveQueue::new(memory, &map).ok_or(EINVAL))
        .inspect_err(|error| {
            // SAFETY: The context is valid.
            unsafe { context::log(context, c"cannot map a shared receive queue", *error) };
            // SAFETY: The kernel's queue exists, and has no event yet. If this fails it ends with
            // the context.
            unsafe { ibv_cmd_destroy_srq(srq.base()) };
        })?;
    // SAFETY: The call above has set it.
    let handle = unsafe { (*srq.base()).handle };

    Ok(srq.finish(Receives {
        queue: Lock::new(queue),
        bell: Bell::new(fd, handle, Doorbell::srq_recv),
    }))
}

/// The kernel does not resize a queue: `IBV_SRQ_MAX_WR` is refused here, because the kernel cannot
/// pass another ring to this library.
pub(crate) unsafe extern "C" fn modify_srq(
    srq: *mut ibv_srq,
    attr: *mut ibv_srq_attr,
    attr_mask: c_int,
) -> c_int {
    let mut request = ibv_modify_srq::ZERO;

    if u32::try_from(attr_mask).is_ok_and(|mask| mask & IBV_SRQ_MAX_WR != 0) {
        return EOPNOTSUPP.0;
    }
    // SAFETY: The program passes an SRQ of this library and valid attributes; the length is the
    // length of the request.
    unsafe { ibv_cmd_modify_srq(srq, attr, attr_mask, &mut request, size_of_val(&request)) }
}

pub(crate) unsafe extern "C" fn query_srq(srq: *mut ibv_srq, attr: *mut ibv_srq_attr) -> c_int {
    let mut request = ibv_query_srq::ZERO;

    // SAFETY: The program passes an SRQ of this library and room for attributes; the length is the
    // length of the request.
    unsafe { ibv_cmd_query_srq(srq, attr, &mut request, size_of_val(&request)) }
}

pub(crate) unsafe extern "C" fn destroy_srq(srq: *mut ibv_srq) -> c_int {
    // SAFETY: The program passes an SRQ of this library.
    status(check(unsafe { ibv_cmd_destroy_srq(srq) }).map(|()| {
        // SAFETY: It comes from `create()`, and ends for the program.
        unsafe { object::free::<ibv_srq, Receives>(srq) }
    }))
}

pub(crate) unsafe extern "C" fn post_srq_recv(
    srq: *mut ibv_srq,
    wr: *mut ibv_recv_wr,
    bad_wr: *mut *mut ibv_recv_wr,
) -> c_int {
    // SAFETY: The program passes an SRQ of this library.
    let receives = unsafe { object::state::<ibv_srq, Receives>(srq) };

    // SAFETY: The program passes a valid list, and room for the WR that fails.
    unsafe { post_list(receives, wr, bad_wr) }
}
