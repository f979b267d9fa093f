// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

//! Objects whose first part is a structure of libibverbs.

use super::errno::{Result, ENOMEM};
use crate::ffi::driver::{verbs_cq, verbs_device, verbs_mr, verbs_qp};
use crate::ffi::verbs::{ibv_mw, ibv_pd, ibv_srq};
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::ptr;
use std::alloc::{alloc_zeroed, Layout};

/// A structure of libibverbs that may begin as zeros.
///
/// # Safety
///
/// All zeros are a valid value.
pub(crate) unsafe trait Base {}

// SAFETY: It consists of integers, pointers, options of function pointers, and mutexes and
// condition variables of POSIX, which are integers.
unsafe impl Base for verbs_device {}
// SAFETY: It consists of pointers and integers.
unsafe impl Base for ibv_pd {}
// SAFETY: It consists of pointers and integers.
unsafe impl Base for verbs_mr {}
// SAFETY: It consists of pointers and integers.
unsafe impl Base for ibv_mw {}
// SAFETY: It consists of integers, pointers, options of function pointers, and a mutex and a
// condition variable of POSIX, which are integers.
unsafe impl Base for verbs_cq {}
// SAFETY: It consists of integers, pointers, and a mutex and a condition variable of POSIX, which
// are integers.
unsafe impl Base for ibv_srq {}
// SAFETY: It consists of integers, pointers, options of function pointers, and a mutex and a
// condition variable of POSIX, which are integers.
unsafe impl Base for verbs_qp {}

/// An object: its base, which libibverbs knows, and this library's state behind it. libibverbs and
/// programs modify `base` at any time.
#[repr(C)]
struct Object<B, S> {
    base: UnsafeCell<B>,
    state: S,
}

/// An object without its state yet. Dropping it frees its memory.
pub(crate) struct Unfinished<B, S>(Box<Object<B, MaybeUninit<S>>>);

impl<B: Base, S> Unfinished<B, S> {
    /// Allocates one whose base is all zero. Errors: `ENOMEM`.
    pub(crate) fn new() -> Result<Self> {
        let layout = Layout::new::<Object<B, MaybeUninit<S>>>();
        const { assert!(size_of::<B>() > 0) };
        // SAFETY: The size is not 0, because the size of the base is not.
        let memory = unsafe { alloc_zeroed(layout) };

        if memory.is_null() {
            return Err(ENOMEM);
        }
        // SAFETY: The global allocator has allocated it with the layout of that type. Zeros are a
        // valid `B` by `Base`, and the state may be uninitialized.
        Ok(Self(unsafe { Box::from_raw(memory.cast()) }))
    }

    /// Returns the base, which stays where it is.
    pub(crate) fn base(&mut self) -> *mut B {
        self.0.base.get()
    }

    /// Completes the object. Returns its base; [`free`] frees it.
    pub(crate) fn finish(self, state: S) -> *mut B {
        let mut object = self.0;

        object.state.write(state);
        // The state and `MaybeUninit` of it have the same layout, so the whole has.
        Box::into_raw(object).cast()
    }
}

/// Returns the state of an object.
///
/// # Safety
///
/// `base` comes from [`Unfinished::finish`] with the same types, and is not freed during `'a`.
pub(crate) unsafe fn state<'a, B, S>(base: *mut B) -> &'a S {
    let object = base.cast::<Object<B, S>>();
    // SAFETY: By the caller's promise it points to such an object.
    let state = unsafe { ptr::addr_of!((*object).state) };
    // SAFETY: The object lives for `'a`, its state was written by `finish()`, and there are only
    // shared references to it until `free()`.
    unsafe { &*state }
}

/// Frees an object, and drops its state.
///
/// # Safety
///
/// `base` comes from [`Unfinished::finish`] with the same types. Nothing uses the object any more.
pub(crate) unsafe fn free<B, S>(base: *mut B) {
    // SAFETY: `finish()` has made it of such a box, and the caller passes the ownership back.
    drop(unsafe { Box::from_raw(base.cast::<Object<B, S>>()) });
}

#[cfg(test)]
mod tests {
    use super::{free, state, Unfinished};
    use crate::ffi::verbs::ibv_pd;
    use std::rc::Rc;

    #[test]
    fn an_object_keeps_its_base_and_its_state_until_it_is_freed() {
        let alive = Rc::new(());
        let mut object = Unfinished::<ibv_pd, (u64, Rc<()>)>::new().unwrap();

        // SAFETY: Nobody else has the base.
        unsafe { (*object.base()).handle = 7 };
        let base = object.finish((8, alive.clone()));
        // SAFETY: The base is valid.
        assert_eq!(unsafe { (*base).handle }, 7);
        // SAFETY: The object is not freed yet, so the base is valid.
        assert!(unsafe { (*base).context }.is_null());
        // SAFETY: The object was made of these types.
        let own = unsafe { state::<ibv_pd, (u64, Rc<()>)>(base) };
        // libibverbs writes to the base meanwhile.
        // SAFETY: The base is valid.
        unsafe { (*base).handle = 9 };
        assert_eq!(own.0, 8);
        assert_eq!(Rc::strong_count(&alive), 2);
        // SAFETY: Nothing uses it any more.
        unsafe { free::<ibv_pd, (u64, Rc<()>)>(base) };
        assert_eq!(Rc::strong_count(&alive), 1);
    }

    #[test]
    fn an_object_without_state_is_freed() {
        let mut object = Unfinished::<ibv_pd, String>::new().unwrap();

        // SAFETY: Nobody else has the base.
        unsafe { (*object.base()).handle = 7 };
    }
}
