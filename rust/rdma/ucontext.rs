// SPDX-License-Identifier: GPL-2.0

//! User contexts: what a process that has opened a device owns, and maps.

use crate::{
    device::{Callbacks, Device},
    object::Object,
    shared::SharedMem,
    Driver, Exchange,
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

/// A user context (`struct ib_ucontext`).
pub type Ucontext<T> = Object<bindings::ib_ucontext, T, <T as Driver>::Ucontext>;

/// What the user's mmap() finds: memory, and ib_core's record of it.
#[repr(C)]
struct MmapEntry {
    base: Opaque<bindings::rdma_user_mmap_entry>,
    mem: Arc<SharedMem>,
}

/// Memory on offer to a user's mmap(). Dropping this withdraws the offer; a mapping that exists
/// stays, with its pages.
///
/// # Invariants
///
/// `entry` is inserted in the context.
pub struct Mapping<T: Driver> {
    entry: NonNull<bindings::rdma_user_mmap_entry>,
    /// The closing of the context waits for this.
    _context: ARef<Ucontext<T>>,
}

impl<T: Driver> Ucontext<T> {
    /// Offers `mem` to the process for mapping, at an offset above `above`. May sleep.
    ///
    /// The mapping belongs to an object of the context, and goes with it.
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
            GFP_KERNEL,
        )?;
        let raw = KBox::into_raw(entry);
        let base: *mut bindings::rdma_user_mmap_entry = raw.cast();

        // SAFETY: The context is open; `base` is zeroed and stays until `mmap_free` is called.
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
            // SAFETY: Not inserted, so still ours.
            drop(unsafe { KBox::from_raw(raw) });
            return Err(e);
        }
        // INVARIANT: Just inserted. `base` comes from a box, so it is not null.
        Ok(Mapping {
            entry: NonNull::new(base).ok_or(EINVAL)?,
            _context: self.into(),
        })
    }
}

impl<T: Driver> Mapping<T> {
    /// The offset that the user passes to mmap().
    pub fn key(&self) -> u64 {
        // SAFETY: The entry is alive by the type's invariant.
        unsafe { bindings::mmap_offset(self.entry.as_ptr()) }
    }
}

impl<T: Driver> Drop for Mapping<T> {
    fn drop(&mut self) {
        // SAFETY: The entry is inserted, and removed only here.
        unsafe { bindings::rdma_user_mmap_entry_remove(self.entry.as_ptr()) };
    }
}

// SAFETY: ib_core's record is locked by ib_core.
unsafe impl<T: Driver> Send for Mapping<T> {}
// SAFETY: As above.
unsafe impl<T: Driver> Sync for Mapping<T> {}

/// Keeps the driver's module from being unloaded. A device can be taken away from its users, and so
/// ib_core lets the module go in spite of them; but who unloads a module does not expect that.
///
/// # Invariants
///
/// Stands for a reference to the module.
struct ModuleRef<T: Driver>(PhantomData<T>);

impl<T: Driver> ModuleRef<T> {
    /// `None` if the module is being unloaded.
    fn new() -> Option<Self> {
        // SAFETY: The module is there: its code runs.
        let taken = unsafe { bindings::try_module_get(this_module::<T::OwnerModule>().as_ptr()) };

        // INVARIANT: The reference just taken.
        taken.then_some(Self(PhantomData))
    }
}

impl<T: Driver> Drop for ModuleRef<T> {
    fn drop(&mut self) {
        // SAFETY: Gives back the reference of the type's invariant. The code that runs here is not
        // unloaded before ib_core, which has called it, is through with the device.
        unsafe { bindings::module_put(this_module::<T::OwnerModule>().as_ptr()) };
    }
}

/// Fills in the callbacks of this file.
pub(crate) const fn fill<T: Driver>(mut ops: bindings::ib_device_ops) -> bindings::ib_device_ops {
    ops.size_ib_ucontext = Ucontext::<T>::SIZE;
    ops.alloc_ucontext = Some(Callbacks::<T>::alloc_ucontext);
    ops.dealloc_ucontext = Some(Callbacks::<T>::dealloc_ucontext);
    ops.disassociate_ucontext = Some(Callbacks::<T>::disassociate_ucontext);
    ops.mmap = Some(Callbacks::<T>::mmap);
    ops.mmap_free = Some(Callbacks::<T>::mmap_free);
    ops
}

impl<T: Driver> Callbacks<T> {
    unsafe extern "C" fn alloc_ucontext(
        ctx: *mut bindings::ib_ucontext,
        udata: *mut bindings::ib_udata,
    ) -> c_int {
        from_result(|| {
            // SAFETY: ib_core's pointer, valid for the call.
            let udata = unsafe { Exchange::from_raw(udata) }.ok_or(EINVAL)?;
            let module = ModuleRef::<T>::new().ok_or(ENODEV)?;

            // SAFETY: `ctx` is new, of the size asked for, and its device is registered.
            unsafe {
                let dev = Device::from_raw((*ctx).device);
                Ucontext::<T>::create(ctx, T::alloc_ucontext(dev, &udata)?);
            }
            // Until `dealloc_ucontext`.
            core::mem::forget(module);
            Ok(0)
        })
    }

    unsafe extern "C" fn dealloc_ucontext(ctx: *mut bindings::ib_ucontext) {
        // SAFETY: `alloc_ucontext` succeeded for it, and nobody uses it any more.
        unsafe { Ucontext::<T>::destroy(ctx) };
        // INVARIANT: The reference that `alloc_ucontext` has left.
        drop(ModuleRef::<T>(PhantomData));
    }

    /// That this exists lets ib_core take a device away from a process that still has it open:
    /// its objects are destroyed by their own callbacks. What the process has mapped are pages of
    /// memory, not registers; they may stay.
    unsafe extern "C" fn disassociate_ucontext(_ctx: *mut bindings::ib_ucontext) {}

    unsafe extern "C" fn mmap(
        ctx: *mut bindings::ib_ucontext,
        vma: *mut bindings::vm_area_struct,
    ) -> c_int {
        // SAFETY: Both are valid for the call. This checks offset, size and flags of the mapping
        // against what was offered.
        let base = unsafe { bindings::rdma_user_mmap_entry_get(ctx, vma) };
        if base.is_null() {
            return EINVAL.to_errno();
        }
        // SAFETY: Every entry of this driver is an `MmapEntry`; the reference keeps it.
        let mem = unsafe { &(*base.cast::<MmapEntry>()).mem };

        // SAFETY: The memory is `shared_alloc`'s, of the size that was checked.
        let ret = unsafe { bindings::shared_map(vma, mem.as_ptr()) };
        // SAFETY: Gives back the reference taken above.
        unsafe { bindings::rdma_user_mmap_entry_put(base) };
        ret
    }

    unsafe extern "C" fn mmap_free(base: *mut bindings::rdma_user_mmap_entry) {
        // SAFETY: The last reference is gone; the entry came from KBox::into_raw().
        drop(unsafe { KBox::from_raw(base.cast::<MmapEntry>()) });
    }
}
