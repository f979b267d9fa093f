// SPDX-License-Identifier: GPL-2.0

//! Settings of a device that can be read and changed in sysfs, as numbers.
//!
//! C headers: `include/linux/device.h`, `include/linux/sysfs.h`

use crate::{device::Device, Driver};
use core::marker::PhantomData;
use kernel::{
    error::{from_result, to_result},
    ffi::c_char,
    prelude::*,
};
use riw_bindings as bindings;

/// A file below the device's directory (`struct device_attribute`), which its owner may write.
///
/// # Invariants
///
/// `raw` is at offset 0, and its own `struct attribute` at the offset 0 of that.
#[repr(C)]
pub struct Attribute<T: Driver> {
    raw: bindings::device_attribute,
    get: fn(&Device<T>) -> u32,
    set: fn(&Device<T>, u32) -> Result,
}

// SAFETY: Nothing in it changes; the name that it points to is static.
unsafe impl<T: Driver> Sync for Attribute<T> {}

impl<T: Driver> Attribute<T> {
    /// A file `name` with what `get` returns, which takes what `set` takes. Both may sleep.
    pub const fn new(
        name: &'static CStr,
        get: fn(&Device<T>) -> u32,
        set: fn(&Device<T>, u32) -> Result,
    ) -> Self {
        const {
            assert!(core::mem::offset_of!(Self, raw) == 0);
            assert!(core::mem::offset_of!(bindings::device_attribute, attr) == 0);
        }
        // SAFETY: Zeros are valid: no name, no mode, no callbacks.
        let mut raw: bindings::device_attribute = unsafe { core::mem::zeroed() };

        raw.attr.name = name.as_ptr().cast();
        raw.attr.mode = 0o644;
        raw.__bindgen_anon_1.show = Some(Self::show);
        raw.__bindgen_anon_2.store = Some(Self::store);
        // INVARIANT: As asserted above.
        Self { raw, get, set }
    }

    unsafe extern "C" fn show(
        dev: *mut bindings::device,
        attr: *mut bindings::device_attribute,
        buf: *mut c_char,
    ) -> isize {
        // SAFETY: sysfs passes what it was given: the first field of an `Attribute`.
        let attr = unsafe { &*attr.cast::<Self>() };
        // SAFETY: The files are there only while the device is registered, and their removal waits
        // for the calls under way.
        let dev = unsafe { Device::<T>::from_raw(bindings::rdma_device_to_ibdev(dev)) };

        // SAFETY: `buf` is the page of the call; the format takes one number.
        let written =
            unsafe { bindings::sysfs_emit(buf, c"%u\n".as_ptr().cast(), (attr.get)(dev)) };
        // CAST: At most a page.
        written as isize
    }

    unsafe extern "C" fn store(
        dev: *mut bindings::device,
        attr: *mut bindings::device_attribute,
        buf: *const c_char,
        count: usize,
    ) -> isize {
        from_result(|| {
            // SAFETY: As above.
            let attr = unsafe { &*attr.cast::<Self>() };
            // SAFETY: As above.
            let dev = unsafe { Device::<T>::from_raw(bindings::rdma_device_to_ibdev(dev)) };
            let mut value = 0;

            // SAFETY: sysfs terminates what was written; the result is ours.
            to_result(unsafe { bindings::kstrtouint(buf, 0, &mut value) })?;
            (attr.set)(dev, value)?;
            isize::try_from(count).map_err(|_| EINVAL)
        })
    }
}

/// A directory of attributes (`struct attribute_group`).
pub struct Attributes<T: Driver> {
    raw: bindings::attribute_group,
    _of: PhantomData<&'static Attribute<T>>,
}

// SAFETY: As with `Attribute`.
unsafe impl<T: Driver> Sync for Attributes<T> {}

impl<T: Driver> Attributes<T> {
    /// The directory `name` with what is in `list`, the last of which is `None`, and no other.
    pub const fn new<const N: usize>(
        name: &'static CStr,
        list: &'static [Option<&'static Attribute<T>>; N],
    ) -> Self {
        let mut at = 0;
        while at < N {
            assert!(list[at].is_none() == (at + 1 == N));
            at += 1;
        }
        assert!(N > 0);

        // SAFETY: Zeros are valid: no name, no attributes.
        let mut raw: bindings::attribute_group = unsafe { core::mem::zeroed() };

        raw.name = name.as_ptr().cast();
        // By the invariant of `Attribute` this is an array of pointers to `struct attribute`, with
        // null, which is `None`, at its end. Nobody writes to it.
        raw.__bindgen_anon_2.attrs = list.as_ptr().cast_mut().cast();
        Self {
            raw,
            _of: PhantomData,
        }
    }

    pub(crate) const fn as_raw(&'static self) -> *const bindings::attribute_group {
        &self.raw
    }
}
