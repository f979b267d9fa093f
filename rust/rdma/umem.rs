// SPDX-License-Identifier: GPL-2.0

//! User memory, pinned.
//!
//! C header: `include/rdma/ib_umem.h`

use crate::{device::Device, Driver};
use core::ptr::NonNull;
use kernel::{
    device::Device as CoreDevice,
    error::from_err_ptr,
    page::{PAGE_MASK, PAGE_SHIFT, PAGE_SIZE},
    prelude::*,
    sync::aref::ARef,
};
use net::Fragment;
use riw_bindings as bindings;

/// A range of a process's memory that is pinned, and counted against its limit of locked memory.
///
/// The process may write to it at any time, and so may every other mapping of the same pages:
/// what is read from here is never looked at twice.
///
/// # Invariants
///
/// `umem` is pinned and owned. `pages` are its pages in order, all of them.
pub struct Umem {
    umem: NonNull<bindings::ib_umem>,
    /// ib_core asks the device when the range is released.
    _dev: ARef<CoreDevice>,
    /// The pages were pinned for writing, too.
    writable: bool,
    pages: KVVec<*mut bindings::page>,
    /// Of the first byte in the first page.
    offset: usize,
    len: u64,
}

impl Umem {
    /// Pins `len` bytes from `start`, for writing if `access` has any right to write. May sleep.
    ///
    /// Fails with `ENOMEM` above the limit of locked memory, `EFAULT` where the process has no
    /// such memory, `EINVAL` for an empty range or one that wraps, or in a thread that has no memory
    /// of its own.
    pub fn pin<T: Driver>(dev: &Device<T>, start: u64, len: u64, access: u32) -> Result<Self> {
        let start: usize = start.try_into()?;
        let size: usize = len.try_into()?;
        let offset = start & !PAGE_MASK;

        if size == 0 || kernel::current!().mm().is_none() {
            return Err(EINVAL);
        }
        // Bytes from the start of the first page, then pages; the end must be an address too.
        start.checked_add(size).ok_or(EINVAL)?;
        let count = (offset.checked_add(size).ok_or(EINVAL)?).div_ceil(PAGE_SIZE);

        // SAFETY: The device is registered; the task has an mm; ib_core checks the range.
        // CAST: A set of bits.
        let umem = from_err_ptr(unsafe {
            bindings::ib_umem_get_va(dev.as_raw(), start, size, access as i32)
        })?;
        let mut this = Self {
            umem: NonNull::new(umem).ok_or(EINVAL)?,
            _dev: dev.as_dev().into(),
            // SAFETY: It was just made.
            writable: unsafe { (*umem).writable() } != 0,
            pages: KVVec::new(),
            offset,
            len,
        };

        this.pages.reserve(count, GFP_KERNEL_ACCOUNT)?;
        // SAFETY: There is room for `count` pointers; what the function returns is how many of
        // them it has written.
        let found = unsafe { bindings::ib_umem_pages(umem, this.pages.as_mut_ptr(), count) };
        if found != count {
            return Err(EINVAL);
        }
        // SAFETY: As above.
        unsafe { this.pages.inc_len(count) };
        Ok(this)
    }

    /// Bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Always false: an empty range cannot be pinned.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Copies `from` to the bytes at `at`. `EINVAL`, and nothing copied, if they are not all
    /// within; `EACCES` if they were not pinned for writing. Any context.
    pub fn write(&self, at: u64, from: Fragment<'_>) -> Result {
        if !self.writable {
            return Err(EACCES);
        }
        self.each(at, from.len(), |page, offset, done, n| {
            // SAFETY: `n` bytes from `done` are within `from`, as `each` says, and `n` from
            // `offset` within the page, which is pinned. The copying is done by C code, which
            // `from` is valid for.
            unsafe { bindings::copy_to_page(page, offset, from.as_ptr().add(done), n) }
        })
    }

    /// Fills `to` with the `len` bytes at `at`. `EINVAL`, and nothing filled, if they are not all
    /// within, or there is less room. Any context.
    pub fn read(&self, at: u64, len: usize, to: &mut net::Room<'_>) -> Result {
        let copy = |to: *mut u8| {
            self.each(at, len, |page, offset, done, n| {
                // SAFETY: `n` bytes from `done` are within the `len` that there are at `to`, as
                // `each` says, and `n` from `offset` within the page, which is pinned.
                unsafe { bindings::copy_from_page(to.add(done), page, offset, n) }
            })
        };

        // SAFETY: If it does not fail, `each` calls for pieces that are all of the `len` bytes.
        unsafe { to.put_with(len, copy) }
    }

    /// Calls `f(page, offset in it, bytes done, bytes now)` for each page of a range.
    fn each(
        &self,
        at: u64,
        len: usize,
        mut f: impl FnMut(*mut bindings::page, usize, usize, usize),
    ) -> Result {
        let end = at.checked_add(len as u64).ok_or(EINVAL)?;
        if end > self.len {
            return Err(EINVAL);
        }

        // No overflow: the sum is at most the `offset + size` that was checked when pinning.
        let mut pos = at as usize + self.offset;
        let mut done = 0;
        while done < len {
            let offset = pos & !PAGE_MASK;
            let n = (PAGE_SIZE - offset).min(len - done);
            let page = self.pages.get(pos >> PAGE_SHIFT).ok_or(EINVAL)?;

            f(*page, offset, done, n);
            done += n;
            pos += n;
        }
        Ok(())
    }
}

impl Drop for Umem {
    fn drop(&mut self) {
        // SAFETY: Owned by the value. May sleep: regions are dropped in process context.
        unsafe { bindings::ib_umem_release(self.umem.as_ptr()) };
    }
}

// SAFETY: Pinned pages may be used and released from any thread.
unsafe impl Send for Umem {}
// SAFETY: Shared access is copying, which the process that owns the memory does as well.
unsafe impl Sync for Umem {}
