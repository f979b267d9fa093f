// SPDX-License-Identifier: GPL-2.0

//! Completion queues.
//!
//! C sources: `core/uverbs_std_types_cq.c`, `core/uverbs_cmd.c`, `core/verbs.c`

use crate::{
    device::{Callbacks, Device},
    event::{self, AsyncEvent},
    object::Object,
    ops::{CqVerbs, Driver},
    wc::WcRoom,
    ContextUdata,
};
use kernel::{
    error::from_result,
    ffi::{c_int, c_uint},
    prelude::*,
    sync::atomic::{ordering, Atomic},
    types::Opaque,
};
use kernel_ext::runner::Runner;
use riw_bindings as bindings;

#[cfg(CONFIG_KUNIT = "y")]
#[path = "kunit/cq.rs"]
mod kunit;

/// ib_core's part of a completion queue (`struct ib_cq`, `include/rdma/ib_verbs.h`), and the calls
/// of its handler.
#[repr(C)]
pub struct CqBase {
    ib: Opaque<bindings::ib_cq>,
    calls: Runner,
}

/// A completion queue (`struct ib_cq`, `include/rdma/ib_verbs.h`).
pub type Cq<T> = Object<CqBase, T, <T as Driver>::Cq>;

/// Calls the handler of a kernel user, which expects that it never runs twice at a time
/// (`Documentation/infiniband/core_locking.rst`). If another caller is in it, that one calls it
/// once more instead. Any context.
fn call_in_turn(calls: &Runner, handler: impl Fn()) {
    if calls.want() {
        loop {
            handler();
            if calls.done() {
                return;
            }
        }
    }
}

/// The attributes of a new completion queue (`struct ib_cq_init_attr`, `include/rdma/ib_verbs.h`).
/// `cqe` counts entries.
pub type CqInitAttr = bindings::ib_cq_init_attr;

/// In [`CqInitAttr::flags`]: completions have timestamps
/// (`IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION`, `include/uapi/rdma/ib_user_verbs.h`).
pub const TIMESTAMPS: u32 =
    bindings::ib_uverbs_ex_create_cq_flags_IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION;

impl<T: Driver> Cq<T> {
    /// Returns the device of the queue. Any context.
    pub fn device(&self) -> &Device<T> {
        // SAFETY: `self` is alive, so its `struct ib_cq` is valid, and its device is a device of
        // this driver. ib_core frees a device after its objects are destroyed, which waits for
        // `self`.
        unsafe { Device::from_raw((*self.raw()).device) }
    }

    /// Borrows a queue from ib_core's pointer to it. Any context.
    ///
    /// # Safety
    ///
    /// As for [`Object::from_base`].
    pub(crate) unsafe fn from_raw<'a>(cq: *mut bindings::ib_cq) -> &'a Self {
        // SAFETY: The caller promises it. ib_core's struct is at the start.
        unsafe { Self::from_base(cq.cast()) }
    }

    /// Returns ib_core's struct. Any context.
    pub fn raw(&self) -> *mut bindings::ib_cq {
        // It is at the start.
        self.base().cast()
    }

    /// Calls the completion handler of the consumer (`ib_cq::comp_handler`). If a kernel user's
    /// handler is running, its caller calls it once more instead. Any context; the caller holds no
    /// lock that a verb could take, since the handler may call verbs.
    pub fn notify(&self) {
        let cq = self.raw();
        // SAFETY: `self` is alive, so its `struct ib_cq` is valid. Handler and context are set
        // before the queue is armed for the first time, and do not change afterwards. A handler of
        // a kernel user runs once at a time: see below. The handler of uverbs takes locks.
        let call = || unsafe {
            if let Some(handler) = (*cq).comp_handler {
                handler(cq, (*cq).cq_context);
            }
        };

        // SAFETY: `self` is alive, and so is its part of ib_core. ib_core sets `uobject` before it
        // creates the queue, and only for a process.
        if unsafe { !(*cq).uobject.is_null() } {
            return call();
        }
        // SAFETY: The same. `new_cq` has initialized the field, and only this function uses it.
        call_in_turn(unsafe { &(*self.base()).calls }, call);
    }

    /// Reports an overflow to the event handler of the consumer (`ib_cq::event_handler`). Any
    /// context; the caller holds no lock that a verb could take.
    pub fn error(&self) {
        let cq = self.raw();

        // SAFETY: `self` is alive, and so is its device, which ib_core unregisters after its
        // objects are destroyed. Handler, context and element are of this queue.
        unsafe {
            event::raise(
                (*cq).event_handler,
                (*cq).cq_context,
                (*cq).device,
                AsyncEvent::CqError,
                bindings::ib_event__bindgen_ty_1 { cq },
            );
        }
    }
}

/// Attributes by which user space passes its own memory for a queue. They are refused: drivers of
/// this crate allocate the queues and offer them to mmap().
const BUFFER_ATTRS: [u32; 5] = [
    bindings::uverbs_attrs_create_cq_cmd_attr_ids_UVERBS_ATTR_CREATE_CQ_BUFFER_VA,
    bindings::uverbs_attrs_create_cq_cmd_attr_ids_UVERBS_ATTR_CREATE_CQ_BUFFER_LENGTH,
    bindings::uverbs_attrs_create_cq_cmd_attr_ids_UVERBS_ATTR_CREATE_CQ_BUFFER_FD,
    bindings::uverbs_attrs_create_cq_cmd_attr_ids_UVERBS_ATTR_CREATE_CQ_BUFFER_OFFSET,
    bindings::uverbs_attrs_create_cq_cmd_attr_ids_UVERBS_ATTR_CREATE_CQ_BUF_UMEM,
];

/// Sets the callbacks of this file in a `struct ib_device_ops`.
pub(crate) const fn fill<T: Driver>(mut ops: bindings::ib_device_ops) -> bindings::ib_device_ops {
    ops.size_ib_cq = Cq::<T>::SIZE;
    ops.create_cq = Some(Callbacks::<T>::create_cq);
    ops.create_user_cq = Some(Callbacks::<T>::create_user_cq);
    ops.destroy_cq = Some(Callbacks::<T>::destroy_cq);
    if T::Cq::HAS_RESIZE {
        ops.resize_user_cq = Some(Callbacks::<T>::resize_user_cq);
    }
    ops.req_notify_cq = Some(Callbacks::<T>::req_notify_cq);
    ops.poll_cq = Some(Callbacks::<T>::poll_cq);
    ops
}

impl<T: Driver> Callbacks<T> {
    /// # Safety
    ///
    /// `cq` must be new, of `size_ib_cq` bytes, with its device set and registered. `attr` must be
    /// valid.
    unsafe fn new_cq(
        cq: *mut bindings::ib_cq,
        attr: *const bindings::ib_cq_init_attr,
        udata: Option<ContextUdata<'_, T>>,
    ) -> c_int {
        from_result(|| {
            // SAFETY: By the caller's promise `attr` is valid to read.
            let mut attr = unsafe { *attr };

            if let Some(udata) = &udata {
                udata.refuse(&BUFFER_ATTRS)?;
            }

            // SAFETY: By the caller's promise `cq` is new, of the right size, and its device is
            // registered. ib_core frees it after an error, or after `destroy_cq`, which calls
            // `destroy`.
            unsafe {
                let dev = Device::from_raw((*cq).device);
                (&raw mut (*cq.cast::<CqBase>()).calls).write(Runner::new());
                Cq::<T>::create(cq.cast(), T::Cq::create(dev, &mut attr, udata)?);
                (*cq).cqe = attr.cqe.try_into().unwrap_or(c_int::MAX);
            }
            Ok(0)
        })
    }

    /// The variant for kernel users.
    ///
    /// # Safety
    ///
    /// Only ib_core may call it, as `create_cq` of a device of driver `T`.
    unsafe extern "C" fn create_cq(
        cq: *mut bindings::ib_cq,
        attr: *const bindings::ib_cq_init_attr,
        _bundle: *mut bindings::uverbs_attr_bundle,
    ) -> c_int {
        // SAFETY: ib_core passes a new queue of `size_ib_cq` bytes on a registered device, and
        // valid attributes.
        unsafe { Self::new_cq(cq, attr, None) }
    }

    /// # Safety
    ///
    /// Only ib_core may call it, as `create_user_cq` of a device of driver `T`.
    unsafe extern "C" fn create_user_cq(
        cq: *mut bindings::ib_cq,
        attr: *const bindings::ib_cq_init_attr,
        bundle: *mut bindings::uverbs_attr_bundle,
    ) -> c_int {
        // SAFETY: uverbs passes a new queue of `size_ib_cq` bytes on a registered device, valid
        // attributes, and a bundle that outlives the call. `driver_udata` is the first member of
        // the bundle, and its context is of this driver.
        unsafe { Self::new_cq(cq, attr, ContextUdata::from_raw(bundle.cast())) }
    }

    /// # Safety
    ///
    /// Only ib_core may call it, as `resize_user_cq` of a device of driver `T`.
    unsafe extern "C" fn resize_user_cq(
        cq: *mut bindings::ib_cq,
        len: c_uint,
        udata: *mut bindings::ib_udata,
    ) -> c_int {
        from_result(|| {
            // SAFETY: uverbs passes the `driver_udata` of a bundle that outlives the call, whose
            // context is of this driver.
            let udata = unsafe { ContextUdata::from_raw(udata) }.ok_or(EINVAL)?;
            // SAFETY: ib_core passes a created queue, and destroys no queue while a verb for it
            // runs.
            let len = T::Cq::resize(unsafe { Cq::<T>::from_raw(cq) }, len, &udata)?;

            // uverbs lets threads resize a queue at the same time. It only reports the number.
            // SAFETY: `cq` is valid, and the field is aligned. Rust accesses it by atomic stores
            // only.
            unsafe { Atomic::from_ptr(&raw mut (*cq).cqe) }
                .store(len.try_into().unwrap_or(c_int::MAX), ordering::Relaxed);
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// Only ib_core may call it, as `destroy_cq` of a device of driver `T`.
    unsafe extern "C" fn destroy_cq(
        cq: *mut bindings::ib_cq,
        _udata: *mut bindings::ib_udata,
    ) -> c_int {
        // SAFETY: ib_core calls this once for a queue that was created, after the queue pairs
        // that use it are destroyed. Their remaining work holds
        // [`ARef`](kernel::sync::aref::ARef)s, which `destroy` waits for.
        unsafe { Cq::<T>::destroy(cq.cast()) };
        0
    }

    /// # Safety
    ///
    /// Only ib_core may call it, as `req_notify_cq` of a device of driver `T`.
    unsafe extern "C" fn req_notify_cq(
        cq: *mut bindings::ib_cq,
        flags: bindings::ib_cq_notify_flags,
    ) -> c_int {
        let solicited = flags & bindings::ib_cq_notify_flags_IB_CQ_SOLICITED_MASK
            == bindings::ib_cq_notify_flags_IB_CQ_SOLICITED;
        // SAFETY: ib_core passes a created queue, and destroys no queue while a verb for it runs.
        let missed = T::Cq::req_notify(unsafe { Cq::<T>::from_raw(cq) }, solicited);

        (missed && flags & bindings::ib_cq_notify_flags_IB_CQ_REPORT_MISSED_EVENTS != 0).into()
    }

    /// # Safety
    ///
    /// Only ib_core may call it, as `poll_cq` of a device of driver `T`.
    unsafe extern "C" fn poll_cq(
        cq: *mut bindings::ib_cq,
        entries: c_int,
        wc: *mut bindings::ib_wc,
    ) -> c_int {
        from_result(|| {
            let entries = usize::try_from(entries)?;
            // SAFETY: The consumer polls `cq`, and passes an array of `entries` completions, which
            // only this call accesses.
            let mut room = unsafe { WcRoom::new(cq, wc, entries) };

            // SAFETY: ib_core passes a created queue, and destroys no queue while a verb for it
            // runs.
            T::Cq::poll(unsafe { Cq::<T>::from_raw(cq) }, &mut room)?;
            // CAST: At most `entries`.
            Ok(entries.saturating_sub(room.left()) as c_int)
        })
    }
}
