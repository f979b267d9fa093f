// SPDX-License-Identifier: GPL-2.0

//! Pinned user memory.
//!
//! C header: `include/rdma/ib_umem.h`. C source: `core/umem.c`

use crate::{
    blocks::each_piece,
    device::Device,
    update::{is_word, try_update},
    Driver,
};
use core::ptr::NonNull;
use kernel::{
    device::Device as CoreDevice,
    error::from_err_ptr,
    page::{PAGE_MASK, PAGE_SHIFT, PAGE_SIZE},
    prelude::*,
    sync::aref::ARef,
};
use kernel_ext::octets::{Fragment, Room};
use riw_bindings as bindings;

/// A pinned range of a process's memory (`struct ib_umem`, `include/rdma/ib_umem.h`). It counts
/// against the process's `RLIMIT_MEMLOCK`.
///
/// The process, and every other mapping of the pages, may write to it at any time: never read the
/// same byte twice.
///
/// Dropping it unpins the pages: process context; may sleep. The data of a region is dropped there.
///
/// # Invariants
///
/// `umem` is pinned and owned. `pages` holds all its pages, in order.
pub struct Umem {
    umem: NonNull<bindings::ib_umem>,
    /// ib_umem_release() uses the device.
    _dev: ARef<CoreDevice>,
    /// Whether the pages are pinned for writing, too.
    writable: bool,
    pages: KVVec<*mut bindings::page>,
    /// Offset of the first byte in the first page, in bytes.
    offset: usize,
    len: u64,
}

impl Umem {
    /// The maximum length in bytes, wherever the range starts in its first page: 1 TiB, less two
    /// pages, with pages of 4 KiB. The list of pages must not exceed `INT_MAX` bytes: kvmalloc()
    /// refuses more, with a warning (`mm/slub.c`).
    pub const MAX_LEN: u64 =
        (i32::MAX as u64 / size_of::<*mut bindings::page>() as u64 - 1) * PAGE_SIZE as u64;

    /// Pins `len` bytes at address `start` of the calling process (`ib_umem_get_va()`,
    /// `core/umem.c`), for writing if `access` (`enum ib_access_flags`) includes a right to write.
    /// Process context; may sleep.
    ///
    /// Fails with `EINVAL` for an empty range, one that wraps, or a thread without an address
    /// space; `ENOMEM` above [`Self::MAX_LEN`] or the limit of locked memory, or without memory;
    /// `EPERM` if that limit is 0; `EFAULT` where the process has no such memory; `EOPNOTSUPP` for
    /// on-demand paging.
    pub fn pin<T: Driver>(dev: &Device<T>, start: u64, len: u64, access: u32) -> Result<Self> {
        let start: usize = start.try_into()?;
        let size: usize = len.try_into()?;
        let offset = start & !PAGE_MASK;

        if size == 0 || kernel::current!().mm().is_none() {
            return Err(EINVAL);
        }
        // `count` is the number of pages from the start of the first page. The end must be an
        // address, too.
        start.checked_add(size).ok_or(EINVAL)?;
        let count = (offset.checked_add(size).ok_or(EINVAL)?).div_ceil(PAGE_SIZE);
        if len > Self::MAX_LEN {
            return Err(ENOMEM);
        }

        // SAFETY: The device is registered, since `dev` is alive. The task has an mm, which was
        // checked above. The function checks the range itself.
        // CAST: A bit mask.
        let umem = from_err_ptr(unsafe {
            bindings::ib_umem_get_va(dev.as_raw(), start, size, access as i32)
        })?;
        let mut this = Self {
            umem: NonNull::new(umem).ok_or(EINVAL)?,
            _dev: dev.as_dev().into(),
            // SAFETY: ib_umem_get_va() returned `umem` without an error, so it is valid.
            writable: unsafe { (*umem).writable() } != 0,
            pages: KVVec::new(),
            offset,
            len,
        };

        let mut pages = KVVec::with_capacity(count, GFP_KERNEL_ACCOUNT)?;
        // SAFETY: `umem` is valid, and there is room for `count` pointers, which the function does
        // not exceed.
        let found = unsafe { bindings::ib_umem_pages(umem, pages.as_mut_ptr(), count) };
        if found != count {
            return Err(EINVAL);
        }
        let (first, _, capacity) = pages.into_raw_parts();
        // SAFETY: These are the parts of a vector. The function returned `count`, so it wrote that
        // many pointers, for which there is room.
        this.pages = unsafe { KVVec::from_raw_parts(first, count, capacity) };
        Ok(this)
    }

    /// Pins the same range once more, with other rights, as [`Self::pin`] does. Fails also with
    /// `EACCES` for a process that has not pinned it.
    pub fn pin_again<T: Driver>(&self, dev: &Device<T>, access: u32) -> Result<Self> {
        let task = kernel::current!();
        let mm = task.mm().ok_or(EINVAL)?;
        // SAFETY: By the type invariant `umem` is valid.
        let (owner, start) = unsafe {
            (
                (*self.umem.as_ptr()).owning_mm,
                (*self.umem.as_ptr()).address,
            )
        };

        match core::ptr::eq(mm.as_raw(), owner.cast()) {
            // CAST: An address.
            true => Self::pin(dev, start as u64, self.len, access),
            false => Err(EACCES),
        }
    }

    /// Whether the range is pinned as `access` (`enum ib_access_flags`) needs it. Any context.
    pub fn suits(&self, access: u32) -> bool {
        // SAFETY: The function has no preconditions.
        self.writable || !unsafe { bindings::ib_access_writable(access as i32) }
    }

    /// Returns the length in bytes. Any context.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Always false: an empty range cannot be pinned. Any context.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the number of pinned pages. Any context.
    pub fn pages(&self) -> usize {
        self.pages.len()
    }

    /// Copies `from` to the range, `at` bytes from its start (`memcpy_to_page()`,
    /// `include/linux/highmem.h`). Any context.
    ///
    /// Fails, with nothing copied, with `EINVAL` if `from` does not fit there, `EACCES` if the
    /// range is not pinned for writing.
    pub fn write(&self, at: u64, from: Fragment<'_>) -> Result {
        if !self.writable {
            return Err(EACCES);
        }
        self.each(at, from.len(), |page, offset, done, n| {
            // SAFETY: `each` passes pieces that lie within `from.len()` bytes of `from` and within
            // one page, which stays pinned as long as `self`. C code copies, which is how a
            // `Fragment` may be accessed.
            unsafe { bindings::copy_to_page(page, offset, from.as_ptr().add(done), n) }
        })
    }

    /// Copies `len` bytes to `to`, from `at` bytes after the start of the range
    /// (`memcpy_from_page()`, `include/linux/highmem.h`). Any context.
    ///
    /// Fails with `EINVAL`, with nothing copied, if the bytes are not all within the range or do
    /// not fit into `to`.
    pub fn read(&self, at: u64, len: usize, to: &mut Room<'_>) -> Result {
        let copy = |to: *mut u8| {
            self.each(at, len, |page, offset, done, n| {
                // SAFETY: `put_with` calls this with room for `len` bytes. `each` passes pieces
                // that lie within these and within one page, which stays pinned as long as `self`.
                unsafe { bindings::copy_from_page(to.add(done), page, offset, n) }
            })
        };

        // SAFETY: If `each` succeeds, its pieces have covered all of the `len` bytes, so `copy` has
        // initialized them.
        unsafe { to.put_with(len, copy) }
    }

    /// Whether the byte `at` bytes from the start of the range is at a multiple of 8 in memory: as
    /// an address of the process, which has the same offset in its page. Any context.
    pub fn is_word(&self, at: u64) -> bool {
        is_word(at, self.offset)
    }

    /// Replaces the 8 bytes that are `at` bytes from the start of the range by the result of `f`,
    /// as one atomic operation of the CPU with full ordering (`cmpxchg64()`,
    /// `include/linux/atomic.h`). Any context; `f` must not sleep. It excludes all other atomic
    /// operations on these bytes: of the process, of other regions, and of other devices.
    ///
    /// Returns the original value, or `None`, with nothing changed, if others have changed the
    /// bytes with each try. Both are numbers in the byte order of the CPU. Calls `f` for each try.
    ///
    /// Fails with `EACCES` if the range is not pinned for writing, `EINVAL` if the bytes are not
    /// within the range or not [aligned](Self::is_word).
    pub fn update(&self, at: u64, f: impl Fn(u64) -> u64) -> Result<Option<u64>> {
        if !self.writable {
            return Err(EACCES);
        }
        if !self.is_word(at) {
            return Err(EINVAL);
        }
        let mut original = None;

        self.each(at, size_of::<u64>(), |page, offset, _, _| {
            // The bytes are aligned, so they are one piece.
            original = try_update(&f, |old, new| {
                // SAFETY: `each` passes a piece that lies within one page, which stays pinned as
                // long as `self`. It has 8 bytes at a multiple of 8. Pages that are pinned for
                // writing may be written to. Others access the memory in any way, but never by Rust
                // references.
                unsafe { bindings::cmpxchg_page(page, offset, old, new) }
            });
        })?;
        Ok(original)
    }

    /// Calls `f(page, offset in the page, bytes done, bytes in this piece)` for each page of a
    /// range. The pieces cover the range in order. Fails with `EINVAL` if the range exceeds the
    /// pinned one.
    fn each(
        &self,
        at: u64,
        len: usize,
        f: impl FnMut(*mut bindings::page, usize, usize, usize),
    ) -> Result {
        let end = at.checked_add(len as u64).ok_or(EINVAL)?;
        if end > self.len {
            return Err(EINVAL);
        }

        // CAST: It is less than `len`, which was a size.
        let start = (at as usize).checked_add(self.offset).ok_or(EINVAL)?;
        each_piece(&self.pages, PAGE_SHIFT as u32, start, len, f)
    }
}

impl Drop for Umem {
    fn drop(&mut self) {
        // SAFETY: By the type invariant the value owns `umem`, and it is not used any more. `_dev`
        // keeps the device, which the function uses. A drop in atomic context would be a bug of the
        // caller, as a call of any other safe function that may sleep.
        unsafe { bindings::ib_umem_release(self.umem.as_ptr()) };
    }
}

// SAFETY: Pinned pages belong to no thread: any may access and release them.
unsafe impl Send for Umem {}
// SAFETY: `&self` allows only copies and atomic operations by C code. These may race with each
// other as they do with the process that owns the memory, which no caller trusts.
unsafe impl Sync for Umem {}
