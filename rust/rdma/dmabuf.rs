// SPDX-License-Identifier: GPL-2.0

//! Memory of dma-bufs.
//!
//! A device of this crate copies by the CPU. So it maps a dma-buf as the kernel's CPU users do
//! (`dma_buf_vmap()`), and attaches no device to it: the exporter keeps the memory in its place
//! while it is mapped, and need not notify anybody that it moves.
//!
//! C header: `include/linux/dma-buf.h`. C source: `drivers/dma-buf/dma-buf.c`

use kernel::{error::to_result, page::PAGE_SIZE, prelude::*};
use kernel_ext::octets::{Fragment, Room};
use riw_bindings as bindings;

/// A mapped range of a dma-buf. Its exporter, its processes and other devices may write to it at
/// any time: never read the same byte twice.
///
/// Dropping it unmaps the range: process context; may sleep. The data of a region is dropped there.
///
/// # Invariants
///
/// `mapped` is the result of `dmabuf_map()`, which the value owns. `first` points to `len` bytes of
/// it.
pub struct DmaBuf {
    mapped: bindings::riw_dmabuf_mapped,
    first: *mut u8,
    len: usize,
}

impl DmaBuf {
    /// Maps `len` bytes at `offset` of the dma-buf that is open as `fd` in the calling process, for
    /// writing if `access` (`enum ib_access_flags`) includes a right to write. Process context; may
    /// sleep.
    ///
    /// The exporter's module stays loaded, and the memory allocated, while the range is mapped. The
    /// CPU has access (`dma_buf_begin_cpu_access()`) all that time.
    ///
    /// Fails with `EBADF` if the file is not open, `EINVAL` if it is no dma-buf, if the exporter
    /// cannot map it, or if the range is empty or exceeds it; `EACCES` if the file is not open for
    /// reading, or is read-only and `access` includes a right to write; `EOPNOTSUPP` if it is I/O
    /// memory; `ENOMEM` without memory; and with the errors of the exporter.
    pub fn map(fd: i32, offset: u64, len: u64, access: u32) -> Result<Self> {
        let mut mapped = bindings::riw_dmabuf_mapped::default();

        // SAFETY: The function checks `fd`, and writes the result.
        to_result(unsafe { bindings::dmabuf_map(fd, access as i32, &mut mapped) })?;
        // INVARIANT: The function has succeeded, and nothing else owns the result. The range is
        // empty yet.
        let mut this = Self {
            first: mapped.addr.cast(),
            len: 0,
            mapped,
        };
        let offset: usize = offset.try_into()?;
        let len: usize = len.try_into()?;
        let left = this.mapped.size.checked_sub(offset).ok_or(EINVAL)?;

        if len == 0 || len > left {
            return Err(EINVAL);
        }
        // INVARIANT: The `len` bytes from there on are part of the mapping.
        // SAFETY: `offset` is less than the size of the mapping.
        this.first = unsafe { this.first.add(offset) };
        this.len = len;
        Ok(this)
    }

    /// Returns the length in bytes. Any context.
    pub fn len(&self) -> u64 {
        self.len as u64
    }

    /// Always false: an empty range cannot be mapped. Any context.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the number of pages that the range touches. Any context.
    pub fn pages(&self) -> usize {
        self.offset().saturating_add(self.len).div_ceil(PAGE_SIZE)
    }

    /// Returns the offset of the first byte in its page.
    fn offset(&self) -> usize {
        self.first.addr() % PAGE_SIZE
    }

    /// Returns where `len` bytes are that begin `at` bytes from the start. Fails with `EINVAL` if
    /// the range does not contain them.
    fn at(&self, at: u64, len: usize) -> Result<*mut u8> {
        let at: usize = at.try_into()?;

        if at.checked_add(len).is_none_or(|end| end > self.len) {
            return Err(EINVAL);
        }
        // SAFETY: By the type invariant `first` points to `self.len` bytes, and `at` is not more.
        Ok(unsafe { self.first.add(at) })
    }

    /// Copies `from` to the range, `at` bytes from its start. Any context.
    ///
    /// Fails, with nothing copied, with `EINVAL` if `from` does not fit there, `EACCES` if the
    /// range is not mapped for writing.
    pub fn write(&self, at: u64, from: Fragment<'_>) -> Result {
        if !self.mapped.writable {
            return Err(EACCES);
        }
        let to = self.at(at, from.len())?;

        // SAFETY: `to` has room for that many bytes, and stays mapped as long as `self`. C code
        // copies, which is how a `Fragment` may be accessed.
        unsafe { bindings::copy_memory(to, from.as_ptr(), from.len()) };
        Ok(())
    }

    /// Copies `len` bytes to `to`, from `at` bytes after the start of the range. Any context. Fails
    /// with `EINVAL`, with nothing copied, if the bytes are not all within the range or do not fit
    /// into `to`.
    pub fn read(&self, at: u64, len: usize, to: &mut Room<'_>) -> Result {
        let from = self.at(at, len)?;
        let copy = |to: *mut u8| {
            // SAFETY: `put_with` calls this with room for `len` bytes, and `from` points to as
            // many.
            unsafe { bindings::copy_memory(to, from, len) };
            Ok(())
        };

        // SAFETY: `copy` initializes all of the `len` bytes.
        unsafe { to.put_with(len, copy) }
    }
}

impl Drop for DmaBuf {
    fn drop(&mut self) {
        // SAFETY: By the type invariant the value owns the mapping, and it is not used any more. A
        // drop in atomic context would be a bug of the caller, as a call of any other safe function
        // that may sleep.
        unsafe { bindings::dmabuf_unmap(&self.mapped) };
    }
}

// SAFETY: The mapping belongs to no thread: any may access and remove it.
unsafe impl Send for DmaBuf {}
// SAFETY: `&self` allows only copies by C code. These may race with each other as they do
// with others that have the memory, which no caller trusts.
unsafe impl Sync for DmaBuf {}
