// SPDX-License-Identifier: GPL-2.0

//! User contexts: the resources of a process that has opened a device, and their mappings.
//!
//! C sources: `core/uverbs_cmd.c`, `core/uverbs_main.c`, `core/ib_core_uverbs.c`

use crate::{
    device::{Callbacks, Device},
    object::Object,
    ops::{Driver, UcontextVerbs},
    shared::SharedMem,
    Udata,
};
use core::{marker::PhantomData, ptr::NonNull};
use kernel::{
    error::{from_result, to_result},
    ffi::c_int,
    module::this_module,
    page::PAGE_SHIFT,
    prelude::*,
    sync::{aref::ARef, Arc},
    types::Opaque,
};
use riw_bindings as bindings;

/// A user context (`struct ib_ucontext`, `include/rdma/ib_verbs.h`).
pub type Ucontext<T> = Object<bindings::ib_ucontext, T, <T as Driver>::Ucontext>;

/// A mappable range: ib_core's entry (`struct rdma_user_mmap_entry`) and the memory.
#[repr(C)]
struct MmapEntry {
    base: Opaque<bindings::rdma_user_mmap_entry>,
    mem: Arc<SharedMem>,
}

/// Memory that a process may mmap(). Dropping this ends the offer (`rdma_user_mmap_entry_remove()`,
/// `core/ib_core_uverbs.c`); existing mappings keep their pages. Process context; dropping may
/// sleep.
///
/// # Invariants
///
/// `entry` is inserted in `_context`, and removed only when this is dropped.
pub struct Mapping<T: Driver> {
    entry: NonNull<bindings::rdma_user_mmap_entry>,
    /// Closing the context waits for this reference.
    _context: ARef<Ucontext<T>>,
}

impl<T: Driver> Ucontext<T> {
    /// Offers `mem` to the process for mmap(), at an offset above `above` bytes
    /// (`rdma_user_mmap_entry_insert_range()`, `core/ib_core_uverbs.c`). Process context; may
    /// sleep.
    ///
    /// The owner of the [`Mapping`] must be an object of the context, so that it is dropped first.
    ///
    /// Fails with `EINVAL` if `above` is too large, `ENOMEM` without memory or without a free
    /// range.
    pub fn offer(&self, mem: &Arc<SharedMem>, above: u64) -> Result<Mapping<T>> {
        let first: u32 = (above >> PAGE_SHIFT)
            .checked_add(1)
            .ok_or(EINVAL)?
            .try_into()?;
        let entry = KBox::new(
            MmapEntry {
                base: Opaque::zeroed(),
                mem: mem.clone(),
            },
            GFP_KERNEL_ACCOUNT,
        )?;
        let raw = KBox::into_raw(entry);
        let base: *mut bindings::rdma_user_mmap_entry = raw.cast();

        // SAFETY: `self` is alive, so the context is open. `base` is a zeroed entry at the start of
        // an `MmapEntry`, which stays allocated until ib_core calls `mmap_free`.
        let ret = unsafe {
            bindings::rdma_user_mmap_entry_insert_range(
                self.base(),
                base,
                mem.bytes(),
                first,
                u32::MAX,
            )
        };
        if let Err(e) = to_result(ret) {
            // SAFETY: The insertion failed, so ib_core does not use the entry, and `raw` still owns
            // the box.
            drop(unsafe { KBox::from_raw(raw) });
            return Err(e);
        }
        // INVARIANT: The entry has been inserted in `self`. `base` comes from a box, so it is not
        // null.
        Ok(Mapping {
            entry: NonNull::new(base).ok_or(EINVAL)?,
            _context: self.into(),
        })
    }
}

impl<T: Driver> Mapping<T> {
    /// Returns the offset in bytes to pass to mmap() (`rdma_user_mmap_get_offset()`,
    /// `include/rdma/ib_verbs.h`). Any context.
    pub fn key(&self) -> u64 {
        // SAFETY: By the type invariant the entry is inserted, so ib_core's reference keeps it
        // allocated.
        unsafe { bindings::mmap_offset(self.entry.as_ptr()) }
    }
}

impl<T: Driver> Drop for Mapping<T> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant the entry is inserted, and it is removed only here.
        unsafe { bindings::rdma_user_mmap_entry_remove(self.entry.as_ptr()) };
    }
}

// SAFETY: The entry belongs to no thread: ib_core locks the table of entries. The context is `Send`
// and `Sync`.
unsafe impl<T: Driver> Send for Mapping<T> {}
// SAFETY: `&self` only reads the offset of the entry, which does not change once it is inserted.
unsafe impl<T: Driver> Sync for Mapping<T> {}

/// A reference to the driver's module (`try_module_get()`, `kernel/module/main.c`). ib_core can
/// take a device away from its users, so by itself it lets the module be unloaded while processes
/// use the device. Administrators do not expect that.
///
/// # Invariants
///
/// The value owns one reference to the module.
struct ModuleRef<T: Driver>(PhantomData<T>);

impl<T: Driver> ModuleRef<T> {
    /// Takes a reference. Any context. Returns `None` if the module is being unloaded.
    fn new() -> Option<Self> {
        // SAFETY: ib_core runs this code of the module, so the module is loaded and its `struct
        // module` valid.
        let taken = unsafe { bindings::try_module_get(this_module::<T::OwnerModule>().as_ptr()) };

        // INVARIANT: try_module_get() returned true, so the value owns the reference.
        taken.then_some(Self(PhantomData))
    }
}

impl<T: Driver> Drop for ModuleRef<T> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant the value owns the reference that is dropped here. The
        // module stays loaded while this code runs: unloading first unregisters the device, which
        // waits for ib_core's callbacks.
        unsafe { bindings::module_put(this_module::<T::OwnerModule>().as_ptr()) };
    }
}

/// Sets the callbacks of this file in a `struct ib_device_ops`.
pub(crate) const fn fill<T: Driver>(mut ops: bindings::ib_device_ops) -> bindings::ib_device_ops {
    if T::Ucontext::HAS_ALLOC {
        ops.size_ib_ucontext = Ucontext::<T>::SIZE;
        ops.alloc_ucontext = Some(Callbacks::<T>::alloc_ucontext);
        ops.dealloc_ucontext = Some(Callbacks::<T>::dealloc_ucontext);
        ops.disassociate_ucontext = Some(Callbacks::<T>::disassociate_ucontext);
        ops.mmap = Some(Callbacks::<T>::mmap);
        ops.mmap_free = Some(Callbacks::<T>::mmap_free);
    }
    ops
}

impl<T: Driver> Callbacks<T> {
    /// # Safety
    ///
    /// Only ib_core may call it, as `alloc_ucontext` of a device of driver `T`.
    unsafe extern "C" fn alloc_ucontext(
        ctx: *mut bindings::ib_ucontext,
        udata: *mut bindings::ib_udata,
    ) -> c_int {
        from_result(|| {
            // SAFETY: ib_core passes null or a `udata` that is valid during the call.
            let udata = unsafe { Udata::from_raw(udata) }.ok_or(EINVAL)?;
            let module = ModuleRef::<T>::new().ok_or(ENODEV)?;

            // SAFETY: ib_core passes a new object of `size_ib_ucontext` bytes whose `device` is set
            // and registered. It frees the object after an error, or after `dealloc_ucontext`,
            // which calls `destroy`.
            unsafe {
                let dev = Device::from_raw((*ctx).device);
                Ucontext::<T>::create(ctx, T::Ucontext::alloc(dev, &udata)?);
            }
            // `dealloc_ucontext` drops the reference.
            core::mem::forget(module);
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// Only ib_core may call it, as `dealloc_ucontext` of a device of driver `T`.
    unsafe extern "C" fn dealloc_ucontext(ctx: *mut bindings::ib_ucontext) {
        // SAFETY: ib_core calls this once for a context that was created, after its objects are
        // destroyed, and calls no other verb with it. `destroy` waits for the `Mapping`s.
        unsafe { Ucontext::<T>::destroy(ctx) };
        // INVARIANT: `alloc_ucontext` has left a reference, which this value owns.
        drop(ModuleRef::<T>(PhantomData));
    }

    /// Present so that ib_core can take a device away from processes that have it open; their
    /// objects are destroyed by the usual callbacks. Processes have mapped memory, not registers,
    /// so mappings may stay.
    ///
    /// # Safety
    ///
    /// Only ib_core may call it, as `disassociate_ucontext` of a device of driver `T`.
    unsafe extern "C" fn disassociate_ucontext(_ctx: *mut bindings::ib_ucontext) {}

    /// # Safety
    ///
    /// Only ib_core may call it, as `mmap` of a device of driver `T`.
    unsafe extern "C" fn mmap(
        ctx: *mut bindings::ib_ucontext,
        vma: *mut bindings::vm_area_struct,
    ) -> c_int {
        // SAFETY: ib_core passes an open context and the vma of a running mmap(). The function
        // compares offset, size and flags of the vma with the entry, and returns null or a
        // reference.
        let base = unsafe { bindings::rdma_user_mmap_entry_get(ctx, vma) };
        if base.is_null() {
            return EINVAL.to_errno();
        }
        // SAFETY: `offer` alone inserts entries in contexts of this driver, each at the start of an
        // `MmapEntry`. The reference keeps it allocated until the put below.
        let mem = unsafe { &(*base.cast::<MmapEntry>()).mem };

        // SAFETY: `vma` is the vma of the running mmap(), which sets it up. Nothing but the memory
        // of this entry is mapped to it: ib_core maps nothing itself.
        let result = unsafe { mem.map(vma) };
        // SAFETY: rdma_user_mmap_entry_get() took the reference that is dropped here. `mem` is not
        // used any more.
        unsafe { bindings::rdma_user_mmap_entry_put(base) };
        from_result(|| result.map(|()| 0))
    }

    /// # Safety
    ///
    /// Only ib_core may call it, as `mmap_free` of a device of driver `T`.
    unsafe extern "C" fn mmap_free(base: *mut bindings::rdma_user_mmap_entry) {
        // SAFETY: ib_core calls this once, when the last reference to the entry is dropped. `offer`
        // made the entry from `KBox::into_raw()`.
        drop(unsafe { KBox::from_raw(base.cast::<MmapEntry>()) });
    }
}
