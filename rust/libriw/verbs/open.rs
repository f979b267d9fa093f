// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

//! Opening a device: the context, and the table of the verbs.

use super::context::{self, Context};
use super::errno::{check, pointer, Result};
use super::{cq, mr, mw, pd, qp, resize, srq};
use crate::ffi::commands::{
    ib_uverbs_get_context_resp, ibv_cmd_get_context, ibv_get_context, WithDriver,
};
use crate::ffi::driver::{_verbs_init_and_alloc_context, verbs_context_ops, verbs_set_ops};
use crate::ffi::verbs::{ibv_device, verbs_context};
use core::ffi::{c_int, c_void};
use core::ptr;
use riw_abi::udata::{AllocContextRequest, AllocContextResponse};

static OPERATIONS: verbs_context_ops = verbs_context_ops {
    query_device_ex: Some(context::query_device_ex),
    query_port: Some(context::query_port),
    query_rt_values: Some(context::query_rt_values),
    free_context: Some(context::free_context),
    alloc_pd: Some(pd::alloc_pd),
    dealloc_pd: Some(pd::dealloc_pd),
    reg_mr: Some(mr::reg_mr),
    reg_dmabuf_mr: Some(mr::reg_dmabuf_mr),
    rereg_mr: Some(mr::rereg_mr),
    dereg_mr: Some(mr::dereg_mr),
    alloc_mw: Some(mw::alloc_mw),
    dealloc_mw: Some(mw::dealloc_mw),
    bind_mw: Some(mw::bind_mw),
    create_cq: Some(cq::create_cq),
    create_cq_ex: Some(cq::create_cq_ex),
    resize_cq: Some(resize::resize_cq),
    destroy_cq: Some(cq::destroy_cq),
    poll_cq: Some(cq::poll_cq),
    req_notify_cq: Some(cq::req_notify_cq),
    create_srq: Some(srq::create_srq),
    modify_srq: Some(srq::modify_srq),
    query_srq: Some(srq::query_srq),
    destroy_srq: Some(srq::destroy_srq),
    post_srq_recv: Some(srq::post_srq_recv),
    create_qp: Some(qp::create_qp),
    create_qp_ex: Some(qp::create_qp_ex),
    query_qp: Some(qp::query_qp),
    modify_qp: Some(qp::modify_qp),
    destroy_qp: Some(qp::destroy_qp),
    post_send: Some(qp::post_send),
    post_recv: Some(qp::post_recv),
    ..verbs_context_ops::NONE
};

/// Opens a device. Takes `cmd_fd`.
///
/// # Safety
///
/// Only libibverbs calls this, with a device of this library.
pub(crate) unsafe extern "C" fn alloc_context(
    device: *mut ibv_device,
    cmd_fd: c_int,
    _private_data: *mut c_void,
) -> *mut verbs_context {
    // SAFETY: The device is valid. A context begins with its `verbs_context`, at offset 0, and may
    // begin as zeros.
    let context = unsafe {
        _verbs_init_and_alloc_context(
            device,
            cmd_fd,
            size_of::<Context>(),
            ptr::null_mut(),
            riw_abi::DRIVER_ID,
        )
    };
    let context = context.cast::<Context>();

    if context.is_null() {
        return ptr::null_mut();
    }
    // SAFETY: It is valid, and nobody else has it yet.
    let opened = unsafe { open(context) };
    pointer(opened.map(|()| context.cast()).inspect_err(|_| {
        // SAFETY: It is valid, initialized, and is not used any more.
        unsafe { context::free(context) }
    }))
}

/// Gets a context from the kernel, and completes `context`.
///
/// # Safety
///
/// `context` points to a context that libibverbs has initialized.
unsafe fn open(context: *mut Context) -> Result {
    let mut request = WithDriver::<ibv_get_context, AllocContextRequest>::new();
    let mut response = WithDriver::<ib_uverbs_get_context_resp, AllocContextResponse>::new();

    // SAFETY: The context is valid. Each length is the length of the structure whose core is
    // passed.
    check(unsafe {
        ibv_cmd_get_context(
            context.cast(),
            request.as_mut_ptr(),
            request.len(),
            #[cfg(since_57)]
            ptr::null_mut(),
            response.as_mut_ptr(),
            response.len(),
        )
    })?;
    // SAFETY: The caller has the context to itself.
    unsafe { (*context).offer = response.driver };
    // SAFETY: The context is valid. The operations are copied, and have the types of the private
    // interface.
    unsafe { verbs_set_ops(context.cast(), &OPERATIONS) };
    Ok(())
}
