// SPDX-License-Identifier: GPL-2.0

//! The memory of a verbs object: ib_core's part, the driver's part and a reference count.
//!
//! C sources: `core/uverbs_cmd.c`, `core/uverbs_std_types_*.c` and `core/verbs.c` allocate and free
//! the memory, except the memory of memory regions: [`crate::mr`] does that.

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

/// A verbs object as ib_core allocates it (`rdma_zalloc_drv_obj()`, `include/rdma/ib_verbs.h`): its
/// struct `B`, such as `struct ib_qp`, followed by the data `D` of driver `T`.
///
/// ib_core frees the memory as soon as the driver's destroy callback returns. So each user outside
/// of a callback holds an [`ARef`], and the destroy callback waits for the last one, without a
/// timeout. A long-lived holder must therefore drop its [`ARef`] when the driver's destroy method
/// requests it.
///
/// # Invariants
///
/// - `base` is at offset 0, and ib_core has initialized it.
/// - `users` counts the [`ARef`]s, plus one from creation to destruction; or it is saturated. While
///   it is not zero, `data` is initialized and the memory is not freed.
/// - A `&Object` exists only while an [`ARef`] or the initial reference is held.
#[repr(C)]
pub struct Object<B, T, D> {
    base: Opaque<B>,
    users: Refcount,
    gone: Completion,
    data: MaybeUninit<D>,
    _driver: PhantomData<fn() -> T>,
}

impl<B, T, D> Object<B, T, D> {
    /// Size for ib_core to allocate, in bytes.
    pub(crate) const SIZE: usize = {
        assert!(core::mem::offset_of!(Self, base) == 0);
        // kzalloc() aligns to at least 8 bytes.
        assert!(align_of::<Self>() <= 8);
        size_of::<Self>()
    };

    /// Initializes the driver's part and sets `users` to 1. Sleeps only if `data` does.
    ///
    /// # Safety
    ///
    /// `base` must point to [`Self::SIZE`] bytes whose `B` ib_core has initialized and that nothing
    /// else accesses yet. [`Self::destroy`] must be called before the memory is freed.
    pub(crate) unsafe fn create(base: *mut B, data: impl PinInit<D>) {
        let this = base.cast::<Self>();

        // SAFETY: By the caller's promise `base` points to `SIZE` bytes that nothing else accesses.
        // The three fields lie within them, behind `B`, so each write is in bounds and exclusive.
        unsafe {
            (&raw mut (*this).users).write(Refcount::new(1));
            let Ok(()) = pin_init::raw_try_init(&raw mut (*this).gone, Completion::new());
            // INVARIANT: `data` is initialized here, with `users` at 1.
            let Ok(()) = pin_init::raw_try_init((&raw mut (*this).data).cast::<D>(), data);
        }
    }

    /// Borrows an object from ib_core's pointer to it. Any context.
    ///
    /// # Safety
    ///
    /// [`Self::create`] must have been called for `base`, and [`Self::destroy`] must not be called
    /// before the end of `'a`.
    pub(crate) unsafe fn from_base<'a>(base: *mut B) -> &'a Self {
        // SAFETY: By the caller's promise the object was created and is not destroyed during `'a`,
        // so `data` is initialized and the memory valid. Nothing makes a `&mut` to a created
        // object.
        unsafe { &*base.cast::<Self>() }
    }

    /// Drops the initial reference, waits for all [`ARef`]s to be dropped, then drops the driver's
    /// part. May sleep, without a timeout.
    ///
    /// # Safety
    ///
    /// [`Self::create`] must have been called for `base`, and `destroy` not yet. No reference from
    /// [`Self::from_base`] may be in use; [`ARef`]s may be.
    pub(crate) unsafe fn destroy(base: *mut B) {
        let this = base.cast::<Self>();

        // SAFETY: `create` took the initial reference, and by the caller's promise `destroy` is
        // called once, so it is dropped once. `this` points to an object, so it is not null.
        unsafe { Self::dec_ref(NonNull::new_unchecked(this)) };
        // SAFETY: `create` initialized `gone`, and ib_core frees the memory only after this
        // function.
        unsafe { (*this).gone.wait_for_completion() };
        // SAFETY: `gone` is completed when `users` reaches zero, and `try_get` does not raise it
        // from zero. So nothing else can access `data`, which `create` initialized.
        unsafe { (*this).data.assume_init_drop() };
    }

    /// Returns ib_core's part. Any context.
    pub fn base(&self) -> *mut B {
        self.base.get()
    }

    /// Takes a reference. Any context.
    ///
    /// Returns `None` if `users` is zero: the object is being destroyed. The argument is a pointer
    /// because a `&Object` promises initialized data, which may be gone here.
    ///
    /// # Safety
    ///
    /// [`Self::create`] must have been called for `this`, and the memory must not be freed.
    pub(crate) unsafe fn try_get(this: NonNull<Self>) -> Option<ARef<Self>> {
        // SAFETY: By the caller's promise `create` has initialized `users`, and the memory is still
        // there. Nothing else of the object is accessed.
        let users = unsafe { &(*this.as_ptr()).users }.as_atomic();
        // Acquire: a caller that finds zero sees the writes of the destroyer before it.
        let mut count = users.load(ordering::Acquire);

        // A saturated count is negative.
        while count > 0 {
            match users.cmpxchg(count, count.checked_add(1)?, ordering::Acquire) {
                // SAFETY: The exchange raised `users` from a value above zero, so the object is
                // alive, and the returned `ARef` owns the count that was added.
                Ok(_) => return Some(unsafe { ARef::from_raw(this) }),
                Err(_) => count = users.load(ordering::Acquire),
            }
        }
        None
    }
}

impl<B, T, D> Deref for Object<B, T, D> {
    type Target = D;

    fn deref(&self) -> &D {
        // SAFETY: By the type invariants `users` is not zero while a `&Object` exists, so `data` is
        // initialized.
        unsafe { self.data.assume_init_ref() }
    }
}

// SAFETY: `inc_ref` and `dec_ref` count in `users`, and `destroy` waits for it to become zero
// before `data` is dropped and the memory freed.
unsafe impl<B, T, D> AlwaysRefCounted for Object<B, T, D> {
    fn inc_ref(&self) {
        self.users.inc();
    }

    unsafe fn dec_ref(obj: NonNull<Self>) {
        let this = obj.as_ptr();

        // SAFETY: The caller owns a reference, so `users` is not zero and the object is alive until
        // the count is lowered here.
        if unsafe { &(*this).users }.dec_and_test() {
            // SAFETY: `destroy` returns, and the memory is freed, only after this completion. The
            // waiter takes the lock of `gone` before it returns, and complete_all() holds that
            // lock, so complete_all() no longer uses `gone` when the memory is freed.
            unsafe { &(*this).gone }.complete_all();
        }
    }
}

// SAFETY: Only this crate can access ib_core's part, and it follows ib_core's locking rules, which
// allow any thread. `users` and `gone` may be used from any thread. `data` is `Send`.
unsafe impl<B, T, D: Send + Sync> Send for Object<B, T, D> {}

// SAFETY: A `&Object` gives access to `&D`, which is `Sync`. Only this crate can access ib_core's
// part, and it follows ib_core's locking rules. `users` and `gone` are made for concurrent use.
unsafe impl<B, T, D: Send + Sync> Sync for Object<B, T, D> {}
