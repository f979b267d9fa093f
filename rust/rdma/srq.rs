// SPDX-License-Identifier: GPL-2.0

//! Shared receive queues.
//!
//! C sources: `core/uverbs_cmd.c`, `core/uverbs_std_types_srq.c`, `core/verbs.c`

use crate::{
    device::Callbacks,
    event::{self, AsyncEvent},
    object::Object,
    ops::{Driver, SrqVerbs},
    pd::Pd,
    wr::{refuse_any, PostedQueue, RecvWrs},
    ContextUdata, Device, Udata,
};
use kernel::{error::from_result, ffi::c_int, prelude::*, sync::Arc, types::Opaque};
use riw_bindings as bindings;

/// ib_core's part of a shared receive queue (`struct ib_srq`, `include/rdma/ib_verbs.h`), and the
/// account of its WRs.
#[repr(C)]
pub struct SrqBase {
    ib: Opaque<bindings::ib_srq>,
    /// `None` for a process. Does not change after the creation, and until the data is dropped.
    queue: Option<Arc<PostedQueue>>,
}

/// A shared receive queue (`struct ib_srq`, `include/rdma/ib_verbs.h`).
pub type Srq<T> = Object<SrqBase, T, <T as Driver>::Srq>;

/// Size and limit of a shared receive queue, in WRs (`struct ib_srq_attr`,
/// `include/rdma/ib_verbs.h`).
pub type SrqAttr = bindings::ib_srq_attr;

impl<T: Driver> Srq<T> {
    /// Returns the device of the queue. Any context.
    pub fn device(&self) -> &Device<T> {
        // SAFETY: `self` is alive, so its `struct ib_srq` is valid, and its device is a device of
        // this driver. ib_core frees a device after its objects are destroyed, which waits for
        // `self`.
        unsafe { Device::from_raw((*self.raw()).device) }
    }

    /// Borrows a queue from ib_core's pointer to it. Any context.
    ///
    /// # Safety
    ///
    /// As for [`Object::from_base`].
    pub(crate) unsafe fn from_raw<'a>(srq: *mut bindings::ib_srq) -> &'a Self {
        // SAFETY: The caller promises it. ib_core's struct is at the start.
        unsafe { Self::from_base(srq.cast()) }
    }

    /// Returns ib_core's struct. Any context.
    fn raw(&self) -> *mut bindings::ib_srq {
        // It is at the start.
        self.base().cast()
    }

    /// Returns the account of its WRs; `None` for a process. Any context.
    pub(crate) fn queue(&self) -> Option<&Arc<PostedQueue>> {
        // SAFETY: `self` is alive, and so is this part of it. `create_srq` has initialized the
        // field, and nothing changes it before `destroy_srq`, after the last reference.
        unsafe { (*self.base()).queue.as_ref() }
    }

    /// Returns the number of the queue that `rdma resource show srq` prints. Any context.
    pub fn number(&self) -> u32 {
        // SAFETY: `self` is alive, so its `struct ib_srq` is valid. ib_core sets the number before
        // the consumer gets the queue, and does not change it.
        unsafe { (*self.raw()).res.id }
    }

    /// Reports to the consumer that the queue fell below its limit (`ib_srq::event_handler`). Any
    /// context; the caller holds no lock that a verb could take.
    pub fn limit_reached(&self) {
        let srq = self.raw();

        // SAFETY: `self` is alive, and so is its device, which ib_core unregisters after its
        // objects are destroyed. Handler, context and element are of this queue.
        unsafe {
            event::raise(
                (*srq).event_handler,
                (*srq).srq_context,
                (*srq).device,
                AsyncEvent::SrqLimit,
                bindings::ib_event__bindgen_ty_1 { srq },
            );
        }
    }
}

/// The attribute by which user space passes its own memory for a queue. It is refused: see
/// [`crate::cq`].
const BUFFER_ATTRS: [u32; 1] =
    [bindings::uverbs_attrs_create_srq_cmd_attr_ids_UVERBS_ATTR_CREATE_SRQ_BUF_UMEM];

/// Sets the callbacks of this file in a `struct ib_device_ops`.
pub(crate) const fn fill<T: Driver>(mut ops: bindings::ib_device_ops) -> bindings::ib_device_ops {
    if T::Srq::HAS_CREATE {
        ops.size_ib_srq = Srq::<T>::SIZE;
        ops.create_srq = Some(Callbacks::<T>::create_srq);
        ops.destroy_srq = Some(Callbacks::<T>::destroy_srq);
        ops.post_srq_recv = Some(Callbacks::<T>::post_srq_recv);
    }
    if T::Srq::HAS_SET_LIMIT {
        ops.modify_srq = Some(Callbacks::<T>::modify_srq);
    }
    if T::Srq::HAS_QUERY {
        ops.query_srq = Some(Callbacks::<T>::query_srq);
    }
    ops
}

impl<T: Driver> Callbacks<T> {
    /// # Safety
    ///
    /// Only ib_core may call it, as `create_srq` of a device of driver `T`.
    unsafe extern "C" fn create_srq(
        srq: *mut bindings::ib_srq,
        attr: *mut bindings::ib_srq_init_attr,
        udata: *mut bindings::ib_udata,
    ) -> c_int {
        from_result(|| {
            // SAFETY: ib_core passes attributes that only this call accesses, and null or the
            // `udata` of a bundle with a context of this driver. Both are valid during the call.
            let (attr, udata) = unsafe { (&mut *attr, ContextUdata::<T>::from_raw(udata)) };

            if let Some(udata) = &udata {
                udata.refuse(&BUFFER_ATTRS)?;
            }
            if attr.srq_type != bindings::ib_srq_type_IB_SRQT_BASIC {
                return Err(EOPNOTSUPP);
            }
            // SAFETY: ib_core passes a new object of `size_ib_srq` bytes, and holds its domain
            // during the call. It frees the object after an error, or after `destroy_srq`, which
            // calls `destroy`.
            unsafe {
                let pd = Pd::<T>::from_base((*srq).pd);
                let base: *mut SrqBase = srq.cast();
                let queue = match (*srq).uobject.is_null() {
                    true => Some(PostedQueue::new(attr.attr.max_wr, true)?),
                    false => None,
                };

                Srq::<T>::create(base, T::Srq::create(pd, &mut attr.attr, udata)?);
                (&raw mut (*base).queue).write(queue);
            }
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// Only ib_core may call it, as `modify_srq` of a device of driver `T`.
    unsafe extern "C" fn modify_srq(
        srq: *mut bindings::ib_srq,
        attr: *mut bindings::ib_srq_attr,
        mask: bindings::ib_srq_attr_mask,
        udata: *mut bindings::ib_udata,
    ) -> c_int {
        from_result(|| {
            // SAFETY: ib_core passes null or a `udata` that is valid during the call.
            unsafe { Udata::check_empty(udata)? };
            if mask & bindings::ib_srq_attr_mask_IB_SRQ_MAX_WR != 0 {
                return Err(EOPNOTSUPP);
            }
            if mask & bindings::ib_srq_attr_mask_IB_SRQ_LIMIT != 0 {
                // SAFETY: ib_core passes valid attributes and a created queue, which it does not
                // destroy while a verb for it runs.
                unsafe { T::Srq::set_limit(Srq::<T>::from_raw(srq), (*attr).srq_limit)? };
            }
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// Only ib_core may call it, as `query_srq` of a device of driver `T`.
    unsafe extern "C" fn query_srq(
        srq: *mut bindings::ib_srq,
        attr: *mut bindings::ib_srq_attr,
    ) -> c_int {
        // SAFETY: ib_core passes a created queue, which it does not destroy while a verb for it
        // runs, and attributes that only this call accesses.
        unsafe { *attr = T::Srq::query(Srq::<T>::from_raw(srq)) };
        0
    }

    /// # Safety
    ///
    /// Only ib_core may call it, as `destroy_srq` of a device of driver `T`.
    unsafe extern "C" fn destroy_srq(
        srq: *mut bindings::ib_srq,
        _udata: *mut bindings::ib_udata,
    ) -> c_int {
        // SAFETY: ib_core calls this once for a queue that was created, after the queue pairs
        // that use it are destroyed. Their remaining work holds `ARef`s, which `destroy` waits
        // for.
        unsafe {
            Srq::<T>::destroy(srq.cast());
            if let Some(queue) = (&raw mut (*srq.cast::<SrqBase>()).queue).replace(None) {
                queue.end();
            }
        }
        0
    }

    /// An empty list of a process, or WRs of a kernel user, as for `post_send`.
    ///
    /// # Safety
    ///
    /// Only ib_core may call it, as `post_srq_recv` of a device of driver `T`.
    unsafe extern "C" fn post_srq_recv(
        srq: *mut bindings::ib_srq,
        wr: *const bindings::ib_recv_wr,
        bad_wr: *mut *const bindings::ib_recv_wr,
    ) -> c_int {
        // SAFETY: ib_core passes a created queue, and does not destroy it while a verb for it runs.
        let this = unsafe { Srq::<T>::from_raw(srq) };

        from_result(|| {
            let Some(queue) = this.queue() else {
                // SAFETY: ib_core passes a valid pointer for the WR that failed.
                unsafe { refuse_any(wr, bad_wr)? };
                return T::Srq::user_post_recv(this).map(|()| 0);
            };

            // SAFETY: The consumer passes a list of valid WRs and a valid pointer for the one that
            // fails, and keeps the memory that the WRs name until they are complete. It is in the
            // kernel: only then the queue has an account.
            unsafe { RecvWrs::post(queue, wr, bad_wr, |wrs| T::Srq::post_recv(this, wrs)) }
        })
    }
}
