// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

//! Completion queues of another size.

use super::context;
use super::cq::{map, state, Cq, Polled};
use super::errno::{check, status, Result, EOPNOTSUPP};
use crate::cancel::Uncancelled;
use crate::ffi::commands::{
    ib_uverbs_resize_cq_resp, ibv_cmd_resize_cq, ibv_resize_cq, WithDriver,
};
use crate::ffi::verbs::ibv_cq;
use core::ffi::c_int;
use riw_abi::udata::{CreateCqResponse, CreateRequest, FEATURE_RESIZE_CQ};

pub(crate) unsafe extern "C" fn resize_cq(cq: *mut ibv_cq, cqe: c_int) -> c_int {
    // SAFETY: The program passes a completion queue of this library.
    let this = unsafe { state(cq) };

    if this.is_polled_here() {
        // This thread has locked the queue. The completion that it looks at is a copy, so the ring
        // may change. SAFETY: `ibv_start_poll()` has kept the guard in this thread, and it is kept
        // again below.
        let mut polled = unsafe { this.polled.take_back() };
        // SAFETY: The queue is valid, and `polled` is its state.
        let resized = unsafe { resize(cq, cqe, this, &mut polled) };

        polled.keep();
        return status(resized);
    }
    // SAFETY: The queue is valid, and this locks its state.
    status(unsafe { resize(cq, cqe, this, &mut this.polled.lock()) })
}

/// Resizes a completion queue. Threads that poll or arm it wait meanwhile.
///
/// # Safety
///
/// `cq` is a completion queue of this library, `this` its state, and `polled` is locked in it.
unsafe fn resize(cq: *mut ibv_cq, cqe: c_int, this: &Cq, polled: &mut Polled) -> Result {
    // SAFETY: A completion queue has its context, which does not change.
    let context = unsafe { (*cq).context };
    // SAFETY: It is a context of this library.
    if unsafe { context::offer(context) }.features & FEATURE_RESIZE_CQ == 0 {
        return Err(EOPNOTSUPP);
    }
    let _uncancelled = Uncancelled::new();
    // The new ring is armed if the old one was when the kernel looked.
    let mut arming = this.arming.lock();
    let mut request = WithDriver::<ibv_resize_cq, CreateRequest>::new();
    let mut response = WithDriver::<ib_uverbs_resize_cq_resp, CreateCqResponse>::new();

    // The kernel moves the completions that are not taken.
    polled.completions.release();
    // SAFETY: All pointers are valid. Each length is the length of the structure whose core is
    // passed.
    check(unsafe {
        ibv_cmd_resize_cq(
            cq,
            cqe,
            request.as_mut_ptr(),
            request.len(),
            response.as_mut_ptr(),
            response.len(),
        )
    })?;
    // SAFETY: The context is valid.
    match unsafe { map(context, &response.driver.ring) } {
        Ok((completions, new_arming)) => {
            polled.completions = completions;
            polled.lost = false;
            *arming = new_arming;
            Ok(())
        }
        Err(error) => {
            polled.lost = true;
            Err(error)
        }
    }
}
