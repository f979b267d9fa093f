// SPDX-License-Identifier: GPL-2.0

//! Contexts: a device that a process has opened.

use super::errno::{check, pointer, status, Errno, Result};
use super::{cq, mr, mw, pd, qp, resize, srq};
use crate::ffi::commands::{
    ib_uverbs_ex_query_device_resp, ib_uverbs_get_context_resp, ibv_cmd_get_context,
    ibv_cmd_query_device_any, ibv_cmd_query_port, ibv_get_context, ibv_query_port, Core,
    WithDriver,
};
use crate::ffi::driver::{
    __verbs_log, _verbs_init_and_alloc_context, verbs_context_ops, verbs_set_ops,
    verbs_uninit_context, VERBS_LOG_ERR,
};
use crate::ffi::verbs::{
    ibv_context, ibv_device, ibv_device_attr, ibv_values_ex, verbs_context, Opaque,
    IBV_VALUES_MASK_RAW_CLOCK,
};
use core::ffi::{c_char, c_int, c_void, CStr};
use core::fmt::{self, Write};
use core::mem::offset_of;
use core::{ptr, slice};
use libc::size_t;
use riw_abi::udata::{AllocContextRequest, AllocContextResponse};

/// A context. libibverbs allocates it.
#[repr(C)]
struct Context {
    verbs: verbs_context,
    offer: AllocContextResponse,
}

static OPERATIONS: verbs_context_ops = verbs_context_ops {
    query_device_ex: Some(query_device_ex),
    query_port: Some(query_port),
    query_rt_values: Some(query_rt_values),
    free_context: Some(free_context),
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
    // SAFETY: The device is valid. A context begins with its `verbs_context`, at offset 0, and may begin
    // as zeros.
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
        unsafe { free(context) }
    }))
}

/// Asks the kernel for a context, and completes this side's.
///
/// # Safety
///
/// `context` points to a context that libibverbs has initialized.
unsafe fn open(context: *mut Context) -> Result {
    let mut request = WithDriver::<ibv_get_context, AllocContextRequest>::new();
    let mut response = WithDriver::<ib_uverbs_get_context_resp, AllocContextResponse>::new();

    // SAFETY: The context is valid. Each length is that of the structure whose core is passed.
    check(unsafe {
        ibv_cmd_get_context(
            context.cast(),
            request.as_mut_ptr(),
            request.len(),
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

/// Frees a context.
///
/// # Safety
///
/// `context` points to a context that libibverbs has initialized. It is not used any more.
unsafe fn free(context: *mut Context) {
    // SAFETY: By the caller's promise. This closes the files and leaves the memory.
    unsafe { verbs_uninit_context(context.cast()) };
    // SAFETY: libibverbs has allocated it by calloc(), and has no reference any more.
    unsafe { libc::free(context.cast()) };
}

unsafe extern "C" fn free_context(context: *mut ibv_context) {
    // SAFETY: libibverbs calls this with a context of this library, which ends.
    unsafe { free(container(context)) };
}

/// Returns the context of which libibverbs and programs know the last part.
fn container(context: *mut ibv_context) -> *mut Context {
    context
        .wrapping_byte_sub(offset_of!(verbs_context, context))
        .cast()
}

/// Returns what the kernel has offered.
///
/// # Safety
///
/// `context` is a context of this library.
pub(crate) unsafe fn offer(context: *mut ibv_context) -> AllocContextResponse {
    // SAFETY: It is valid, and was written when it was opened.
    unsafe { (*container(context)).offer }
}

/// Logs an error, where `VERBS_LOG_FILE` and `VERBS_LOG_LEVEL` say.
///
/// # Safety
///
/// `context` is a context of this library.
pub(crate) unsafe fn log(context: *mut ibv_context, what: &CStr, Errno(number): Errno) {
    // SAFETY: The context is valid. The arguments are those of the format.
    unsafe {
        __verbs_log(
            container(context).cast(),
            VERBS_LOG_ERR,
            c"libriw: %s: errno %d\n".as_ptr(),
            what.as_ptr(),
            number,
        )
    };
}

/// Octets that are more than `struct ibv_device_attr_ex` has in any libibverbs with this interface. Fields
/// are at fixed offsets, so libibverbs takes a longer length, as of a later version.
const ATTR_EX_MAX: usize = 512;

unsafe extern "C" fn query_device_ex(
    context: *mut ibv_context,
    input: *const Opaque,
    attr: *mut ibv_device_attr,
    attr_size: size_t,
) -> c_int {
    let mut response = ib_uverbs_ex_query_device_resp {
        fw_ver: 0,
        words: [0; 37],
    };
    let mut size = size_of_val(&response);

    if attr_size < size_of::<ibv_device_attr>() {
        return libc::EINVAL;
    }
    // The command for the attributes without extension has those for kernel users. Asking for the
    // extension, too, gives those for processes.
    let mut extended = [0u64; ATTR_EX_MAX / size_of::<u64>()];
    // SAFETY: `input` is the caller's. The attributes have the length that is said, and the response, too.
    let queried = check(unsafe {
        ibv_cmd_query_device_any(
            context,
            input,
            extended.as_mut_ptr().cast(),
            ATTR_EX_MAX,
            &mut response,
            &mut size,
        )
    });
    status(queried.map(|()| {
        let known = attr_size.min(ATTR_EX_MAX);

        // SAFETY: The caller's attributes have `attr_size` octets, `extended` has ATTR_EX_MAX. They are
        // not the same memory.
        unsafe { ptr::copy_nonoverlapping(extended.as_ptr().cast::<u8>(), attr.cast(), known) };
        // SAFETY: `known` is not more than the length of the attributes.
        let rest = unsafe { attr.cast::<u8>().add(known) };
        // SAFETY: The rest of the caller's attributes begins there. libibverbs knows nothing of it.
        unsafe { rest.write_bytes(0, attr_size.saturating_sub(known)) };
        // SAFETY: The call above has written to it, so it is valid.
        let to = unsafe { &mut (*attr).fw_ver };

        // It fails only if the text is too long, which that of three such numbers is not.
        let _ = write!(Text(to.iter_mut()), "{}\0", Version(response.fw_ver));
    }))
}

/// The version of the module: 16 bits for each of major, minor and patch level.
struct Version(u64);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [_, _, a, b, c, d, e, last] = self.0.to_be_bytes();
        let [major, minor, patch] = [[a, b], [c, d], [e, last]].map(u16::from_be_bytes);

        write!(f, "{major}.{minor}.{patch}")
    }
}

/// Memory of C for text.
struct Text<'a>(slice::IterMut<'a, c_char>);

impl fmt::Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            *self.0.next().ok_or(fmt::Error)? = c_char::from_ne_bytes([byte]);
        }
        Ok(())
    }
}

unsafe extern "C" fn query_port(context: *mut ibv_context, port: u8, attr: *mut Opaque) -> c_int {
    let mut request = ibv_query_port::ZERO;

    // SAFETY: The arguments are the caller's, and the request is as long as said.
    unsafe { ibv_cmd_query_port(context, port, attr, &mut request, size_of_val(&request)) }
}

/// Reads the clock of completion timestamps: `CLOCK_MONOTONIC`.
unsafe extern "C" fn query_rt_values(
    _context: *mut ibv_context,
    values: *mut ibv_values_ex,
) -> c_int {
    // SAFETY: libibverbs passes the program's pointer to such a structure.
    let values = unsafe { &mut *values };
    let wanted = values.comp_mask;

    values.comp_mask = 0;
    if wanted & IBV_VALUES_MASK_RAW_CLOCK != 0 {
        let now = cq::nanoseconds(libc::CLOCK_MONOTONIC);

        // As other providers do: many programs take only `tv_nsec`, as a timestamp of completions.
        values.raw_clock = libc::timespec {
            tv_sec: 0,
            tv_nsec: libc::c_long::try_from(now).unwrap_or(libc::c_long::MAX),
        };
        values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
    }
    0
}
