// SPDX-License-Identifier: GPL-2.0

//! Memory regions, and the table in which the wire's STags are looked up.

use crate::{
    device::{Callbacks, Device},
    object::Object,
    pd::Pd,
    table::Table,
    Driver, Exchange, Udata,
};
use core::mem::MaybeUninit;
use kernel::{error::Error, ffi::c_int, prelude::*, sync::aref::ARef, types::Opaque};
use riw_bindings as bindings;

/// ib_core's part of a region, with what delays its freeing.
#[repr(C)]
pub struct MrBase {
    ib: Opaque<bindings::ib_mr>,
    rcu: Opaque<bindings::callback_head>,
    index: u32,
}

/// A memory region (`struct ib_mr`).
pub type Mr<T> = Object<MrBase, T, <T as Driver>::Mr>;

/// User memory to be registered.
pub struct MrRequest {
    /// The address in the calling process.
    pub start: u64,
    /// Bytes.
    pub length: u64,
    /// The address by which the region is named in requests.
    pub iova: u64,
    /// What is allowed (`enum ib_access_flags`).
    pub access: u32,
    /// The STag that the region will have.
    pub stag: u32,
}

/// How often a free index (24 bits of the STag; 0 is none) is looked for at random. With half of
/// them taken, one registration in 2^64 fails.
const ATTEMPTS: usize = 64;

/// The regions of a device, by STag.
#[pin_data]
pub struct MrTable<T: Driver> {
    #[pin]
    table: Table<MrBase, T, T::Mr>,
}

impl<T: Driver> MrTable<T> {
    /// No regions.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self { table <- Table::new() })
    }

    /// Finds the region that an STag is of, by the STag's index; whether the key fits and the
    /// access is allowed is the caller's to check. Any context. Give the reference back soon:
    /// deregistration waits for it.
    pub fn get(&self, stag: u32) -> Option<ARef<Mr<T>>> {
        self.table.get(stag >> 8)
    }

    /// Reserves a random STag, which a peer cannot guess from others. May sleep.
    fn reserve(&self) -> Result<u32> {
        for _ in 0..ATTEMPTS {
            // SAFETY: No requirements.
            let stag = unsafe { bindings::get_random_u32() };

            if stag >> 8 == 0 {
                continue;
            }
            match self.table.reserve(stag >> 8) {
                Ok(()) => return Ok(stag),
                Err(e) if e == EBUSY => {}
                Err(e) => return Err(e),
            }
        }
        Err(ENOSPC)
    }
}

/// Fills in the callbacks of this file.
pub(crate) const fn fill<T: Driver>(mut ops: bindings::ib_device_ops) -> bindings::ib_device_ops {
    ops.reg_user_mr = Some(Callbacks::<T>::reg_user_mr);
    ops.dereg_mr = Some(Callbacks::<T>::dereg_mr);
    ops.get_dma_mr = Some(Callbacks::<T>::get_dma_mr);
    ops
}

impl<T: Driver> Callbacks<T> {
    #[allow(clippy::too_many_arguments)]
    unsafe extern "C" fn reg_user_mr(
        pd: *mut bindings::ib_pd,
        start: u64,
        length: u64,
        iova: u64,
        access: c_int,
        dmah: *mut bindings::ib_dmah,
        udata: *mut bindings::ib_udata,
    ) -> *mut bindings::ib_mr {
        let made = (|| {
            if !dmah.is_null() {
                return Err(EOPNOTSUPP);
            }
            // SAFETY: ib_core's pointers, valid for the call.
            let (pd, udata) = unsafe { (Pd::<T>::from_base(pd), Udata::from_raw(udata)) };
            let udata = udata.ok_or(EOPNOTSUPP)?;
            let dev = pd.device();
            let stag = dev.mrs().reserve()?;
            let request = MrRequest {
                start,
                length,
                iova,
                // CAST: A set of bits.
                access: access as u32,
                stag,
            };

            Self::new_mr(pd, &request, &udata).inspect_err(|_| dev.mrs().table.remove(stag >> 8))
        })();

        made.unwrap_or_else(Error::to_ptr)
    }

    fn new_mr(
        pd: &Pd<T>,
        request: &MrRequest,
        udata: &Udata<'_, T>,
    ) -> Result<*mut bindings::ib_mr> {
        let data = T::reg_user_mr(pd, request, udata)?;
        let memory = KBox::<MaybeUninit<Mr<T>>>::new_uninit(GFP_KERNEL | __GFP_ZERO)?;
        let raw = KBox::into_raw(memory);
        let base: *mut MrBase = raw.cast();

        // SAFETY: The memory is new, zeroed (which is how ib_core makes its part) and ours.
        unsafe { Mr::<T>::create(base, data) };
        // SAFETY: Still ours alone. The region leaves the table in `dereg_mr`, which frees it
        // after a grace period.
        unsafe {
            let ib = base.cast::<bindings::ib_mr>();

            (*ib).lkey = request.stag;
            (*ib).rkey = request.stag;
            (*base).index = request.stag >> 8;
            pd.device().mrs().table.fill(request.stag >> 8, base);
            Ok(ib)
        }
    }

    unsafe extern "C" fn dereg_mr(
        ib: *mut bindings::ib_mr,
        udata: *mut bindings::ib_udata,
    ) -> c_int {
        let base: *mut MrBase = ib.cast();

        // SAFETY: ib_core's pointer, valid for the call.
        if let Err(e) = unsafe { Exchange::check_empty(udata) } {
            return e.to_errno();
        }
        // SAFETY: Made by `reg_user_mr`, and deregistered once. After the removal only those who
        // have a reference already use the region; `destroy` waits for them. Who has found it in
        // the table and not taken a reference will fail to, and may look at the count of users
        // until the grace period is over, which kfree_rcu() waits for.
        unsafe {
            Device::<T>::from_raw((*(*ib).pd).device)
                .mrs()
                .table
                .remove((*base).index);
            Mr::<T>::destroy(base);
            bindings::kfree_rcu((*base).rcu.get(), base.cast());
        }
        0
    }

    /// Only ib_core's check for the mandatory verbs sees this: queue pairs of kernel users are
    /// refused.
    unsafe extern "C" fn get_dma_mr(
        _pd: *mut bindings::ib_pd,
        _access: c_int,
    ) -> *mut bindings::ib_mr {
        EOPNOTSUPP.to_ptr()
    }
}
