// SPDX-License-Identifier: GPL-2.0

//! Completion queues.

use crate::{
    device::{Callbacks, Device},
    event::{self, Event},
    object::Object,
    Driver, Exchange, Udata,
};
use kernel::{error::from_result, ffi::c_int, prelude::*};
use riw_bindings as bindings;

/// A completion queue (`struct ib_cq`).
pub type Cq<T> = Object<bindings::ib_cq, T, <T as Driver>::Cq>;

/// What is asked of a new completion queue (`struct ib_cq_init_attr`).
pub type CqInitAttr = bindings::ib_cq_init_attr;

impl<T: Driver> Cq<T> {
    /// Tells the consumer that there is a completion. Any context, under no lock that the consumer
    /// could want: it may call verbs from here.
    pub fn notify(&self) {
        let cq = self.base();

        // SAFETY: The queue is alive; ib_core sets the handler before it calls the driver.
        unsafe {
            if let Some(handler) = (*cq).comp_handler {
                handler(cq, (*cq).cq_context);
            }
        }
    }

    /// Reports that the queue has overflowed. Any context, under no lock.
    pub fn error(&self) {
        let cq = self.base();

        // SAFETY: The queue is alive, so are its device and handler.
        unsafe {
            event::raise(
                (*cq).event_handler,
                (*cq).cq_context,
                (*cq).device,
                Event::CqError,
                bindings::ib_event__bindgen_ty_1 { cq },
            );
        }
    }
}

/// Attributes by which user space brings memory for a queue; drivers allocate it and offer it for
/// mapping.
const BUFFER_ATTRS: [u32; 5] = [
    bindings::uverbs_attrs_create_cq_cmd_attr_ids_UVERBS_ATTR_CREATE_CQ_BUFFER_VA,
    bindings::uverbs_attrs_create_cq_cmd_attr_ids_UVERBS_ATTR_CREATE_CQ_BUFFER_LENGTH,
    bindings::uverbs_attrs_create_cq_cmd_attr_ids_UVERBS_ATTR_CREATE_CQ_BUFFER_FD,
    bindings::uverbs_attrs_create_cq_cmd_attr_ids_UVERBS_ATTR_CREATE_CQ_BUFFER_OFFSET,
    bindings::uverbs_attrs_create_cq_cmd_attr_ids_UVERBS_ATTR_CREATE_CQ_BUF_UMEM,
];

/// Fills in the callbacks of this file.
pub(crate) const fn fill<T: Driver>(mut ops: bindings::ib_device_ops) -> bindings::ib_device_ops {
    ops.size_ib_cq = Cq::<T>::SIZE;
    ops.create_cq = Some(Callbacks::<T>::create_cq);
    ops.create_user_cq = Some(Callbacks::<T>::create_user_cq);
    ops.destroy_cq = Some(Callbacks::<T>::destroy_cq);
    ops.req_notify_cq = Some(Callbacks::<T>::req_notify_cq);
    ops.poll_cq = Some(Callbacks::<T>::poll_cq);
    ops
}

impl<T: Driver> Callbacks<T> {
    /// # Safety
    ///
    /// `cq` must be new, of the size asked for, and its device registered; `attr` must be valid.
    unsafe fn new_cq(
        cq: *mut bindings::ib_cq,
        attr: *const bindings::ib_cq_init_attr,
        udata: Option<Udata<'_, T>>,
    ) -> c_int {
        from_result(|| {
            // SAFETY: By the caller's promise.
            let mut attr = unsafe { *attr };

            if let Some(udata) = &udata {
                udata.refuse(&BUFFER_ATTRS)?;
            }

            // SAFETY: By the caller's promise.
            unsafe {
                let dev = Device::from_raw((*cq).device);
                Cq::<T>::create(cq, T::create_cq(dev, &mut attr, udata)?);
                (*cq).cqe = attr.cqe.try_into().unwrap_or(c_int::MAX);
            }
            Ok(0)
        })
    }

    /// For a kernel user.
    unsafe extern "C" fn create_cq(
        cq: *mut bindings::ib_cq,
        attr: *const bindings::ib_cq_init_attr,
        _bundle: *mut bindings::uverbs_attr_bundle,
    ) -> c_int {
        // SAFETY: ib_core calls this for a new queue of a registered device, with valid attributes.
        unsafe { Self::new_cq(cq, attr, None) }
    }

    unsafe extern "C" fn create_user_cq(
        cq: *mut bindings::ib_cq,
        attr: *const bindings::ib_cq_init_attr,
        bundle: *mut bindings::uverbs_attr_bundle,
    ) -> c_int {
        // SAFETY: uverbs calls this for a new queue of a registered device, with valid attributes
        // and a bundle that outlives the call. The bundle begins with the udata.
        unsafe { Self::new_cq(cq, attr, Udata::from_raw(bundle.cast())) }
    }

    unsafe extern "C" fn destroy_cq(
        cq: *mut bindings::ib_cq,
        udata: *mut bindings::ib_udata,
    ) -> c_int {
        from_result(|| {
            // SAFETY: ib_core's pointer, valid for the call.
            unsafe { Exchange::check_empty(udata)? };
            // SAFETY: `create_cq` succeeded; the queue pairs that used it are gone but for the last
            // moments of their work, for which this waits.
            unsafe { Cq::<T>::destroy(cq) };
            Ok(0)
        })
    }

    unsafe extern "C" fn req_notify_cq(
        cq: *mut bindings::ib_cq,
        flags: bindings::ib_cq_notify_flags,
    ) -> c_int {
        let solicited = flags & bindings::ib_cq_notify_flags_IB_CQ_SOLICITED_MASK
            == bindings::ib_cq_notify_flags_IB_CQ_SOLICITED;
        // SAFETY: The queue is alive during the call.
        let missed = T::req_notify_cq(unsafe { Cq::<T>::from_base(cq) }, solicited);

        (missed && flags & bindings::ib_cq_notify_flags_IB_CQ_REPORT_MISSED_EVENTS != 0).into()
    }

    /// Only ib_core's check for the mandatory verbs sees this: completion queues of kernel users
    /// are refused, and a user process polls its memory.
    unsafe extern "C" fn poll_cq(
        _cq: *mut bindings::ib_cq,
        _entries: c_int,
        _wc: *mut bindings::ib_wc,
    ) -> c_int {
        EOPNOTSUPP.to_errno()
    }
}
