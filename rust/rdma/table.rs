// SPDX-License-Identifier: GPL-2.0

//! A table of objects that the receive path looks up.

use crate::object::Object;
use core::{marker::PhantomData, pin::Pin, ptr::NonNull};
use kernel::{
    error::to_result,
    prelude::*,
    sync::{aref::ARef, rcu},
    types::Opaque,
};
use riw_bindings as bindings;

#[cfg(CONFIG_KUNIT = "y")]
#[path = "kunit/table.rs"]
mod kunit;

/// Objects by a number. Look-ups take no lock: they are under RCU, so what is in the table must not
/// be freed before a grace period has passed since it was removed.
#[pin_data(PinnedDrop)]
pub(crate) struct Table<B, T, D> {
    #[pin]
    xa: Opaque<bindings::xarray>,
    _objects: PhantomData<*const Object<B, T, D>>,
}

impl<B, T, D> Table<B, T, D> {
    /// An empty table.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            xa <- Opaque::ffi_init(|xa: *mut bindings::xarray| {
                // SAFETY: `xa` is ours and pinned.
                unsafe { bindings::xa_init_flags(xa, 0) }
            }),
            _objects: PhantomData,
        })
    }

    /// Keeps `number` for an object to come. `EBUSY` if it is taken. May sleep.
    pub(crate) fn reserve(&self, number: u32) -> Result {
        // SAFETY: The array is initialised.
        to_result(unsafe {
            bindings::xa_reserve(self.xa.get(), number as usize, bindings::GFP_KERNEL)
        })
    }

    /// Puts an object where a place is reserved. Cannot fail, does not sleep.
    ///
    /// # Safety
    ///
    /// `object` must live until a grace period after [`Self::remove`] of the same number.
    pub(crate) unsafe fn fill(&self, number: u32, object: *mut B) {
        // SAFETY: The array is initialised; the place exists, so nothing is allocated.
        unsafe {
            bindings::xa_store(self.xa.get(), number as usize, object.cast(), 0);
        }
    }

    /// Takes out the object, or the reservation.
    pub(crate) fn remove(&self, number: u32) {
        // SAFETY: The array is initialised.
        unsafe { bindings::xa_erase(self.xa.get(), number as usize) };
    }

    /// Finds an object that is not being destroyed. Any context.
    pub(crate) fn get(&self, number: u32) -> Option<ARef<Object<B, T, D>>> {
        let _guard = rcu::read_lock();
        // SAFETY: The array is initialised. A reserved place gives null.
        let found = NonNull::new(unsafe { bindings::xa_load(self.xa.get(), number as usize) })?;

        // SAFETY: What is found in the table is an object, and stays allocated until the guard is
        // dropped.
        unsafe { Object::try_get(found.cast()) }
    }
}

#[pinned_drop]
impl<B, T, D> PinnedDrop for Table<B, T, D> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: Nobody uses the array any more.
        unsafe { bindings::xa_destroy(self.xa.get()) };
    }
}

// SAFETY: The array has its own lock; the objects are `Send` and `Sync` if their data is.
unsafe impl<B, T, D: Send + Sync> Send for Table<B, T, D> {}
// SAFETY: As above.
unsafe impl<B, T, D: Send + Sync> Sync for Table<B, T, D> {}
