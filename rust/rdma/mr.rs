// SPDX-License-Identifier: GPL-2.0

//! Memory regions, and the table that looks up STags from the wire.
//!
//! C sources: `core/uverbs_cmd.c`, `core/uverbs_std_types_mr.c`, `core/verbs.c`

use crate::{
    device::{Callbacks, Device},
    object::Object,
    page_list::PageList,
    pd::Pd,
    table::Table,
    Driver, Exchange, Udata,
};
use core::mem::MaybeUninit;
use kernel::{
    error::{from_result, Error},
    ffi::c_int,
    prelude::*,
    sync::aref::ARef,
    types::Opaque,
};
use riw_bindings as bindings;

/// ib_core's part of a region (`struct ib_mr`, `include/rdma/ib_verbs.h`), and the RCU head that
/// delays freeing.
#[repr(C)]
pub struct MrBase {
    ib: Opaque<bindings::ib_mr>,
    rcu: Opaque<bindings::callback_head>,
    index: u32,
    /// The list that a kernel user maps memory to, during [`PageList::map`].
    pub(crate) filling: *mut PageList,
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
    ops.alloc_mr = Some(Callbacks::<T>::alloc_mr);
    ops.map_mr_sg = Some(Callbacks::<T>::map_mr_sg);
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

            T::reg_user_mr(pd, &request, &udata)
                .and_then(|data| Self::new_mr(pd, stag, data))
                .inspect_err(|_| dev.mrs().table.remove(stag >> 8))
        })();

        made.unwrap_or_else(Error::to_ptr)
    }

    /// Creates a region of a kernel user. Only memory of the kernel is mapped to it.
    unsafe extern "C" fn alloc_mr(
        pd: *mut bindings::ib_pd,
        kind: bindings::ib_mr_type,
        max: u32,
    ) -> *mut bindings::ib_mr {
        let made = (|| {
            if kind != bindings::ib_mr_type_IB_MR_TYPE_MEM_REG {
                return Err(EOPNOTSUPP);
            }
            // SAFETY: ib_core holds the domain during the call.
            let pd = unsafe { Pd::<T>::from_base(pd) };
            let dev = pd.device();
            let stag = dev.mrs().reserve()?;

            T::alloc_mr(pd, max, stag)
                .and_then(|data| Self::new_mr(pd, stag, data))
                .inspect_err(|_| dev.mrs().table.remove(stag >> 8))
        })();

        made.unwrap_or_else(Error::to_ptr)
    }

    unsafe extern "C" fn map_mr_sg(
        mr: *mut bindings::ib_mr,
        sg: *mut bindings::scatterlist,
        count: c_int,
        offset: *mut u32,
    ) -> c_int {
        from_result(|| {
            // SAFETY: The consumer keeps the region during the call. Only its type of region has
            // this verb, which `alloc_mr` created.
            let region = unsafe { Mr::<T>::from_base(mr.cast()) };

            // SAFETY: The devices of this crate have no DMA device. The consumer maps `sg` for the
            // device, does not map to a region concurrently, and keeps the memory.
            T::map_mr(region, |list| unsafe { list.map(mr, sg, count, offset) })
        })
    }

    fn new_mr(pd: &Pd<T>, stag: u32, data: impl PinInit<T::Mr>) -> Result<*mut bindings::ib_mr> {
        let memory = KBox::<MaybeUninit<Mr<T>>>::new_uninit(GFP_KERNEL | __GFP_ZERO)?;
        let raw = KBox::into_raw(memory);
        let base: *mut MrBase = raw.cast();

        // SAFETY: The memory is new and of the size of an `Mr`, and nothing else accesses it. It is
        // zeroed, which is a valid `MrBase` and how ib_core allocates its part. `dereg_mr` calls
        // `destroy` before it frees it.
        unsafe { Mr::<T>::create(base, data) };
        // SAFETY: Nothing else accesses the region before `fill`. The caller has reserved the
        // index. `dereg_mr` removes the region from the table, and frees it after a grace period.
        unsafe {
            let ib = base.cast::<bindings::ib_mr>();

            (*ib).lkey = stag;
            (*ib).rkey = stag;
            (*base).index = stag >> 8;
            pd.device().mrs().table.fill(stag >> 8, base);
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

    /// Refuses a region of all memory of the kernel that peers may access
    /// (`IB_PD_UNSAFE_GLOBAL_RKEY`). Kernel users name local memory by
    /// [`LOCAL_DMA_LKEY`](crate::wr::LOCAL_DMA_LKEY) instead, which needs no region.
    unsafe extern "C" fn get_dma_mr(
        _pd: *mut bindings::ib_pd,
        _access: c_int,
    ) -> *mut bindings::ib_mr {
        pr_warn!("a global rkey would give peers access to all memory: refused\n");
        EOPNOTSUPP.to_ptr()
    }
}
