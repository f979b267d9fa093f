// SPDX-License-Identifier: GPL-2.0

//! Protection domains.

use crate::{
    device::{Callbacks, Device},
    object::Object,
    Driver, Exchange,
};
use kernel::{error::from_result, ffi::c_int};
use riw_bindings as bindings;

/// A protection domain (`struct ib_pd`).
pub type Pd<T> = Object<bindings::ib_pd, T, <T as Driver>::Pd>;

impl<T: Driver> Pd<T> {
    /// The device of the domain.
    pub fn device(&self) -> &Device<T> {
        // SAFETY: ib_core sets the device before it calls the driver, and the device outlives its
        // objects.
        unsafe { Device::from_raw((*self.base()).device) }
    }
}

/// Fills in the callbacks of this file.
pub(crate) const fn fill<T: Driver>(mut ops: bindings::ib_device_ops) -> bindings::ib_device_ops {
    ops.size_ib_pd = Pd::<T>::SIZE;
    ops.alloc_pd = Some(Callbacks::<T>::alloc_pd);
    ops.dealloc_pd = Some(Callbacks::<T>::dealloc_pd);
    ops
}

impl<T: Driver> Callbacks<T> {
    unsafe extern "C" fn alloc_pd(
        pd: *mut bindings::ib_pd,
        udata: *mut bindings::ib_udata,
    ) -> c_int {
        from_result(|| {
            // SAFETY: ib_core's pointer, valid for the call.
            unsafe { Exchange::check_empty(udata)? };
            // SAFETY: `pd` is new, of the size asked for, and its device is registered.
            unsafe { Pd::<T>::create(pd, T::alloc_pd(Device::from_raw((*pd).device))?) };
            Ok(0)
        })
    }

    unsafe extern "C" fn dealloc_pd(
        pd: *mut bindings::ib_pd,
        udata: *mut bindings::ib_udata,
    ) -> c_int {
        from_result(|| {
            // SAFETY: ib_core's pointer, valid for the call.
            unsafe { Exchange::check_empty(udata)? };
            // SAFETY: `alloc_pd` succeeded for it, and nobody uses it any more.
            unsafe { Pd::<T>::destroy(pd) };
            Ok(0)
        })
    }
}
