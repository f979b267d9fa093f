// SPDX-License-Identifier: GPL-2.0

//! Shared receive queues.

use crate::{
    device::Callbacks,
    event::{self, Event},
    object::Object,
    pd::Pd,
    Driver, Exchange, Udata,
};
use kernel::{error::from_result, ffi::c_int, prelude::*};
use riw_bindings as bindings;

/// A shared receive queue (`struct ib_srq`).
pub type Srq<T> = Object<bindings::ib_srq, T, <T as Driver>::Srq>;

/// Size and limit of a shared receive queue (`struct ib_srq_attr`).
pub type SrqAttr = bindings::ib_srq_attr;

impl<T: Driver> Srq<T> {
    /// Reports that the queue has fallen below its limit. Any context, under no lock.
    pub fn limit_reached(&self) {
        let srq = self.base();

        // SAFETY: The queue is alive, so are its device and handler.
        unsafe {
            event::raise(
                (*srq).event_handler,
                (*srq).srq_context,
                (*srq).device,
                Event::SrqLimit,
                bindings::ib_event__bindgen_ty_1 { srq },
            );
        }
    }
}

/// The attribute by which user space brings memory for a queue: see [`crate::cq`].
const BUFFER_ATTRS: [u32; 1] =
    [bindings::uverbs_attrs_create_srq_cmd_attr_ids_UVERBS_ATTR_CREATE_SRQ_BUF_UMEM];

/// Fills in the callbacks of this file.
pub(crate) const fn fill<T: Driver>(mut ops: bindings::ib_device_ops) -> bindings::ib_device_ops {
    ops.size_ib_srq = Srq::<T>::SIZE;
    ops.create_srq = Some(Callbacks::<T>::create_srq);
    ops.modify_srq = Some(Callbacks::<T>::modify_srq);
    ops.query_srq = Some(Callbacks::<T>::query_srq);
    ops.destroy_srq = Some(Callbacks::<T>::destroy_srq);
    ops
}

impl<T: Driver> Callbacks<T> {
    unsafe extern "C" fn create_srq(
        srq: *mut bindings::ib_srq,
        attr: *mut bindings::ib_srq_init_attr,
        udata: *mut bindings::ib_udata,
    ) -> c_int {
        from_result(|| {
            // SAFETY: ib_core's pointers, valid for the call.
            let (attr, udata) = unsafe { (&mut *attr, Udata::<T>::from_raw(udata)) };

            if let Some(udata) = &udata {
                udata.refuse(&BUFFER_ATTRS)?;
            }
            if attr.srq_type != bindings::ib_srq_type_IB_SRQT_BASIC {
                return Err(EOPNOTSUPP);
            }
            // SAFETY: `srq` is new, of the size asked for; its domain is alive.
            unsafe {
                let pd = Pd::<T>::from_base((*srq).pd);
                Srq::<T>::create(srq, T::create_srq(pd, &mut attr.attr, udata)?);
            }
            Ok(0)
        })
    }

    unsafe extern "C" fn modify_srq(
        srq: *mut bindings::ib_srq,
        attr: *mut bindings::ib_srq_attr,
        mask: bindings::ib_srq_attr_mask,
        udata: *mut bindings::ib_udata,
    ) -> c_int {
        from_result(|| {
            // SAFETY: ib_core's pointer, valid for the call.
            unsafe { Exchange::check_empty(udata)? };
            if mask & bindings::ib_srq_attr_mask_IB_SRQ_MAX_WR != 0 {
                return Err(EOPNOTSUPP);
            }
            if mask & bindings::ib_srq_attr_mask_IB_SRQ_LIMIT != 0 {
                // SAFETY: Both are valid for the call.
                unsafe { T::set_srq_limit(Srq::<T>::from_base(srq), (*attr).srq_limit)? };
            }
            Ok(0)
        })
    }

    unsafe extern "C" fn query_srq(
        srq: *mut bindings::ib_srq,
        attr: *mut bindings::ib_srq_attr,
    ) -> c_int {
        // SAFETY: Both are valid for the call.
        unsafe { *attr = T::query_srq(Srq::<T>::from_base(srq)) };
        0
    }

    unsafe extern "C" fn destroy_srq(
        srq: *mut bindings::ib_srq,
        udata: *mut bindings::ib_udata,
    ) -> c_int {
        from_result(|| {
            // SAFETY: ib_core's pointer, valid for the call.
            unsafe { Exchange::check_empty(udata)? };
            // SAFETY: `create_srq` succeeded; the queue pairs that used it are gone but for the
            // last moments of their work, for which this waits.
            unsafe { Srq::<T>::destroy(srq) };
            Ok(0)
        })
    }
}
