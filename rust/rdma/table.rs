// SPDX-License-Identifier: GPL-2.0

//! The table of objects that the receive path looks up.
//!
//! C source: `lib/xarray.c`

use crate::object::Object;
use core::{marker::PhantomData, pin::Pin, ptr::NonNull};
use kernel::{
    error::to_result,
    ffi::c_ulong,
    prelude::*,
    sync::{aref::ARef, rcu},
    types::Opaque,
};
use riw_bindings as bindings;

#[cfg(CONFIG_KUNIT = "y")]
#[path = "kunit/table.rs"]
mod kunit;

/// A number, and the object there unless it is being destroyed.
type Found<B, T, D> = (u32, Option<ARef<Object<B, T, D>>>);

/// Objects by number (`struct xarray`). A lookup takes no lock but runs under RCU, so an object
/// must stay allocated for a grace period after its removal.
#[pin_data(PinnedDrop)]
pub(crate) struct Table<B, T, D> {
    #[pin]
    xa: Opaque<bindings::xarray>,
    _objects: PhantomData<*const Object<B, T, D>>,
}

impl<B, T, D> Table<B, T, D> {
    /// Creates an empty table (`xa_init_flags()`, `include/linux/xarray.h`). Any context.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            xa <- Opaque::ffi_init(|xa: *mut bindings::xarray| {
                // SAFETY: `ffi_init` passes a pointer to the field that is being initialized. It is
                // pinned and nothing else uses it yet.
                unsafe { bindings::xa_init_account(xa) }
            }),
            _objects: PhantomData,
        })
    }

    /// Reserves `number` (`xa_insert()` of null, `include/linux/xarray.h`). Process context; may
    /// sleep.
    ///
    /// The memory is charged to the memory cgroup of the caller: processes choose how many objects
    /// there are. For that, the array itself needs `XA_FLAGS_ACCOUNT`: it first tries to allocate
    /// with flags of its own.
    ///
    /// Fails with `EBUSY` if the number is taken, `ENOMEM` without memory.
    pub(crate) fn reserve(&self, number: u32) -> Result {
        // SAFETY: `new` initialized the array, which is pinned. The array locks itself.
        to_result(unsafe {
            bindings::xa_reserve(self.xa.get(), number as usize, bindings::GFP_KERNEL_ACCOUNT)
        })
    }

    /// Stores `object` at a reserved number, or in place of another object (`xa_store()`). Process
    /// context; does not sleep. Cannot fail.
    ///
    /// # Safety
    ///
    /// `object` must point to a created [`Object`] of the table's type. It must not be destroyed
    /// before it has left the table, by [`Self::remove`] of `number` or because another object is
    /// stored there. Its memory must stay allocated for a grace period after that. `number` must be
    /// reserved or filled.
    pub(crate) unsafe fn fill(&self, number: u32, object: *mut B) {
        // SAFETY: `new` initialized the array. The number is reserved or filled by the caller's
        // promise, so its slot exists and xa_store() allocates nothing.
        unsafe {
            bindings::xa_store(self.xa.get(), number as usize, object.cast(), 0);
        }
    }

    /// Removes the object or the reservation at `number` (`xa_erase()`). Process context; does not
    /// sleep. A lookup that runs concurrently may still find the object.
    pub(crate) fn remove(&self, number: u32) {
        // SAFETY: `new` initialized the array, which is pinned. The array locks itself.
        unsafe { bindings::xa_erase(self.xa.get(), number as usize) };
    }

    /// Looks up the object at `number` (`xa_load()`). Any context.
    ///
    /// Returns `None` if there is none, or if it is being destroyed. While an object is replaced by
    /// another one, returns one of the two.
    pub(crate) fn get(&self, number: u32) -> Option<ARef<Object<B, T, D>>> {
        let _guard = rcu::read_lock();
        let mut ended = None;

        loop {
            // SAFETY: `new` initialized the array, and the guard keeps RCU from freeing its nodes.
            // For a reserved number xa_load() returns null.
            let found = NonNull::new(unsafe { bindings::xa_load(self.xa.get(), number as usize) })?;

            // The guard also keeps its memory from being used for another object.
            if ended == Some(found) {
                return None;
            }
            // SAFETY: `fill` stores only created objects, and its caller promises that their memory
            // stays for a grace period after they have left the table, so at least until `_guard`
            // is dropped.
            if let Some(object) = unsafe { Object::try_get(found.cast()) } {
                return Some(object);
            }
            // An object leaves the table before it ends, and `try_get` acquires that: the next load
            // finds the object that has taken its place, or none.
            ended = Some(found);
        }
    }

    /// Calls `f` with each object that is in the table from start to end, except those that are
    /// being destroyed. Process context; sleeps only if `f` does.
    pub(crate) fn for_each(&self, mut f: impl FnMut(&Object<B, T, D>)) {
        let mut next = Some(0);

        while let Some((number, object)) = next.and_then(|from| self.find(from)) {
            if let Some(object) = object {
                f(&object);
            }
            next = number.checked_add(1);
        }
    }

    /// Looks up the object with the lowest number that is at least `from` (`xa_find()`). Any
    /// context.
    fn find(&self, from: u32) -> Option<Found<B, T, D>> {
        let _guard = rcu::read_lock();
        let mut number = from as c_ulong;
        // SAFETY: `new` initialized the array, and the guard keeps RCU from freeing its nodes.
        // xa_find() passes over reserved numbers.
        let found = NonNull::new(unsafe {
            bindings::xa_find(
                self.xa.get(),
                &raw mut number,
                c_ulong::MAX,
                bindings::XA_PRESENT,
            )
        })?;

        // SAFETY: As in `get`, what `fill` stored is a created object whose memory stays until
        // `_guard` is dropped.
        let object = unsafe { Object::try_get(found.cast()) };
        // CAST: Only numbers of 32 bits are reserved.
        Some((number as u32, object))
    }
}

#[pinned_drop]
impl<B, T, D> PinnedDrop for Table<B, T, D> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: `new` initialized the array. `&mut self` says that nothing else uses it.
        unsafe { bindings::xa_destroy(self.xa.get()) };
    }
}

// SAFETY: An xarray belongs to no thread. A table hands out its objects to any thread, and these
// are `Send` and `Sync` because `D` is both.
unsafe impl<B, T, D: Send + Sync> Send for Table<B, T, D> {}
// SAFETY: The xarray has a lock of its own, and lookups run under RCU. The objects that it hands
// out are `Send` and `Sync` because `D` is both.
unsafe impl<B, T, D: Send + Sync> Sync for Table<B, T, D> {}
