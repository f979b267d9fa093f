// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

//! Contexts: a device that a process has opened.

use super::cq;
use super::errno::{check, status, Errno};
use crate::ffi::commands::{
    ib_uverbs_ex_query_device_resp, ibv_cmd_query_device_any, ibv_cmd_query_port, ibv_query_port,
    Core,
};
use crate::ffi::driver::{__verbs_log, verbs_uninit_context, VERBS_LOG_ERR};
use crate::ffi::verbs::{
    ibv_context, ibv_device_attr, ibv_values_ex, verbs_context, Opaque, IBV_VALUES_MASK_RAW_CLOCK,
};
use core::ffi::{c_char, c_int, CStr};
use core::fmt::{self, Write};
use core::mem::offset_of;
use core::{ptr, slice};
use libc::size_t;
use riw_abi::udata::AllocContextResponse;

/// A context. libibverbs allocates it.
#[repr(C)]
pub(super) struct Context {
    verbs: verbs_context,
    pub(super) offer: AllocContextResponse,
}

/// Frees a context.
///
/// # Safety
///
/// `context` points to a context that libibverbs has initialized. It is not used any more.
pub(super) unsafe fn free(context: *mut Context) {
    // SAFETY: By the caller's promise. This closes the files and leaves the memory.
    unsafe { verbs_uninit_context(context.cast()) };
    // SAFETY: libibverbs has allocated it by calloc(), and has no reference any more.
    unsafe { libc::free(context.cast()) };
}

pub(super) unsafe extern "C" fn free_context(context: *mut ibv_context) {
    // SAFETY: libibverbs calls this with a context of this library, which ends.
    unsafe { free(container(context)) };
}

/// Returns the context of which libibverbs and programs know the last part.
fn container(context: *mut ibv_context) -> *mut Context {
    context
        .wrapping_byte_sub(offset_of!(verbs_context, context))
        .cast()
}

/// Returns the features and limits that the kernel has offered.
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
    // SAFETY: The context is valid. The arguments match the format.
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

/// Octets that are more than `struct ibv_device_attr_ex` has in any libibverbs with this interface.
/// Fields are at fixed offsets, so libibverbs takes a longer length, as of a later version.
const ATTR_EX_MAX: usize = 512;

pub(super) unsafe extern "C" fn query_device_ex(
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
    // The command for the attributes without the extension returns the attributes for kernel users.
    // A request for the extension, too, returns the attributes for processes.
    let mut extended = [0u64; ATTR_EX_MAX / size_of::<u64>()];
    // SAFETY: `input` is the caller's. The attributes have the length that is said, and the
    // response, too.
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

        // SAFETY: The caller's attributes have `attr_size` octets, `extended` has ATTR_EX_MAX. They
        // are not the same memory.
        unsafe { ptr::copy_nonoverlapping(extended.as_ptr().cast::<u8>(), attr.cast(), known) };
        // SAFETY: `known` is not more than the length of the attributes.
        let rest = unsafe { attr.cast::<u8>().add(known) };
        // SAFETY: The rest of the caller's attributes begins there. libibverbs knows nothing of it.
        unsafe { rest.write_bytes(0, attr_size.saturating_sub(known)) };
        // SAFETY: The call above has written to it, so it is valid.
        let to = unsafe { &mut (*attr).fw_ver };

        // It fails only if the text is too long. The text of three such numbers fits.
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

pub(super) unsafe extern "C" fn query_port(
    context: *mut ibv_context,
    port: u8,
    attr: *mut Opaque,
) -> c_int {
    let mut request = ibv_query_port::ZERO;

    // SAFETY: The arguments are the caller's, and the request is as long as said.
    unsafe { ibv_cmd_query_port(context, port, attr, &mut request, size_of_val(&request)) }
}

/// Reads the clock of completion timestamps: `CLOCK_MONOTONIC`.
pub(super) unsafe extern "C" fn query_rt_values(
    _context: *mut ibv_context,
    values: *mut ibv_values_ex,
) -> c_int {
    // SAFETY: libibverbs passes the program's pointer to such a structure. It may be shorter, if
    // the program was compiled with older headers, but has the fields that `comp_mask` names.
    let wanted = unsafe { (*values).comp_mask };

    // SAFETY: As above.
    unsafe { (*values).comp_mask = 0 };
    if wanted & IBV_VALUES_MASK_RAW_CLOCK != 0 {
        let now = cq::nanoseconds(libc::CLOCK_MONOTONIC);

        // As other providers do: many programs take only `tv_nsec`, as a timestamp of completions.
        let raw_clock = libc::timespec {
            tv_sec: 0,
            tv_nsec: libc::c_long::try_from(now).unwrap_or(libc::c_long::MAX),
        };
        // SAFETY: `comp_mask` has named the field.
        unsafe { (*values).raw_clock = raw_clock };
        // SAFETY: As above.
        unsafe { (*values).comp_mask = IBV_VALUES_MASK_RAW_CLOCK };
    }
    0
}
