// SPDX-License-Identifier: GPL-2.0

//! Protection domains.
//!
//! C sources: `core/uverbs_cmd.c`, `core/verbs.c`

use crate::{
    device::{Callbacks, Device},
    object::Object,
    ops::{Driver, PdVerbs},
    Udata,
};
use kernel::{error::from_result, ffi::c_int};
use riw_bindings as bindings;

/// A protection domain (`struct ib_pd`, `include/rdma/ib_verbs.h`).
pub type Pd<T> = Object<bindings::ib_pd, T, <T as Driver>::Pd>;

impl<T: Driver> Pd<T> {
    /// Returns the device of the domain. Any context.
    pub fn device(&self) -> &Device<T> {
        // SAFETY: ib_core sets `device` before it calls `alloc_pd`, and unregisters the device only
        // after all its objects are destroyed. So it points to a `Device<T>` that outlives `self`.
        unsafe { Device::from_raw((*self.base()).device) }
    }
}

/// Sets the callbacks of this file in a `struct ib_device_ops`.
pub(crate) const fn fill<T: Driver>(mut ops: bindings::ib_device_ops) -> bindings::ib_device_ops {
    ops.size_ib_pd = Pd::<T>::SIZE;
    ops.alloc_pd = Some(Callbacks::<T>::alloc_pd);
    ops.dealloc_pd = Some(Callbacks::<T>::dealloc_pd);
    ops
}

impl<T: Driver> Callbacks<T> {
    /// # Safety
    ///
    /// Only ib_core may call it, as `alloc_pd` of a device of driver `T`.
    unsafe extern "C" fn alloc_pd(
        pd: *mut bindings::ib_pd,
        udata: *mut bindings::ib_udata,
    ) -> c_int {
        from_result(|| {
            // SAFETY: ib_core passes null or a `udata` that is valid during the call.
            unsafe { Udata::check_empty(udata)? };
            // SAFETY: ib_core passes a new object of `size_ib_pd` bytes whose `device` is set and
            // registered. It frees the object after an error, or after `dealloc_pd`, which calls
            // `destroy`.
            unsafe { Pd::<T>::create(pd, T::Pd::alloc(Device::from_raw((*pd).device))?) };
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// Only ib_core may call it, as `dealloc_pd` of a device of driver `T`.
    unsafe extern "C" fn dealloc_pd(
        pd: *mut bindings::ib_pd,
        _udata: *mut bindings::ib_udata,
    ) -> c_int {
        // SAFETY: ib_core calls this once for a domain that `alloc_pd` created, after all
        // objects in the domain are destroyed, and calls no other verb with it.
        unsafe { Pd::<T>::destroy(pd) };
        0
    }
}
