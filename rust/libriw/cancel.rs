// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

//! Cancellation of threads (`pthread_cancel()`).
//!
//! A thread can be cancelled in each call of the C library that may block. What it holds then stays
//! locked, as its frames release nothing, and the other threads of the program wait for ever. The
//! rest of a post is not done either: the kernel waits for a doorbell that never rings.

use core::ffi::c_int;
use core::marker::PhantomData;
use core::ptr;

const PTHREAD_CANCEL_DISABLE: c_int = 1;

extern "C" {
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}

/// Postpones the cancellation of this thread until it is dropped. Neither `Send` nor `Sync`: it is
/// of the thread.
pub(crate) struct Uncancelled {
    before: c_int,
    _thread: PhantomData<*const ()>,
}

impl Uncancelled {
    pub(crate) fn new() -> Self {
        let mut before = 0;

        // It fails only for a state that does not exist.
        // SAFETY: The pointer is valid.
        unsafe { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, ptr::addr_of_mut!(before)) };
        Self {
            before,
            _thread: PhantomData,
        }
    }
}

impl Drop for Uncancelled {
    fn drop(&mut self) {
        // SAFETY: The function takes a null pointer.
        unsafe { pthread_setcancelstate(self.before, ptr::null_mut()) };
    }
}
