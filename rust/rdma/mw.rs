// SPDX-License-Identifier: GPL-2.0

//! Memory windows.
//!
//! A peer names a window as it names a region, so a window is a region without memory in the table
//! of STags ([`MrTable`](crate::mr::MrTable)). ib_core does not know that region.
//!
//! C sources: `core/uverbs_cmd.c`, `core/uverbs_main.c`

use crate::{
    device::{Callbacks, Device},
    mr::{Extent, Kind, MrBase},
    ops::{Driver, MrVerbs},
    pd::Pd,
    Udata,
};
use kernel::{error::from_result, ffi::c_int, prelude::*};
use riw_bindings as bindings;

/// The kind of a window (`enum ib_mw_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MwKind {
    /// Type 1: any queue pair of the protection domain can bind it, and serves it.
    One,
    /// Type 2B: only the queue pair that has bound it serves it.
    TwoB,
}

/// ib_core's part of a window, and its place in the table.
#[repr(C)]
pub(crate) struct MwBase {
    ib: bindings::ib_mw,
    /// From `new_mr`.
    region: *mut MrBase,
}

/// Sets the callbacks of this file in a `struct ib_device_ops`.
pub(crate) const fn fill<T: Driver>(mut ops: bindings::ib_device_ops) -> bindings::ib_device_ops {
    if T::Mr::HAS_ALLOC_WINDOW {
        ops.size_ib_mw = size_of::<MwBase>();
        ops.alloc_mw = Some(Callbacks::<T>::alloc_mw);
        ops.dealloc_mw = Some(Callbacks::<T>::dealloc_mw);
    }
    ops
}

impl<T: Driver> Callbacks<T> {
    /// # Safety
    ///
    /// Only ib_core may call it, as `alloc_mw` of a device of driver `T`.
    unsafe extern "C" fn alloc_mw(
        mw: *mut bindings::ib_mw,
        udata: *mut bindings::ib_udata,
    ) -> c_int {
        from_result(|| {
            // SAFETY: uverbs passes a `udata` that is valid during the call.
            unsafe { Udata::check_empty(udata)? };
            // SAFETY: uverbs passes a new window, with its type and its domain, which it holds
            // during the call.
            let (pd, kind) = unsafe { (Pd::<T>::from_base((*mw).pd), (*mw).type_) };
            let kind = match kind {
                bindings::ib_mw_type_IB_MW_TYPE_1 => MwKind::One,
                bindings::ib_mw_type_IB_MW_TYPE_2 => MwKind::TwoB,
                _ => return Err(EINVAL),
            };
            let stag = pd.device().mrs().reserve()?;
            let data = T::Mr::alloc_window(pd, kind);
            let region = Self::use_stag(pd, stag, Kind::Process(Extent::default()), data)?;

            // SAFETY: The window is new, of `size_ib_mw` bytes, and nothing else accesses it.
            unsafe {
                (*mw).rkey = stag;
                (*mw.cast::<MwBase>()).region = region.cast();
            }
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// Only ib_core may call it, as `dealloc_mw` of a device of driver `T`.
    unsafe extern "C" fn dealloc_mw(mw: *mut bindings::ib_mw) -> c_int {
        // SAFETY: `alloc_mw` has stored the region, which `new_mr` created, and ib_core deallocates
        // a window once. It is in the table of its device.
        unsafe {
            let dev = Device::<T>::from_raw((*mw).device);

            Self::end_mr(dev, (*mw.cast::<MwBase>()).region);
        }
        0
    }
}
