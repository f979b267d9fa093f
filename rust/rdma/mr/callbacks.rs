// SPDX-License-Identifier: GPL-2.0

//! The verbs of memory regions, as ib_core calls them.

use super::{DmaBufRequest, Extent, KernelRegion, Kind, Mr, MrBase, MrChange, MrRange, MrRequest};
use crate::{
    device::{Callbacks, Device},
    ops::{Driver, MrVerbs},
    pd::Pd,
    ContextUdata, Udata,
};
use core::mem::MaybeUninit;
use kernel::{
    error::{from_result, Error},
    ffi::c_int,
    prelude::*,
};
use riw_bindings as bindings;

/// Sets the callbacks of this file in a `struct ib_device_ops`.
pub(crate) const fn fill<T: Driver>(mut ops: bindings::ib_device_ops) -> bindings::ib_device_ops {
    ops.reg_user_mr = Some(Callbacks::<T>::reg_user_mr);
    if T::Mr::HAS_REG_DMABUF {
        ops.reg_user_mr_dmabuf = Some(Callbacks::<T>::reg_user_mr_dmabuf);
    }
    if T::Mr::HAS_REREG {
        ops.rereg_user_mr = Some(Callbacks::<T>::rereg_user_mr);
    }
    ops.dereg_mr = Some(Callbacks::<T>::dereg_mr);
    ops.get_dma_mr = Some(Callbacks::<T>::get_dma_mr);
    if T::Mr::HAS_ALLOC {
        ops.alloc_mr = Some(Callbacks::<T>::alloc_mr);
        ops.map_mr_sg = Some(Callbacks::<T>::map_mr_sg);
    }
    ops
}

impl<T: Driver> Callbacks<T> {
    /// # Safety
    ///
    /// Only ib_core may call it, as `reg_user_mr` of a device of driver `T`.
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
            let (pd, udata) = unsafe { (Pd::<T>::from_base(pd), ContextUdata::from_raw(udata)) };
            let udata = udata.ok_or(EOPNOTSUPP)?;
            let stag = pd.device().mrs().reserve()?;
            let request = MrRequest {
                memory: MrRange {
                    start,
                    length,
                    iova,
                },
                // CAST: A bit mask.
                access: access as u32,
                stag,
            };

            let data = T::Mr::reg_user(pd, &request, &udata);
            Self::use_stag(pd, stag, Kind::Process(Extent { iova, length }), data)
        })();

        made.unwrap_or_else(Error::to_ptr)
    }

    /// # Safety
    ///
    /// Only ib_core may call it, as `reg_user_mr_dmabuf` of a device of driver `T`.
    #[allow(clippy::too_many_arguments)]
    unsafe extern "C" fn reg_user_mr_dmabuf(
        pd: *mut bindings::ib_pd,
        offset: u64,
        length: u64,
        iova: u64,
        fd: c_int,
        access: c_int,
        dmah: *mut bindings::ib_dmah,
        _attrs: *mut bindings::uverbs_attr_bundle,
    ) -> *mut bindings::ib_mr {
        let made = (|| {
            if !dmah.is_null() {
                return Err(EOPNOTSUPP);
            }
            // SAFETY: ib_core holds the domain during the call.
            let pd = unsafe { Pd::<T>::from_base(pd) };
            let stag = pd.device().mrs().reserve()?;
            let request = DmaBufRequest {
                fd,
                offset,
                length,
                iova,
                // CAST: A bit mask.
                access: access as u32,
                stag,
            };

            // The method has no data of the driver.
            let data = T::Mr::reg_dmabuf(pd, &request);
            Self::use_stag(pd, stag, Kind::Process(Extent { iova, length }), data)
        })();

        made.unwrap_or_else(Error::to_ptr)
    }

    /// Makes a new region with the STag of the old one. uverbs then deregisters the old one, which
    /// nobody finds any more.
    ///
    /// # Safety
    ///
    /// Only ib_core may call it, as `rereg_user_mr` of a device of driver `T`.
    #[allow(clippy::too_many_arguments)]
    unsafe extern "C" fn rereg_user_mr(
        old: *mut bindings::ib_mr,
        flags: c_int,
        start: u64,
        length: u64,
        iova: u64,
        access: c_int,
        pd: *mut bindings::ib_pd,
        udata: *mut bindings::ib_udata,
    ) -> *mut bindings::ib_mr {
        let made = (|| {
            // SAFETY: ib_core holds region and domain during the call. It calls no other verb with
            // the region meanwhile.
            let (old, pd) = unsafe { (Mr::<T>::from_base(old.cast()), Pd::<T>::from_base(pd)) };
            let memory = MrRange {
                start,
                length,
                iova,
            };

            // SAFETY: ib_core passes a `udata` that is valid during the call.
            unsafe { Udata::check_empty(udata)? };
            let change = MrChange::new(flags, access, memory);
            let ib = old.base().cast::<bindings::ib_mr>();
            // SAFETY: `old` is alive. ib_core sets these fields before it commits the region, and
            // its verbs exclude each other.
            let (stag, mut extent) = unsafe { ((*ib).lkey, Extent::of(ib)) };

            if change.memory.is_some() {
                extent = Extent { iova, length };
            }

            // This pins memory, which takes long: windows can still be bound to the old region.
            let data = T::Mr::rereg(old, pd, &change)?;
            T::Mr::retire(pd.device(), old)?;
            let new = Self::new_mr(pd, stag, Kind::Process(extent), data)
                .inspect_err(|_| T::Mr::keep(old))?;

            // SAFETY: Both are alive, and only the verbs for them access the fields.
            unsafe {
                (*old.base()).replaced = true;
                (*new.cast::<MrBase>()).replacement = true;
            }
            Ok(new)
        })();

        made.unwrap_or_else(Error::to_ptr)
    }

    /// Creates a region of a kernel user. Only memory of the kernel is mapped to it.
    ///
    /// # Safety
    ///
    /// Only ib_core may call it, as `alloc_mr` of a device of driver `T`.
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
            let data = T::Mr::alloc(pd, max)?;
            let region = KernelRegion::new(pd.base().addr(), max)?;
            let stag = pd.device().mrs().reserve()?;

            Self::use_stag(pd, stag, Kind::Kernel(region), Ok(data))
        })();

        made.unwrap_or_else(Error::to_ptr)
    }

    /// # Safety
    ///
    /// Only ib_core may call it, as `map_mr_sg` of a device of driver `T`.
    unsafe extern "C" fn map_mr_sg(
        mr: *mut bindings::ib_mr,
        sg: *mut bindings::scatterlist,
        count: c_int,
        offset: *mut u32,
    ) -> c_int {
        from_result(|| {
            // SAFETY: The consumer keeps the region during the call.
            let region = unsafe { Mr::<T>::from_base(mr.cast()) };
            let region = region.registrations().ok_or(EINVAL)?;

            // SAFETY: The devices of this crate have no DMA device. The consumer maps `sg` for the
            // device, does not map to a region concurrently, and keeps the memory.
            region.map(|list| unsafe { list.map(mr, sg, count, offset) })
        })
    }

    /// Creates a region with a reserved STag from the driver's data. If either fails, releases the
    /// STag.
    pub(crate) fn use_stag(
        pd: &Pd<T>,
        stag: u32,
        kind: Kind,
        data: Result<impl PinInit<T::Mr>>,
    ) -> Result<*mut bindings::ib_mr> {
        data.and_then(|data| Self::new_mr(pd, stag, kind, data))
            .inspect_err(|_| pd.device().mrs().release(stag))
    }

    /// Creates a region, and puts it in the table, where the index of `stag` is reserved, or is the
    /// index of a region that is replaced.
    ///
    /// Sets the extent, too: ib_core does so only for `IB_USER_VERBS_CMD_REG_MR`.
    fn new_mr(
        pd: &Pd<T>,
        stag: u32,
        kind: Kind,
        data: impl PinInit<T::Mr>,
    ) -> Result<*mut bindings::ib_mr> {
        let (extent, registrations) = match kind {
            Kind::Process(extent) => (extent, None),
            Kind::Kernel(region) => (Extent::default(), Some(region)),
        };
        let memory = KBox::<MaybeUninit<Mr<T>>>::new_uninit(GFP_KERNEL_ACCOUNT | __GFP_ZERO)?;
        let raw = KBox::into_raw(memory);
        let base: *mut MrBase = raw.cast();

        // SAFETY: The memory is new and of the size of an `Mr`, and nothing else accesses it. It is
        // zeroed, which is a valid `MrBase` and how ib_core allocates its part. `dereg_mr` calls
        // `destroy` before it frees it.
        unsafe { Mr::<T>::create(base, data) };
        // SAFETY: Nothing else accesses the region before `fill`. The index is reserved or filled.
        // `dereg_mr` removes the region from the table, unless another one has replaced it, then
        // ends it, and frees it after a grace period.
        unsafe {
            let ib = base.cast::<bindings::ib_mr>();

            (*ib).lkey = stag;
            (*ib).rkey = stag;
            (*ib).iova = extent.iova;
            (*ib).length = extent.length;
            (*base).index = stag >> 8;
            (*base).registrations = registrations;
            pd.device().mrs().table.fill(stag >> 8, base);
            Ok(ib)
        }
    }

    /// # Safety
    ///
    /// Only ib_core may call it, as `dereg_mr` of a device of driver `T`.
    unsafe extern "C" fn dereg_mr(
        ib: *mut bindings::ib_mr,
        udata: *mut bindings::ib_udata,
    ) -> c_int {
        let base: *mut MrBase = ib.cast();
        // SAFETY: `new_mr` created the region, and nothing else accesses the fields now.
        let (replaced, replacement) = unsafe { ((*base).replaced, (*base).replacement) };

        // SAFETY: The region is valid, and so is its device.
        let (region, dev) = unsafe {
            (
                Mr::<T>::from_base(base),
                Device::<T>::from_raw((*(*ib).pd).device),
            )
        };

        // SAFETY: uverbs passes a `udata`, and kernel users pass null. The region that uverbs has
        // created has its own `uobject`, which uverbs frees later.
        let undone = !udata.is_null() && !replacement && unsafe { bindings::mr_is_undone(ib) };

        if let Some(region) = region.registrations() {
            // Kernel users free the memory, whether this fails or not.
            region.close();
        } else if undone {
            T::Mr::abandon(dev, region);
        } else if !replaced {
            if let Err(e) = T::Mr::retire(dev, region) {
                return e.to_errno();
            }
        }
        // SAFETY: `new_mr` created the region, and ib_core deregisters it once.
        unsafe { Self::end_mr(dev, base) };
        0
    }

    /// Ends a region, and frees it after a grace period. Process context; may sleep.
    ///
    /// # Safety
    ///
    /// [`Self::new_mr`] has created the region on `dev`. No reference to it is in use but
    /// [`ARef`](kernel::sync::aref::ARef)s, and the caller does not use it afterwards.
    pub(crate) unsafe fn end_mr(dev: &Device<T>, base: *mut MrBase) {
        // SAFETY: The region has left the table when it ends, so only holders of an `ARef` use it,
        // and `destroy` waits for them. A lookup that found the region earlier and has no reference
        // fails to take one; it reads only `users`, inside an RCU read section, and kfree_rcu()
        // frees the memory after that. The box came from kmalloc, as kfree_rcu() requires.
        unsafe {
            if !(*base).replaced {
                dev.mrs().table.remove((*base).index);
            }
            Mr::<T>::destroy(base);
            drop((*base).registrations.take());
            bindings::kfree_rcu((*base).rcu.get(), base.cast());
        }
    }

    /// Refuses a region of all memory of the kernel that peers may access
    /// (`IB_PD_UNSAFE_GLOBAL_RKEY`). Kernel users name local memory by
    /// [`LOCAL_DMA_LKEY`](crate::wr::LOCAL_DMA_LKEY) instead, which needs no region.
    ///
    /// # Safety
    ///
    /// Only ib_core may call it, as `get_dma_mr` of a device of driver `T`.
    unsafe extern "C" fn get_dma_mr(
        _pd: *mut bindings::ib_pd,
        _access: c_int,
    ) -> *mut bindings::ib_mr {
        kernel::pr_warn_once!("a global rkey would give peers access to all memory: refused\n");
        EOPNOTSUPP.to_ptr()
    }
}
