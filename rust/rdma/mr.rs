// SPDX-License-Identifier: GPL-2.0

//! Memory regions, and the table that looks up STags from the wire.
//!
//! C sources: `core/uverbs_cmd.c`, `core/uverbs_std_types_mr.c`, `core/verbs.c`

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

/// ib_core's part of a region (`struct ib_mr`, `include/rdma/ib_verbs.h`), and the RCU head that
/// delays freeing.
#[repr(C)]
pub struct MrBase {
    ib: Opaque<bindings::ib_mr>,
    rcu: Opaque<bindings::callback_head>,
    index: u32,
}

/// A memory region (`struct ib_mr`, `include/rdma/ib_verbs.h`).
pub type Mr<T> = Object<MrBase, T, <T as Driver>::Mr>;

/// The arguments of a registration (`ib_device_ops::reg_user_mr`, `include/rdma/ib_verbs.h`).
pub struct MrRequest {
    /// The address in the calling process.
    pub start: u64,
    /// The length in bytes.
    pub length: u64,
    /// The address of the region in work requests and on the wire.
    pub iova: u64,
    /// The rights (`enum ib_access_flags`).
    pub access: u32,
    /// The STag of the new region.
    pub stag: u32,
}

/// Attempts to find a free index (the upper 24 bits of the STag; 0 is not used) at random. If half
/// of them are taken, one registration in 2^64 fails.
const ATTEMPTS: usize = 64;

/// The regions of a device, by STag (`struct xarray`, `lib/xarray.c`).
#[pin_data]
pub struct MrTable<T: Driver> {
    #[pin]
    table: Table<MrBase, T, T::Mr>,
}

impl<T: Driver> MrTable<T> {
    /// Creates an empty table. Any context.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self { table <- Table::new() })
    }

    /// Looks up a region by the index of an STag. The caller must check key, PD, rights and bounds.
    /// Any context.
    ///
    /// Returns `None` if there is no region, or if it is being deregistered. Drop the reference
    /// soon: deregistration waits for it.
    pub fn get(&self, stag: u32) -> Option<ARef<Mr<T>>> {
        self.table.get(stag >> 8)
    }

    /// Reserves a random STag: a peer cannot predict it from others. Process context; may sleep.
    ///
    /// Fails with `ENOSPC` if it finds no free index, `ENOMEM` without memory.
    fn reserve(&self) -> Result<u32> {
        for _ in 0..ATTEMPTS {
            // SAFETY: get_random_u32() has no preconditions.
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

/// Sets the callbacks of this file in a `struct ib_device_ops`.
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
            // SAFETY: ib_core holds the domain during the call, and passes null or the valid
            // `udata` of a bundle with a context of this driver.
            let (pd, udata) = unsafe { (Pd::<T>::from_base(pd), Udata::from_raw(udata)) };
            let udata = udata.ok_or(EOPNOTSUPP)?;
            let dev = pd.device();
            let stag = dev.mrs().reserve()?;
            let request = MrRequest {
                start,
                length,
                iova,
                // CAST: A bit mask.
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

        // SAFETY: The memory is new and of the size of an `Mr`, and nothing else accesses it. It is
        // zeroed, which is a valid `MrBase` and how ib_core allocates its part. `dereg_mr` calls
        // `destroy` before it frees it.
        unsafe { Mr::<T>::create(base, data) };
        // SAFETY: Nothing else accesses the region before `fill`. `reg_user_mr` has reserved the
        // index. `dereg_mr` removes the region from the table, and frees it after a grace period.
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

        // SAFETY: ib_core passes null or a `udata` that is valid during the call.
        if let Err(e) = unsafe { Exchange::check_empty(udata) } {
            return e.to_errno();
        }
        // SAFETY: `new_mr` created the region, and ib_core deregisters it once. After the removal
        // only holders of an `ARef` use the region, and `destroy` waits for them. A lookup that
        // found the region earlier and has no reference fails to take one; it reads only `users`,
        // inside an RCU read section, and kfree_rcu() frees the memory after that. The box came
        // from kmalloc, as kfree_rcu() requires.
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

    /// Present only because ib_core requires the verb. Kernel users cannot create queue pairs, so
    /// they need no DMA region.
    unsafe extern "C" fn get_dma_mr(
        _pd: *mut bindings::ib_pd,
        _access: c_int,
    ) -> *mut bindings::ib_mr {
        EOPNOTSUPP.to_ptr()
    }
}
