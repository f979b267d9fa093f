// SPDX-License-Identifier: GPL-2.0

//! The verbs of queue pairs, and the callbacks of iw_cm for them.

use super::{Lent, Qp, QpAttr, QpBase, QpInitAttr, QpState};
use crate::{
    device::{Callbacks, Device},
    mr::{Grant, Registrar},
    ops::{Driver, QpVerbs},
    pd::Pd,
    srq::Srq,
    wr::{refuse_any, PostedQueue, PostedQueues, QueueOfPair, RecvWrs, SendWrs},
    ContextUdata, Udata,
};
use core::ptr::NonNull;
use kernel::{
    error::from_result,
    ffi::{c_int, c_uint},
    prelude::*,
    sync::aref::ARef,
};
use riw_bindings as bindings;

/// Attributes by which user space passes its own memory for the queues. They are refused: see
/// [`crate::cq`].
const BUFFER_ATTRS: [u32; 3] = [
    bindings::uverbs_attrs_create_qp_cmd_attr_ids_UVERBS_ATTR_CREATE_QP_BUF_UMEM,
    bindings::uverbs_attrs_create_qp_cmd_attr_ids_UVERBS_ATTR_CREATE_QP_RQ_BUF_UMEM,
    bindings::uverbs_attrs_create_qp_cmd_attr_ids_UVERBS_ATTR_CREATE_QP_SQ_BUF_UMEM,
];

/// Sets the callbacks of this file in a `struct ib_device_ops`.
pub(crate) const fn fill<T: Driver>(mut ops: bindings::ib_device_ops) -> bindings::ib_device_ops {
    ops.size_ib_qp = Qp::<T>::SIZE;
    ops.create_qp = Some(Callbacks::<T>::create_qp);
    ops.modify_qp = Some(Callbacks::<T>::modify_qp);
    if T::Qp::HAS_QUERY {
        ops.query_qp = Some(Callbacks::<T>::query_qp);
    }
    ops.destroy_qp = Some(Callbacks::<T>::destroy_qp);
    ops.post_send = Some(Callbacks::<T>::post_send);
    ops.post_recv = Some(Callbacks::<T>::post_recv);
    ops.iw_get_qp = Some(Callbacks::<T>::iw_get_qp);
    ops.iw_add_ref = Some(Callbacks::<T>::iw_add_ref);
    ops.iw_rem_ref = Some(Callbacks::<T>::iw_rem_ref);
    ops
}

/// Whether a process has created the queue pair.
///
/// # Safety
///
/// `qp` must be a created queue pair.
unsafe fn is_of_process(qp: *mut bindings::ib_qp) -> bool {
    // SAFETY: By the caller's promise `qp` is valid. ib_core sets the field before it creates the
    // queue pair, and does not change it.
    unsafe { !(*qp).uobject.is_null() }
}

/// Returns what a kernel user lends by a new queue pair in the protection domain `pd`. Process
/// context; may sleep. Fails with `ENOMEM` without memory.
///
/// # Safety
///
/// `attr` must be the attributes of a new queue pair of driver `T`, for a kernel user.
unsafe fn new_lent<T: Driver>(
    attr: &bindings::ib_qp_init_attr,
    pd: *mut bindings::ib_pd,
) -> Result<Lent> {
    let shared = match attr.srq.is_null() {
        true => None,
        // SAFETY: By the caller's promise it is a queue of driver `T`, which its consumer does not
        // destroy during the call.
        false => unsafe { Srq::<T>::from_raw(attr.srq) }.queue(),
    };

    let send = PostedQueue::new(attr.cap.max_send_wr, false)?;

    Ok(Lent {
        grant: Grant::new(send.clone(), pd.addr())?,
        queues: PostedQueues {
            send: QueueOfPair {
                queue: send,
                cq: attr.send_cq,
            },
            recv: QueueOfPair {
                queue: match shared {
                    Some(shared) => shared.clone(),
                    None => PostedQueue::new(attr.cap.max_recv_wr, false)?,
                },
                cq: attr.recv_cq,
            },
        },
    })
}

/// Finds the queue pair that the caller of iw_cm names, if it is its own. As long as iw_cm has a
/// reference to a queue pair that it has found, this finds no other one with that number. Process
/// context, maybe with a spin lock held and interrupts off; does not sleep.
pub(crate) fn qp_of_caller<T: Driver>(dev: &Device<T>, number: u32) -> Option<ARef<Qp<T>>> {
    dev.qp(number).filter(|qp| T::Qp::is_of_caller(qp))
}

impl<T: Driver> Callbacks<T> {
    /// # Safety
    ///
    /// Only ib_core may call it, as `create_qp` of a device of driver `T`.
    unsafe extern "C" fn create_qp(
        qp: *mut bindings::ib_qp,
        attr: *mut bindings::ib_qp_init_attr,
        udata: *mut bindings::ib_udata,
    ) -> c_int {
        from_result(|| {
            // SAFETY: ib_core passes attributes that only this call accesses, and null or the
            // `udata` of a bundle with a context of this driver. Both are valid during the call.
            let (attr, udata) = unsafe { (&mut *attr, ContextUdata::<T>::from_raw(udata)) };

            if let Some(udata) = &udata {
                udata.refuse(&BUFFER_ATTRS)?;
            }
            // SAFETY: ib_core passes a new object whose device is set and registered.
            let dev = unsafe { Device::<T>::from_raw((*qp).device) };
            let number = dev.qps().take_number()?;
            // SAFETY: ib_core has set the fields of `qp` that tell who creates it, and in which
            // domain. The attributes are its own.
            let lent = unsafe {
                match is_of_process(qp) {
                    true => None,
                    false => Some(new_lent::<T>(attr, (*qp).pd)?),
                }
            };
            // INVARIANT: `raw` is valid during the call. uverbs takes the queues from the context
            // of the domain, and a kernel user from the same device, so they belong to driver `T`.
            let mut attr = QpInitAttr {
                raw: attr,
                number: number.number(),
                registrar: lent
                    .as_ref()
                    .map(|lent| Registrar::new(dev.mrs(), &lent.grant)),
            };

            // SAFETY: ib_core passes a new object of `size_ib_qp` bytes, with the attributes for
            // it, and holds its domain during the call. It frees the object after an error, or
            // after `destroy_qp`, which calls `hide` and then `destroy`. Nothing after `create`
            // fails.
            unsafe {
                let pd = Pd::<T>::from_base((*qp).pd);
                let base: *mut QpBase = qp.cast();

                Qp::<T>::create(base, T::Qp::create(pd, &mut attr, udata)?);
                (&raw mut (*base).lent).write(lent);
                (*qp).qp_num = number.number();
                T::Qp::publish(Qp::<T>::from_raw(qp));
                number.publish(qp);
            }
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// Only ib_core may call it, as `modify_qp` of a device of driver `T`.
    unsafe extern "C" fn modify_qp(
        qp: *mut bindings::ib_qp,
        attr: *mut bindings::ib_qp_attr,
        mask: c_int,
        udata: *mut bindings::ib_udata,
    ) -> c_int {
        from_result(|| {
            // SAFETY: ib_core passes null or a `udata` that is valid during the call.
            unsafe { Udata::check_empty(udata)? };
            // CAST: A bit mask.
            let mask = mask as u32;
            // SAFETY: ib_core passes a valid struct in which the attributes of the mask are
            // initialized.
            let mut modifiable = unsafe { QpAttr::copy_modifiable(attr, mask) };
            let attr = QpAttr {
                raw: &mut modifiable,
                mask,
                signal_all: false,
            };

            attr.check_modifiable()?;
            // SAFETY: ib_core passes a created queue pair.
            let of_process = unsafe { is_of_process(qp) };
            // A kernel user would have the memory of its WRs again, without completions, and a
            // driver may still have some of them.
            if !of_process && attr.state()? == Some(QpState::Reset) {
                return Err(EOPNOTSUPP);
            }
            // SAFETY: uverbs holds the queue pair during the call. iw_cm holds a reference, except
            // in iw_cm_disconnect(): there it does not check that it still has one, and races with
            // the destruction of the queue pair. That is a bug of iw_cm, which affects every
            // driver.
            let this = unsafe { Qp::<T>::from_raw(qp) };

            T::Qp::modify(this, &attr)?;
            if let (Some(lent), Some(QpState::Error)) = (this.lent(), attr.state()?) {
                // WRs that the consumer posts from now on drain the queues: it takes their
                // completions, with any status, for the end of what it has registered.
                lent.grant.revoke();
            }
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// Only ib_core may call it, as `query_qp` of a device of driver `T`.
    unsafe extern "C" fn query_qp(
        qp: *mut bindings::ib_qp,
        attr: *mut bindings::ib_qp_attr,
        mask: c_int,
        init_attr: *mut bindings::ib_qp_init_attr,
    ) -> c_int {
        // SAFETY: ib_core passes valid pointers, of which only this call accesses `attr` and
        // `init_attr`, and a created queue pair. ib_core has not cleared the two, and copies them
        // to user space afterwards, so they are initialized whole before references to them exist.
        unsafe {
            attr.write(bindings::ib_qp_attr::default());
            init_attr.write(bindings::ib_qp_init_attr::default());
            // CAST: A bit mask.
            let mut attr = QpAttr {
                raw: &mut *attr,
                mask: mask as u32,
                signal_all: false,
            };

            T::Qp::query(Qp::<T>::from_raw(qp), &mut attr);
            (*init_attr).qp_type = (*qp).qp_type;
            (*init_attr).send_cq = (*qp).send_cq;
            (*init_attr).recv_cq = (*qp).recv_cq;
            (*init_attr).srq = (*qp).srq;
            (*init_attr).cap = attr.raw.cap;
            (*init_attr).sq_sig_type = match attr.signal_all {
                true => bindings::ib_sig_type_IB_SIGNAL_ALL_WR,
                false => bindings::ib_sig_type_IB_SIGNAL_REQ_WR,
            };
        }
        0
    }

    /// # Safety
    ///
    /// Only ib_core may call it, as `destroy_qp` of a device of driver `T`.
    unsafe extern "C" fn destroy_qp(
        qp: *mut bindings::ib_qp,
        _udata: *mut bindings::ib_udata,
    ) -> c_int {
        // SAFETY: ib_core calls this once for a queue pair that was created, and calls no other
        // verb for it. All other users hold an `ARef`, which `destroy` waits for, except iw_cm
        // in the race that `modify_qp` describes. ib_core's part stays valid until this
        // function returns, and so does the device.
        unsafe {
            let qps = Device::<T>::from_raw((*qp).device).qps();

            let this = Qp::<T>::from_raw(qp);

            qps.hide((*qp).qp_num);
            if let Some(lent) = this.lent() {
                lent.queues.close();
            }
            T::Qp::destroy(this);
            Qp::<T>::destroy(qp.cast());
            if let Some(lent) = (&raw mut (*qp.cast::<QpBase>()).lent).replace(None) {
                lent.grant.revoke();
                lent.queues.end();
            }
            qps.release((*qp).qp_num);
        }
        0
    }

    /// An empty list of a process, or WRs of a kernel user: WRs of a process could name any memory
    /// of the kernel, and are refused.
    ///
    /// # Safety
    ///
    /// Only ib_core may call it, as `post_send` of a device of driver `T`.
    unsafe extern "C" fn post_send(
        qp: *mut bindings::ib_qp,
        wr: *const bindings::ib_send_wr,
        bad_wr: *mut *const bindings::ib_send_wr,
    ) -> c_int {
        // SAFETY: ib_core passes a created queue pair, and does not destroy it while a verb for it
        // runs.
        let this = unsafe { Qp::<T>::from_raw(qp) };

        from_result(|| {
            let Some(lent) = this.lent() else {
                // SAFETY: ib_core passes a valid pointer for the WR that failed.
                unsafe { refuse_any(wr, bad_wr)? };
                return T::Qp::user_post_send(this).map(|()| 0);
            };
            let post = |wrs: &mut SendWrs<'_, T>| T::Qp::post_send(this, wrs);

            // SAFETY: The consumer passes a list of valid WRs of this queue and a valid pointer for
            // the one that fails, and keeps the memory that the WRs name until they are complete.
            // It is in the kernel: only then the queue pair has such queues.
            unsafe { SendWrs::post(&lent.queues.send.queue, wr, bad_wr, post) }
        })
    }

    /// An empty list of a process, or WRs of a kernel user, as for `post_send`.
    ///
    /// # Safety
    ///
    /// Only ib_core may call it, as `post_recv` of a device of driver `T`.
    unsafe extern "C" fn post_recv(
        qp: *mut bindings::ib_qp,
        wr: *const bindings::ib_recv_wr,
        bad_wr: *mut *const bindings::ib_recv_wr,
    ) -> c_int {
        // SAFETY: ib_core passes a created queue pair, and does not destroy it while a verb for it
        // runs.
        let this = unsafe { Qp::<T>::from_raw(qp) };

        from_result(|| {
            let Some(lent) = this.lent() else {
                // SAFETY: ib_core passes a valid pointer for the WR that failed.
                unsafe { refuse_any(wr, bad_wr)? };
                return T::Qp::user_post_recv(this).map(|()| 0);
            };

            // SAFETY: The consumer passes a list of valid WRs of this queue and a valid pointer for
            // the one that fails, and keeps the memory that the WRs name until they are complete.
            // It is in the kernel: only then the queue pair has such queues.
            unsafe {
                RecvWrs::post(&lent.queues.recv.queue, wr, bad_wr, |wrs| {
                    T::Qp::post_recv(this, wrs)
                })
            }
        })
    }

    /// Finds a queue pair and takes iw_cm's reference. iw_cm takes it by `iw_add_ref` only after
    /// this has returned: a process that destroys the queue pair in between would leave iw_cm with
    /// a dangling pointer. iw_cm calls `iw_add_ref` once after each successful `iw_get_qp`, so that
    /// one does nothing.
    ///
    /// # Safety
    ///
    /// Only iw_cm may call it, as `iw_get_qp` of a device of driver `T`.
    unsafe extern "C" fn iw_get_qp(
        dev: *mut bindings::ib_device,
        number: c_int,
    ) -> *mut bindings::ib_qp {
        // SAFETY: iw_cm passes the device of a live id. Ids are destroyed before their device is
        // unregistered, so its data is initialized.
        let dev = unsafe { Device::<T>::from_raw(dev) };

        // CAST: Queue pair numbers have 24 bits.
        match qp_of_caller(dev, number as c_uint) {
            Some(qp) => ARef::into_raw(qp).as_ptr().cast(),
            None => core::ptr::null_mut(),
        }
    }

    /// Does nothing: `iw_get_qp` has taken the reference.
    ///
    /// # Safety
    ///
    /// Only iw_cm may call it, as `iw_add_ref` of a device of driver `T`.
    unsafe extern "C" fn iw_add_ref(_qp: *mut bindings::ib_qp) {}

    /// # Safety
    ///
    /// Only iw_cm may call it, as `iw_rem_ref` of a device of driver `T`.
    unsafe extern "C" fn iw_rem_ref(qp: *mut bindings::ib_qp) {
        // SAFETY: iw_cm drops a reference that `iw_get_qp` took from an `ARef`, so `qp` is not null
        // and owns one count.
        drop(unsafe { ARef::<Qp<T>>::from_raw(NonNull::new_unchecked(qp.cast())) });
    }
}
