// SPDX-License-Identifier: GPL-2.0

//! Driver-specific requests and responses of verbs called from user space.
//!
//! Devices of this crate set `uverbs_robust_udata`: no verb ignores data that user space sends. A
//! verb reads its request by [`Udata::request`], which refuses data that the driver's ABI does not
//! define. If a verb does not pass the [`Udata`] to the [`Driver`], this crate refuses the data.
//!
//! Verbs that destroy an object do not look at data. uverbs passes them none of their own. When it
//! undoes a creation, it passes the data of the creation, and the verb must not fail.
//!
//! C header: `include/rdma/uverbs_ioctl.h`. C source: `core/ib_core_uverbs.c`

use crate::{ucontext::Ucontext, Driver};
use core::{marker::PhantomData, ops::Deref};
use kernel::{
    error::to_result,
    prelude::*, //
};
use riw_bindings as bindings;

/// The driver-specific request and response of a verb called from user space (`struct ib_udata`,
/// `include/rdma/ib_verbs.h`).
///
/// # Invariants
///
/// `raw` is valid for `'a`.
pub struct Udata<'a> {
    raw: *mut bindings::ib_udata,
    _scope: PhantomData<&'a ()>,
}

/// A [`Udata`] with the user context of its process (`struct uverbs_attr_bundle`,
/// `include/rdma/uverbs_ioctl.h`): of every verb but the one that creates the context.
///
/// # Invariants
///
/// The data are the `driver_udata` of a `struct uverbs_attr_bundle` that is alive for `'a`. The
/// context of the bundle is open and belongs to a device of driver `T`.
pub struct ContextUdata<'a, T: Driver> {
    udata: Udata<'a>,
    _driver: PhantomData<T>,
}

impl<'a> Udata<'a> {
    /// Wraps ib_core's pointer. Any context. Returns `None` for a null pointer: the verb is called
    /// by a kernel user.
    ///
    /// # Safety
    ///
    /// `raw` must be null or valid for `'a`: the `driver_udata` of a `struct uverbs_attr_bundle`.
    pub(crate) unsafe fn from_raw(raw: *mut bindings::ib_udata) -> Option<Self> {
        // INVARIANT: `raw` is not null, so by the caller's promise it is valid for `'a`.
        (!raw.is_null()).then_some(Self {
            raw,
            _scope: PhantomData,
        })
    }

    /// Handles a verb without a driver-specific request and response: checks that user space sent
    /// none, and clears the response. `raw` is null for a kernel user. Process context; may sleep.
    ///
    /// Fails with `EOPNOTSUPP` if the request has nonzero bytes, `EFAULT` if the memory of the
    /// process cannot be accessed.
    ///
    /// # Safety
    ///
    /// If not null, `raw` must be valid during the call.
    pub(crate) unsafe fn check_empty(raw: *mut bindings::ib_udata) -> Result {
        // SAFETY: By the caller's promise `raw` is null or valid for this call, and `udata` does
        // not outlive it.
        let Some(udata) = (unsafe { Self::from_raw(raw) }) else {
            return Ok(());
        };

        udata.request::<()>()?;
        udata.respond(&())
    }

    /// Reads the driver-specific request (`_ib_copy_validate_udata_in()`, `core/ib_core_uverbs.c`);
    /// `()` if the ABI has none. Process context; may sleep.
    ///
    /// Fails with `EINVAL` if user space sent less than an `R`, `EOPNOTSUPP` if it sent more and
    /// the rest is not zero, `EFAULT` if its memory cannot be read.
    pub fn request<R: FromBytes + IntoBytes>(&self) -> Result<R> {
        let mut request = R::new_zeroed();

        // An exiting process has no memory any more when its objects are destroyed, so do not read
        // an empty request.
        // SAFETY: By the type invariant `raw` is valid for `'a`.
        if size_of::<R>() == 0 && unsafe { (*self.raw).inlen } == 0 {
            return Ok(request);
        }
        // SAFETY: By the type invariant `raw` is valid. The function writes at most the given size,
        // which is the size of `request`, and any bytes are a valid `R` since it is `FromBytes`.
        to_result(unsafe {
            bindings::_ib_copy_validate_udata_in(
                self.raw,
                (&raw mut request).cast(),
                size_of::<R>(),
                size_of::<R>(),
            )
        })?;
        Ok(request)
    }

    /// Writes the driver-specific response (`_ib_respond_udata()`, `core/ib_core_uverbs.c`) and
    /// clears the rest of the process's buffer. Process context; may sleep.
    ///
    /// Fails with `EINVAL` if the process's buffer is shorter than `R`, `EFAULT` if it cannot be
    /// written.
    pub fn respond<R: IntoBytes + zerocopy::Immutable>(&self, response: &R) -> Result {
        // SAFETY: By the type invariant `raw` is valid for `'a`.
        let room = unsafe { (*self.raw).outlen };
        if room < size_of::<R>() {
            return Err(EINVAL);
        }
        // An exiting process has no memory any more: do not touch an empty buffer.
        if room == 0 {
            return Ok(());
        }
        let bytes = response.as_bytes();

        // SAFETY: By the type invariant `raw` is valid. The function only reads `bytes`, whose
        // length it gets.
        to_result(unsafe {
            bindings::_ib_respond_udata(self.raw, bytes.as_ptr().cast(), bytes.len())
        })
    }
}

impl<'a, T: Driver> ContextUdata<'a, T> {
    /// Wraps ib_core's pointer. Any context. Returns `None` for a null pointer.
    ///
    /// # Safety
    ///
    /// If not null, `raw` must satisfy the type invariant.
    pub(crate) unsafe fn from_raw(raw: *mut bindings::ib_udata) -> Option<Self> {
        // INVARIANT: If `raw` is not null, the caller promises the type invariant.
        // SAFETY: By the same promise `raw` is null or valid for `'a`.
        unsafe { Udata::from_raw(raw) }.map(|udata| Self {
            udata,
            _driver: PhantomData,
        })
    }

    /// Refuses attributes that uverbs defines for a method and leaves to drivers
    /// (`uverbs_attr_is_valid()`, `include/rdma/uverbs_ioctl.h`). Fails with `EOPNOTSUPP` if user
    /// space has passed one of `attrs`.
    pub(crate) fn refuse(&self, attrs: &[u32]) -> Result {
        for &attr in attrs {
            // SAFETY: By the type invariant `raw` is the `driver_udata` of a bundle that is alive,
            // which is where the function looks.
            if unsafe { bindings::uverbs_attr_given(self.udata.raw, attr) } {
                return Err(EOPNOTSUPP);
            }
        }
        Ok(())
    }

    /// Returns the user context of the caller. Any context.
    pub fn ucontext(&self) -> &'a Ucontext<T> {
        // SAFETY: By the type invariant `raw` is the `driver_udata` of a live bundle, so
        // `container_of!` gives that bundle. Its context is open and of driver `T`. ib_core keeps
        // it open during the call, which `'a` does not outlive.
        unsafe {
            let bundle = kernel::container_of!(
                self.udata.raw,
                bindings::uverbs_attr_bundle,
                __bindgen_anon_1.hdr.driver_udata
            );
            Ucontext::<T>::from_base((*bundle).__bindgen_anon_1.hdr.context)
        }
    }
}

impl<'a, T: Driver> Deref for ContextUdata<'a, T> {
    type Target = Udata<'a>;

    fn deref(&self) -> &Udata<'a> {
        &self.udata
    }
}
