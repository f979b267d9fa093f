// SPDX-License-Identifier: GPL-2.0

//! The memory of a verbs object: ib_core's part and the driver's, with a count of their users.

use core::{marker::PhantomData, mem::MaybeUninit, ops::Deref, ptr::NonNull};
use kernel::{
    prelude::*,
    sync::{
        aref::{ARef, AlwaysRefCounted},
        atomic::ordering,
        Completion, Refcount,
    },
    types::Opaque,
};

/// A verbs object as ib_core allocates it: its own struct `B` (`struct ib_qp`, say), and behind it
/// the data `D` of the driver `T`.
///
/// ib_core frees the memory as soon as the driver's destroy callback has returned. So the object
/// counts those who use it outside of a callback (each holds an [`ARef`]), and destruction waits
/// for the last of them, without a time-out. What keeps a reference must therefore let go of it
/// when the driver's destroy method tells it to.
///
/// # Invariants
///
/// - `base` is at offset 0, and was initialised by ib_core.
/// - `users` is the number of [`ARef`]s, plus one from creation to destruction, or saturated. While
///   it is not zero, `data` is initialised and the memory is not freed.
/// - A `&Object` exists only while a reference is held, or the initial one.
#[repr(C)]
pub struct Object<B, T, D> {
    base: Opaque<B>,
    users: Refcount,
    gone: Completion,
    data: MaybeUninit<D>,
    _driver: PhantomData<fn() -> T>,
}

impl<B, T, D> Object<B, T, D> {
    /// Bytes that ib_core is to allocate.
    pub(crate) const SIZE: usize = {
        assert!(core::mem::offset_of!(Self, base) == 0);
        // kzalloc() aligns by 8 at least.
        assert!(align_of::<Self>() <= 8);
        size_of::<Self>()
    };

    /// Makes the driver's part of the object.
    ///
    /// # Safety
    ///
    /// `base` must point to [`Self::SIZE`] bytes whose `B` ib_core has initialised and that no one
    /// else uses yet. [`Self::destroy`] must be called before it is freed.
    pub(crate) unsafe fn create(base: *mut B, data: impl PinInit<D>) {
        let this = base.cast::<Self>();

        // SAFETY: The caller says that the memory is ours; no reference to it exists.
        unsafe {
            (&raw mut (*this).users).write(Refcount::new(1));
            let Ok(()) = pin_init::raw_try_init(&raw mut (*this).gone, Completion::new());
            // INVARIANT: `data` is initialised, with `users` at 1.
            let Ok(()) = pin_init::raw_try_init((&raw mut (*this).data).cast::<D>(), data);
        }
    }

    /// Borrows an object from ib_core's pointer to it.
    ///
    /// # Safety
    ///
    /// [`Self::create`] must have been called for `base`, and [`Self::destroy`] not have been called
    /// before the end of `'a`.
    pub(crate) unsafe fn from_base<'a>(base: *mut B) -> &'a Self {
        // SAFETY: The caller says that the object lives; only shared references to it exist.
        unsafe { &*base.cast::<Self>() }
    }

    /// Waits until the last user has gone, and drops the driver's part. May sleep.
    ///
    /// # Safety
    ///
    /// As for [`Self::from_base`]; and no reference from there may be in use any more, only
    /// [`ARef`]s.
    pub(crate) unsafe fn destroy(base: *mut B) {
        let this = base.cast::<Self>();

        // SAFETY: The initial reference is given back here, once, as the caller says.
        unsafe { Self::dec_ref(NonNull::new_unchecked(this)) };
        // SAFETY: The completion is initialised; the memory stays until we return.
        unsafe { (*this).gone.wait_for_completion() };
        // SAFETY: `users` is zero, and can not rise from there: nobody else has access to `data`.
        unsafe { (*this).data.assume_init_drop() };
    }

    /// ib_core's part.
    pub(crate) fn base(&self) -> *mut B {
        self.base.get()
    }

    /// Takes a reference, unless the object is being destroyed and had its last one given back.
    /// There is no `&Object` to one of which that is not known: its data may be gone.
    ///
    /// # Safety
    ///
    /// [`Self::create`] must have been called for `this`, and the memory not have been freed.
    pub(crate) unsafe fn try_get(this: NonNull<Self>) -> Option<ARef<Self>> {
        // SAFETY: By the caller's promise the count is there, whatever else is.
        let users = unsafe { &(*this.as_ptr()).users }.as_atomic();
        let mut count = users.load(ordering::Relaxed);

        // What is saturated is negative.
        while count > 0 {
            match users.cmpxchg(count, count.checked_add(1)?, ordering::Acquire) {
                // SAFETY: The count was not zero, and has been raised for the new reference.
                Ok(_) => return Some(unsafe { ARef::from_raw(this) }),
                Err(now) => count = now,
            }
        }
        None
    }
}

impl<B, T, D> Deref for Object<B, T, D> {
    type Target = D;

    fn deref(&self) -> &D {
        // SAFETY: By the type invariants `data` is initialised while a `&Object` exists.
        unsafe { self.data.assume_init_ref() }
    }
}

// SAFETY: `users` holds the object alive: `destroy` waits for it to become zero.
unsafe impl<B, T, D> AlwaysRefCounted for Object<B, T, D> {
    fn inc_ref(&self) {
        self.users.inc();
    }

    unsafe fn dec_ref(obj: NonNull<Self>) {
        let this = obj.as_ptr();

        // SAFETY: The caller owns a reference, so the object is there until the count is lowered.
        if unsafe { &(*this).users }.dec_and_test() {
            // SAFETY: `destroy` frees nothing before this completion has been signalled; and
            // complete_all() takes the completion's lock, which the waiter takes as well before
            // it returns.
            unsafe { &(*this).gone }.complete_all();
        }
    }
}

// SAFETY: ib_core's part is not reachable from outside of this crate, which uses it as ib_core's
// own rules allow, from any thread; the driver's is `Send`.
unsafe impl<B, T, D: Send + Sync> Send for Object<B, T, D> {}

// SAFETY: As above.
unsafe impl<B, T, D: Send + Sync> Sync for Object<B, T, D> {}
