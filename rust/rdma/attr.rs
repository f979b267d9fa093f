// SPDX-License-Identifier: GPL-2.0

//! Settings of a device in sysfs: numbers, choices among words, and texts.
//!
//! C headers: `include/linux/device.h`, `include/linux/sysfs.h`

use crate::{device::Device, Driver};
use core::marker::PhantomData;
use kernel::{
    error::{from_result, to_result},
    ffi::c_char,
    prelude::*,
    str::{as_char_ptr_in_const_context, CString},
};
use riw_bindings as bindings;

/// A writable file below the device's directory in sysfs (`struct device_attribute`,
/// `include/linux/device.h`).
///
/// # Invariants
///
/// `raw` is at offset 0 of this struct, and `attr` at offset 0 of `raw`.
#[repr(C)]
pub struct Attribute<T: Driver> {
    raw: bindings::device_attribute,
    value: Value<T>,
}

/// The value of an [`Attribute`].
enum Value<T: Driver> {
    /// A `u32` in decimal.
    Number {
        get: fn(&Device<T>) -> u32,
        set: fn(&Device<T>, u32) -> Result,
    },
    /// One of some words, by its number.
    Word {
        words: &'static [&'static CStr],
        get: fn(&Device<T>) -> usize,
        set: fn(&Device<T>, usize) -> Result,
    },
    /// A line of text.
    Text {
        get: fn(&Device<T>) -> Result<CString>,
        set: fn(&Device<T>, &[u8]) -> Result,
    },
}

// SAFETY: An `Attribute` is never written to after `new`. `raw` points to a static name, and the
// other fields are static data and function pointers.
unsafe impl<T: Driver> Sync for Attribute<T> {}

impl<T: Driver> Attribute<T> {
    /// Defines the file `name` of a number, with mode 0644. A read returns `get`, a write calls
    /// `set`.
    ///
    /// Both functions run in process context with the device registered, and may sleep. A writer
    /// gets the error of `set`, or `EINVAL` or `ERANGE` if it did not write a `u32`. Reads use
    /// `sysfs_emit()` (`fs/sysfs/file.c`), writes `kstrtouint()` (`lib/kstrtox.c`).
    pub const fn number(
        name: &'static CStr,
        get: fn(&Device<T>) -> u32,
        set: fn(&Device<T>, u32) -> Result,
    ) -> Self {
        Self::new(name, Value::Number { get, set })
    }

    /// Defines the file `name` of a word, with mode 0644. A read returns the word of number `get`,
    /// a write calls `set` with the number of the word written.
    ///
    /// Both functions run in process context with the device registered, and may sleep. A writer
    /// gets the error of `set`, or `EINVAL` for another word.
    pub const fn word(
        name: &'static CStr,
        words: &'static [&'static CStr],
        get: fn(&Device<T>) -> usize,
        set: fn(&Device<T>, usize) -> Result,
    ) -> Self {
        Self::new(name, Value::Word { words, get, set })
    }

    /// Defines the file `name` of a text, with mode 0644. A read returns `get`, a write calls `set`
    /// with the bytes written, without a newline at the end. `set` has to check them: at most a
    /// page, of any bytes.
    ///
    /// Both functions run in process context with the device registered, and may sleep. A reader or
    /// writer gets their error.
    pub const fn text(
        name: &'static CStr,
        get: fn(&Device<T>) -> Result<CString>,
        set: fn(&Device<T>, &[u8]) -> Result,
    ) -> Self {
        Self::new(name, Value::Text { get, set })
    }

    const fn new(name: &'static CStr, value: Value<T>) -> Self {
        const {
            assert!(core::mem::offset_of!(Self, raw) == 0);
            assert!(core::mem::offset_of!(bindings::device_attribute, attr) == 0);
        }
        // SAFETY: All-zero bytes are a valid `device_attribute`: null pointers, no mode, no
        // callbacks.
        let mut raw: bindings::device_attribute = unsafe { core::mem::zeroed() };

        raw.attr.name = as_char_ptr_in_const_context(name);
        raw.attr.mode = 0o644;
        raw.__bindgen_anon_1.show = Some(Self::show);
        raw.__bindgen_anon_2.store = Some(Self::store);
        // INVARIANT: The assertions above check both offsets.
        Self { raw, value }
    }

    /// # Safety
    ///
    /// Only sysfs may call it, as `show` of an attribute of this type, for a device of driver `T`.
    unsafe extern "C" fn show(
        dev: *mut bindings::device,
        attr: *mut bindings::device_attribute,
        buf: *mut c_char,
    ) -> isize {
        // SAFETY: sysfs passes the `device_attribute` of the file. The files with this callback are
        // made by `new` only, and by the type invariant that is the start of an `Attribute<T>`,
        // which is static.
        let attr = unsafe { &*attr.cast::<Self>() };
        // SAFETY: The file exists only while the device is registered, and removal of the file
        // waits for running callbacks. So `dev` belongs to a `Device<T>` whose data is initialized.
        let dev = unsafe { Device::<T>::from_raw(bindings::rdma_device_to_ibdev(dev)) };

        let written = match attr.value {
            // SAFETY: sysfs passes a buffer of one page, as sysfs_emit() requires. The format takes
            // one `unsigned int`, which is the argument.
            Value::Number { get, .. } => unsafe {
                bindings::sysfs_emit(buf, c"%u\n".as_char_ptr(), get(dev))
            },
            Value::Word { words, get, .. } => {
                let word = words.get(get(dev)).copied().unwrap_or(c"");

                // SAFETY: sysfs passes a buffer of one page, as sysfs_emit() requires. The format
                // takes one string, which is the argument.
                unsafe { bindings::sysfs_emit(buf, c"%s\n".as_char_ptr(), word.as_char_ptr()) }
            }
            Value::Text { get, .. } => match get(dev) {
                // SAFETY: sysfs passes a buffer of one page, as sysfs_emit() requires. The format
                // takes one string, which is the argument.
                Ok(text) => unsafe {
                    bindings::sysfs_emit(buf, c"%s\n".as_char_ptr(), text.as_char_ptr())
                },
                Err(e) => e.to_errno(),
            },
        };
        // CAST: At most one page.
        written as isize
    }

    /// # Safety
    ///
    /// Only sysfs may call it, as `store` of an attribute of this type, for a device of driver `T`.
    unsafe extern "C" fn store(
        dev: *mut bindings::device,
        attr: *mut bindings::device_attribute,
        buf: *const c_char,
        count: usize,
    ) -> isize {
        from_result(|| {
            // SAFETY: sysfs passes the `device_attribute` of the file. By the type invariant it is
            // the start of an `Attribute<T>`, which is static: `new` alone makes files with this
            // callback.
            let attr = unsafe { &*attr.cast::<Self>() };
            // SAFETY: The file exists only while the device is registered, and its removal waits
            // for running callbacks, so the data of the `Device<T>` is initialized.
            let dev = unsafe { Device::<T>::from_raw(bindings::rdma_device_to_ibdev(dev)) };

            match attr.value {
                Value::Number { set, .. } => {
                    let mut value = 0;

                    // SAFETY: sysfs adds a NUL to the written bytes, so `buf` is a string. `value`
                    // is a local variable.
                    to_result(unsafe { bindings::kstrtouint(buf, 0, &mut value) })?;
                    set(dev, value)?;
                }
                Value::Word { words, set, .. } => {
                    let found = words.iter().position(|word| {
                        // SAFETY: sysfs adds a NUL to the written bytes, so both are strings.
                        unsafe { bindings::sysfs_streq(buf, word.as_char_ptr()) }
                    });

                    set(dev, found.ok_or(EINVAL)?)?;
                }
                Value::Text { set, .. } => {
                    // SAFETY: sysfs passes `count` bytes that were written, and keeps them as they
                    // are until this returns.
                    let text = unsafe { core::slice::from_raw_parts(buf.cast::<u8>(), count) };

                    set(dev, text.strip_suffix(b"\n").unwrap_or(text))?;
                }
            }
            isize::try_from(count).map_err(|_| EINVAL)
        })
    }
}

/// A directory of [`Attribute`]s (`struct attribute_group`, `include/linux/sysfs.h`).
pub struct Attributes<T: Driver> {
    raw: bindings::attribute_group,
    _of: PhantomData<&'static Attribute<T>>,
}

// SAFETY: An `Attributes` is never written to after `new`, and points only to static data that is
// `Sync`.
unsafe impl<T: Driver> Sync for Attributes<T> {}

impl<T: Driver> Attributes<T> {
    /// Defines the directory `name` with the files of `list`. Any context.
    ///
    /// The last element of `list` must be `None`, and no other. `new` panics otherwise, which in a
    /// static is a build error.
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

        // SAFETY: All-zero bytes are a valid `attribute_group`: null pointers, no attributes.
        let mut raw: bindings::attribute_group = unsafe { core::mem::zeroed() };

        raw.name = as_char_ptr_in_const_context(name);
        // An `Attribute` begins with its `struct attribute`, and `None` is null. So `list` has the
        // layout of a null-terminated array of pointers to `struct attribute`. sysfs does not write
        // to it.
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
