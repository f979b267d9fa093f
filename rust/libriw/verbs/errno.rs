// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

//! Errors of verbs: functions return a positive errno, or a null pointer and set `errno`.

use core::ffi::c_int;
use core::ptr;

/// A positive errno.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Errno(pub(crate) c_int);

pub(crate) const EINVAL: Errno = Errno(libc::EINVAL);
pub(crate) const ENOMEM: Errno = Errno(libc::ENOMEM);
pub(crate) const ENOENT: Errno = Errno(libc::ENOENT);
pub(crate) const EOPNOTSUPP: Errno = Errno(libc::EOPNOTSUPP);

pub(crate) type Result<T = (), E = Errno> = core::result::Result<T, E>;

/// Returns the error of the last call to the C library.
pub(crate) fn last() -> Errno {
    Errno(
        std::io::Error::last_os_error()
            .raw_os_error()
            .unwrap_or(libc::EIO),
    )
}

/// Converts the return value of a function of libibverbs: 0, an errno, or a negative errno (some
/// functions return one on some of their paths).
pub(crate) fn check(status: c_int) -> Result {
    match status {
        0 => Ok(()),
        status => Err(Errno(status.checked_abs().unwrap_or(libc::EIO))),
    }
}

/// Returns the return value of a verb that reports a status.
pub(crate) fn status(result: Result) -> c_int {
    match result {
        Ok(()) => 0,
        Err(Errno(number)) => number,
    }
}

/// Returns the return value of a verb that creates an object. Sets `errno` if it has failed.
pub(crate) fn pointer<T>(result: Result<*mut T>) -> *mut T {
    match result {
        Ok(object) => object,
        Err(error) => {
            set(error);
            ptr::null_mut()
        }
    }
}

/// Sets `errno`.
pub(crate) fn set(Errno(number): Errno) {
    // SAFETY: The function has no requirements.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: It points to this thread's `errno`, which nothing else accesses now.
    unsafe { errno.write(number) };
}
