// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

//! Posting of receives, to a queue pair or an SRQ.

use super::doorbell::Bell;
use super::errno::{status, Errno, EINVAL, ENOMEM, EOPNOTSUPP};
use super::mapping::Mapping;
use crate::ffi::verbs::{ibv_recv_wr, ibv_sge};
use crate::lock::Lock;
use crate::ring::{ReceiveQueue, Refused};
use core::ffi::c_int;
use core::slice;
use riw_abi::wr::Sge;

/// A receive queue of a queue pair, or an SRQ.
pub(crate) struct Receives {
    pub(crate) queue: Lock<ReceiveQueue<Mapping>>,
    pub(crate) bell: Bell,
}

impl From<Refused> for Errno {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Full => ENOMEM,
            Refused::Invalid => EINVAL,
            Refused::Unsupported => EOPNOTSUPP,
        }
    }
}

/// Returns the SGEs of a WR. Errors: `EINVAL` for a negative number.
///
/// # Safety
///
/// `list` points to that many SGEs, which nobody modifies during `'a`.
pub(crate) unsafe fn sges<'a>(list: *const ibv_sge, count: c_int) -> Result<&'a [ibv_sge], Errno> {
    match usize::try_from(count) {
        Ok(0) => Ok(&[]),
        // SAFETY: By the caller's promise.
        Ok(count) => Ok(unsafe { slice::from_raw_parts(list, count) }),
        Err(_) => Err(EINVAL),
    }
}

/// Returns SGEs as rings have them.
pub(crate) fn entries(list: &[ibv_sge]) -> impl ExactSizeIterator<Item = Sge> + '_ {
    list.iter().map(|sge| Sge {
        addr: sge.addr,
        length: sge.length,
        lkey: sge.lkey,
    })
}

/// Posts a list of receives. Returns 0, or a positive errno; `bad_wr` is then the first WR that is
/// not posted.
///
/// # Safety
///
/// `wr` is null or points to a WR, whose `next` does so, too. `bad_wr` points to a pointer.
pub(crate) unsafe fn post_list(
    receives: &Receives,
    wr: *mut ibv_recv_wr,
    bad_wr: *mut *mut ibv_recv_wr,
) -> c_int {
    let mut queue = receives.queue.lock();
    let mut next = wr;
    let mut result = Ok(());

    // SAFETY: By the caller's promise.
    while let Some(one) = unsafe { next.as_ref() } {
        // SAFETY: The program passes that many SGEs, and leaves them alone meanwhile.
        let posted = unsafe { sges(one.sg_list, one.num_sge) }
            .and_then(|list| Ok(queue.post(one.wr_id, entries(list))?));

        if posted.is_err() {
            result = posted;
            break;
        }
        next = one.next;
    }
    let must_ring = queue.publish();

    drop(queue);
    let rung = receives.bell.ring_if(must_ring);
    if rung.is_err() {
        (result, next) = (rung, wr);
    }
    if result.is_err() {
        // SAFETY: By the caller's promise.
        unsafe { bad_wr.write(next) };
    }
    status(result)
}
