// SPDX-License-Identifier: GPL-2.0

//! What a user-space driver sends along with a verb, and gets back.
//!
//! ib_core promises user space of a device of this crate (`uverbs_robust_udata`) that no verb
//! ignores what it sends: each reads a request by [`Exchange::request`], which refuses what the
//! driver's ABI has no meaning for. Verbs of which a [`Driver`] does not see the exchange check it
//! here.

use crate::{ucontext::Ucontext, Driver};
use core::{marker::PhantomData, ops::Deref};
use kernel::{
    error::to_result,
    prelude::*, //
};
use riw_bindings as bindings;

/// The driver's own request and response of a verb called from user space (`struct ib_udata`).
///
/// # Invariants
///
/// `raw` is valid for `'a`.
pub struct Exchange<'a> {
    raw: *mut bindings::ib_udata,
    _scope: PhantomData<&'a ()>,
}

/// An [`Exchange`] in a user context.
///
/// # Invariants
///
/// It is the `driver_udata` of a `struct uverbs_attr_bundle`, alive for `'a`, whose context is one of
/// a device of driver `T` and open.
pub struct Udata<'a, T: Driver> {
    exchange: Exchange<'a>,
    _driver: PhantomData<T>,
}

impl<'a> Exchange<'a> {
    /// Wraps ib_core's pointer; `None` for a kernel user, who has none.
    ///
    /// # Safety
    ///
    /// If not null, `raw` must be valid for `'a`.
    pub(crate) unsafe fn from_raw(raw: *mut bindings::ib_udata) -> Option<Self> {
        // INVARIANT: By the caller's promise.
        (!raw.is_null()).then_some(Self {
            raw,
            _scope: PhantomData,
        })
    }

    /// For a verb that has neither a request nor a response of the driver's: checks that user space
    /// sent none, and clears the room for one. `raw` is null for a kernel user. May sleep.
    ///
    /// Fails with `EOPNOTSUPP` when user space sent something that is not zero, with `EFAULT` when
    /// its memory cannot be accessed.
    ///
    /// # Safety
    ///
    /// As for [`Self::from_raw`].
    pub(crate) unsafe fn check_empty(raw: *mut bindings::ib_udata) -> Result {
        // SAFETY: By the caller's promise; the result does not outlive the call.
        let Some(exchange) = (unsafe { Self::from_raw(raw) }) else {
            return Ok(());
        };

        exchange.request::<()>()?;
        exchange.respond(&())
    }

    /// Reads the driver's request; `()` where its ABI has none. May sleep.
    ///
    /// Fails with `EINVAL` when user space sent less than an `R`, `EOPNOTSUPP` when it sent more
    /// and that is not zero, `EFAULT` when it cannot be read.
    pub fn request<R: FromBytes + IntoBytes>(&self) -> Result<R> {
        let mut request = R::new_zeroed();

        // A process that exits has no memory when its objects are destroyed.
        // SAFETY: `raw` is valid for the type's lifetime.
        if size_of::<R>() == 0 && unsafe { (*self.raw).inlen } == 0 {
            return Ok(request);
        }
        // SAFETY: `raw` is valid, and `request` has room for the bytes asked for.
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

    /// Writes the driver's response. May sleep.
    ///
    /// Fails with `EINVAL` when user space has no room for a whole `R` (nothing is cut off), with
    /// `EFAULT` when it cannot be written.
    pub fn respond<R: IntoBytes + zerocopy::Immutable>(&self, response: &R) -> Result {
        // SAFETY: `raw` is valid for the type's lifetime.
        let room = unsafe { (*self.raw).outlen };
        if room < size_of::<R>() {
            return Err(EINVAL);
        }
        // As in `request`.
        if room == 0 {
            return Ok(());
        }
        let bytes = response.as_bytes();

        // SAFETY: `raw` is valid, and `bytes` are read only.
        to_result(unsafe {
            bindings::_ib_respond_udata(self.raw, bytes.as_ptr().cast(), bytes.len())
        })
    }
}

impl<'a, T: Driver> Udata<'a, T> {
    /// As [`Exchange::from_raw`].
    ///
    /// # Safety
    ///
    /// If not null, `raw` must be as the type's invariant says.
    pub(crate) unsafe fn from_raw(raw: *mut bindings::ib_udata) -> Option<Self> {
        // INVARIANT: By the caller's promise.
        // SAFETY: As above.
        unsafe { Exchange::from_raw(raw) }.map(|exchange| Self {
            exchange,
            _driver: PhantomData,
        })
    }

    /// Fails with `EOPNOTSUPP` if user space has given one of `attrs`, attributes that uverbs has
    /// for the method and leaves to drivers.
    pub(crate) fn refuse(&self, attrs: &[u32]) -> Result {
        for &attr in attrs {
            // SAFETY: By the type's invariant `raw` lies in a bundle that is alive.
            if unsafe { bindings::uverbs_attr_given(self.exchange.raw, attr) } {
                return Err(EOPNOTSUPP);
            }
        }
        Ok(())
    }

    /// The user context of the caller.
    pub fn ucontext(&self) -> &'a Ucontext<T> {
        // SAFETY: By the type's invariant `raw` lies in a bundle, whose context is one of driver `T`
        // and open; it outlives the call.
        unsafe {
            let bundle = kernel::container_of!(
                self.exchange.raw,
                bindings::uverbs_attr_bundle,
                __bindgen_anon_1.hdr.driver_udata
            );
            Ucontext::<T>::from_base((*bundle).__bindgen_anon_1.hdr.context)
        }
    }
}

impl<'a, T: Driver> Deref for Udata<'a, T> {
    type Target = Exchange<'a>;

    fn deref(&self) -> &Exchange<'a> {
        &self.exchange
    }
}
