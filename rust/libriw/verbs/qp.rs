// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

//! Queue pairs.

use super::context;
use super::doorbell::Bell;
use super::errno::{check, pointer, status, Errno, Result, EINVAL, EOPNOTSUPP};
use super::mapping::Mapping;
use super::object::{self, Unfinished};
use super::qp_ex::extend;
use super::receive::{post_list, Receives};
use super::send::post_one;
use crate::cancel::Uncancelled;
use crate::ffi::commands::{
    ib_uverbs_create_qp_resp, ibv_cmd_create_qp_ex, ibv_cmd_destroy_qp, ibv_cmd_modify_qp,
    ibv_cmd_query_qp, ibv_create_qp, ibv_modify_qp, ibv_query_qp, Core, WithDriver,
};
use crate::ffi::driver::{verbs_qp, VERBS_QP_EX};
use crate::ffi::verbs::*;
use crate::lock::{Guard, Lock, SharedLock};
use crate::ring::{ReceiveQueue, SendQueue};
use core::ffi::{c_int, c_uint};
use core::ptr;
use riw_abi::doorbell::Doorbell;
use riw_abi::udata::{CreateQpResponse, CreateRequest, RingMap};
use riw_abi::wr::Sqe;

/// A queue pair.
pub(super) struct Qp {
    pub(super) send: Lock<Sends>,
    pub(super) bell: Bell,
    /// Shared while a doorbell rings without `send`. A change of the state waits for it: the kernel
    /// would take a late doorbell for one of a later connection, or of none.
    ringing: SharedLock,
    /// `None` with an SRQ.
    receives: Option<Receives>,
}

/// The state of a thread that posts.
pub(super) struct Sends {
    pub(super) queue: SendQueue<Mapping>,
    /// The first error since `ibv_wr_start()`.
    pub(super) error: Option<Errno>,
    /// Whether a doorbell has found the queue pair connected since the program last changed its
    /// state.
    was_connected: bool,
}

impl Qp {
    fn new(queue: SendQueue<Mapping>, bell: Bell, receives: Option<Receives>) -> Self {
        let sends = Sends {
            queue,
            error: None,
            was_connected: false,
        };

        Self {
            send: Lock::new(sends),
            ringing: SharedLock::new(),
            bell,
            receives,
        }
    }

    /// Gives all added WRs to the kernel, and wakes it if necessary. Errors: the doorbell's; the
    /// WRs do not count as posted then.
    pub(super) fn publish(&self, mut sends: Guard<'_, Sends>) -> Result {
        let must_ring = sends.queue.publish();

        if sends.was_connected {
            if must_ring {
                let _ringing = self.ringing.share();

                // The kernel transmits within the call: let others post meanwhile.
                drop(sends);
                self.bell.ring_if(true)?;
            }
            return Ok(());
        }
        // Without a connection the kernel drops all WRs, and reports that to this thread: they must
        // be its own.
        let rung = self.bell.ring_if(must_ring);
        sends.was_connected = must_ring && rung.is_ok();
        rung
    }
}

/// # Safety
///
/// `qp` is a queue pair of this library, which is not destroyed during `'a`.
pub(super) unsafe fn state<'a>(qp: *mut ibv_qp) -> &'a Qp {
    // SAFETY: A queue pair of this library was made of these types.
    unsafe { object::state::<verbs_qp, Qp>(qp.cast()) }
}

pub(crate) unsafe extern "C" fn create_qp(
    pd: *mut ibv_pd,
    attr: *mut ibv_qp_init_attr,
) -> *mut ibv_qp {
    // SAFETY: libibverbs passes the program's attributes.
    let attr = unsafe { &mut *attr };

    // SAFETY: It passes a PD of this library.
    pointer(unsafe { create_plain(pd, attr) })
}

/// # Safety
///
/// `pd` is a PD of this library. The queues in `attr` are valid.
unsafe fn create_plain(pd: *mut ibv_pd, attr: &mut ibv_qp_init_attr) -> Result<*mut ibv_qp> {
    let mut extended = ibv_qp_init_attr_ex {
        qp_context: attr.qp_context,
        send_cq: attr.send_cq,
        recv_cq: attr.recv_cq,
        srq: attr.srq,
        cap: attr.cap,
        qp_type: attr.qp_type,
        sq_sig_all: attr.sq_sig_all,
        comp_mask: IBV_QP_INIT_ATTR_PD,
        pd,
        xrcd: ptr::null_mut(),
        create_flags: 0,
        max_tso_header: 0,
        rwq_ind_tbl: ptr::null_mut(),
        rx_hash_conf: [0; 3],
        source_qpn: 0,
        send_ops_flags: 0,
    };

    // SAFETY: By the caller's promise.
    let context = unsafe { (*pd).context };
    // SAFETY: By the caller's promise the attributes are valid, and a PD has a context of the same
    // library.
    let qp = unsafe { create(context, &mut extended) }?;
    attr.cap = extended.cap;
    Ok(qp)
}

pub(crate) unsafe extern "C" fn create_qp_ex(
    context: *mut ibv_context,
    attr: *mut ibv_qp_init_attr_ex,
) -> *mut ibv_qp {
    // SAFETY: libibverbs passes a context of this library, and the program's attributes.
    pointer(unsafe { create(context, attr) })
}

/// # Safety
///
/// `context` is a context of this library. `attr` has the fields to `comp_mask`, and those that it
/// names. The queues are valid, and so is the PD. There is no reference to the whole: a program
/// that was compiled with older headers passes a shorter structure.
unsafe fn create(context: *mut ibv_context, attr: *mut ibv_qp_init_attr_ex) -> Result<*mut ibv_qp> {
    // SAFETY: By the caller's promise.
    let given = unsafe { (*attr).comp_mask };
    // SAFETY: By the caller's promise.
    let qp_type = unsafe { (*attr).qp_type };
    let passed = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    let flags = given & IBV_QP_INIT_ATTR_CREATE_FLAGS != 0 && {
        // SAFETY: By the caller's promise, as `comp_mask` names it.
        unsafe { (*attr).create_flags != 0 }
    };
    let send_ops = (given & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS != 0).then(|| {
        // SAFETY: By the caller's promise, as `comp_mask` names it.
        unsafe { (*attr).send_ops_flags }
    });

    if given & !(passed | IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0 || flags || qp_type != IBV_QPT_RC {
        return Err(EOPNOTSUPP);
    }
    if given & IBV_QP_INIT_ATTR_PD == 0 {
        return Err(EINVAL);
    }

    let mut qp = Unfinished::<verbs_qp, Qp>::new()?;
    let mut request = WithDriver::<ibv_create_qp, CreateRequest>::new();
    let mut response = WithDriver::<ib_uverbs_create_qp_resp, CreateQpResponse>::new();

    // libibverbs refuses the creation flags here, though there are none.
    // SAFETY: By the caller's promise.
    unsafe { (*attr).comp_mask = given & passed };
    // SAFETY: All pointers are valid. Each length is the length of the structure whose core is
    // passed.
    let created = unsafe {
        ibv_cmd_create_qp_ex(
            context,
            qp.base(),
            attr,
            request.as_mut_ptr(),
            request.len(),
            response.as_mut_ptr(),
            response.len(),
        )
    };
    // SAFETY: By the caller's promise.
    unsafe { (*attr).comp_mask = given };
    check(created)?;

    // SAFETY: By the caller's promise.
    unsafe { complete(context, qp.base(), attr, &response.driver, send_ops) }
        .map(|state| qp.finish(state).cast())
}

/// Maps the rings of a new queue pair. Destroys the kernel's queue pair if that fails. `send_ops`:
/// the operations of the extended interface, if the queue pair has it.
///
/// # Safety
///
/// `context` is a context of this library, and `base` a new queue pair of the kernel, which nobody
/// uses. `attr` has the fields to `comp_mask`.
unsafe fn complete(
    context: *mut ibv_context,
    base: *mut verbs_qp,
    attr: *const ibv_qp_init_attr_ex,
    response: &CreateQpResponse,
    send_ops: Option<u64>,
) -> Result<Qp> {
    // SAFETY: By the caller's promise.
    let features = unsafe { context::offer(context) }.features;
    // SAFETY: By the caller's promise the context is valid.
    let fd = unsafe { (*context).cmd_fd };
    // SAFETY: By the caller's promise.
    let signal_all = unsafe { (*attr).sq_sig_all != 0 };
    // SAFETY: By the caller's promise.
    let shared = unsafe { !(*attr).srq.is_null() };
    // SAFETY: A new queue pair has a handle.
    let handle = unsafe { (*base).qp_ex.qp_base.handle };
    let bell = |kind| Bell::new(fd, handle, kind);
    let map = |ring: &RingMap| Mapping::new(fd, ring);

    let send = map(&response.sq).and_then(|memory| {
        SendQueue::new(memory, &response.sq, features, signal_all).ok_or(EINVAL)
    });
    let queues = send.and_then(|send| {
        if shared {
            return Ok((send, None));
        }
        let queue = map(&response.rq)
            .and_then(|memory| ReceiveQueue::new(memory, &response.rq).ok_or(EINVAL))?;
        let receives = Receives {
            queue: Lock::new(queue),
            bell: bell(Doorbell::recv),
        };
        Ok((send, Some(receives)))
    });
    let queues = queues.and_then(|queues| {
        // SAFETY: By the caller's promise nobody else has the base.
        let qp_ex = unsafe { &mut (*base).qp_ex };
        if let Some(send_ops) = send_ops {
            extend(qp_ex, &queues.0, send_ops)?;
            // SAFETY: By the caller's promise nobody else has the base, and `qp_ex` is not used any
            // more.
            unsafe { (*base).comp_mask |= VERBS_QP_EX };
        }
        Ok(queues)
    });

    match queues {
        Ok((queue, receives)) => Ok(Qp::new(queue, bell(Doorbell::send), receives)),
        Err(error) => {
            // SAFETY: The context is valid.
            unsafe { context::log(context, c"cannot set up a queue pair", error) };
            // SAFETY: The kernel's queue pair exists, and has no event yet. If this fails it ends
            // with the context.
            unsafe { ibv_cmd_destroy_qp(base.cast()) };
            Err(error)
        }
    }
}

pub(crate) unsafe extern "C" fn destroy_qp(qp: *mut ibv_qp) -> c_int {
    // SAFETY: The program passes a queue pair of this library.
    status(check(unsafe { ibv_cmd_destroy_qp(qp) }).map(|()| {
        // SAFETY: It comes from `create()`, and ends for the program.
        unsafe { object::free::<verbs_qp, Qp>(qp.cast()) }
    }))
}

pub(crate) unsafe extern "C" fn query_qp(
    qp: *mut ibv_qp,
    attr: *mut Opaque,
    attr_mask: c_int,
    init_attr: *mut ibv_qp_init_attr,
) -> c_int {
    let mut request = ibv_query_qp::ZERO;
    let len = size_of_val(&request);

    // SAFETY: The program passes a queue pair of this library, and room for the attributes.
    unsafe { ibv_cmd_query_qp(qp, attr, attr_mask, init_attr, &mut request, len) }
}

pub(crate) unsafe extern "C" fn modify_qp(
    qp: *mut ibv_qp,
    attr: *mut Opaque,
    attr_mask: c_int,
) -> c_int {
    let mut request = ibv_modify_qp::ZERO;
    let len = size_of_val(&request);
    // SAFETY: The program passes a queue pair of this library.
    let this = unsafe { state(qp) };
    // SAFETY: The program passes a queue pair of this library, and attributes.
    let mut modify = || unsafe { ibv_cmd_modify_qp(qp, attr, attr_mask, &mut request, len) };

    if c_uint::try_from(attr_mask).is_ok_and(|mask| mask & IBV_QP_STATE == 0) {
        return modify();
    }
    let _uncancelled = Uncancelled::new();
    let mut sends = this.send.lock();
    let _none_rings = this.ringing.hold_alone();

    // It may be reset.
    sends.was_connected = false;
    modify()
}

pub(crate) unsafe extern "C" fn post_recv(
    qp: *mut ibv_qp,
    wr: *mut ibv_recv_wr,
    bad_wr: *mut *mut ibv_recv_wr,
) -> c_int {
    // SAFETY: The program passes a queue pair of this library.
    let Some(receives) = (unsafe { &state(qp).receives }) else {
        // SAFETY: The program passes room for the WR that fails.
        unsafe { bad_wr.write(wr) };
        return EINVAL.0;
    };

    // SAFETY: The program passes a valid list, and room for the WR that fails.
    unsafe { post_list(receives, wr, bad_wr) }
}

/// Posts a WR without payload.
///
/// # Safety
///
/// `qp` is a queue pair of this library.
pub(super) unsafe fn post_entry(qp: *mut ibv_qp, head: Sqe) -> Result {
    // SAFETY: By the caller's promise.
    let qp = unsafe { state(qp) };
    let mut sends = qp.send.lock();

    sends.queue.post_head(head)?;
    qp.publish(sends)
}

pub(crate) unsafe extern "C" fn post_send(
    qp: *mut ibv_qp,
    wr: *mut ibv_send_wr,
    bad_wr: *mut *mut ibv_send_wr,
) -> c_int {
    // SAFETY: The program passes a queue pair of this library.
    let qp = unsafe { state(qp) };
    let mut sends = qp.send.lock();
    let mut next = wr;
    let mut result = Ok(());

    // SAFETY: The program passes a valid list.
    while let Some(one) = unsafe { next.as_ref() } {
        // SAFETY: `one` is a WR of the program's list, which is valid during the call.
        result = unsafe { post_one(&mut sends.queue, one) };
        if result.is_err() {
            break;
        }
        next = one.next;
    }
    let rung = qp.publish(sends);
    if rung.is_err() {
        (result, next) = (rung, wr);
    }
    if result.is_err() {
        // SAFETY: The program passes room for the WR that fails.
        unsafe { bad_wr.write(next) };
    }
    status(result)
}
