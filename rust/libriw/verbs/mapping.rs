// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

//! Rings in memory of the kernel.

use super::errno::{last, Errno, Result};
use crate::ffi::driver::{ibv_dofork_range, ibv_dontfork_range};
use core::ffi::{c_int, c_void};
use core::ptr::{self, NonNull};
use core::slice;
use core::sync::atomic::AtomicU64;
use riw_abi::udata::RingMap;
use std::sync::Arc;

/// The words of a ring, which the kernel reads and writes at any time.
pub(crate) struct Mapping {
    address: NonNull<AtomicU64>,
    words: usize,
    bytes: usize,
}

// SAFETY: The memory belongs to no thread, and all access is atomic.
unsafe impl Send for Mapping {}
// SAFETY: A shared reference allows only atomic access to the memory.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps a ring of the device that is open as `fd`. A child of this process will not have it if
    /// ibv_fork_init(3) demands that. Errors: `EOVERFLOW` for numbers that do not fit, and the
    /// errors of mmap() and madvise().
    pub(crate) fn new(fd: c_int, map: &RingMap) -> Result<Self> {
        let bytes = usize::try_from(map.bytes).map_err(|_| Errno(libc::EOVERFLOW))?;
        let offset = libc::off_t::try_from(map.offset).map_err(|_| Errno(libc::EOVERFLOW))?;

        // SAFETY: A new mapping at an address that the kernel chooses affects no other memory.
        let address = unsafe {
            libc::mmap(
                ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                fd,
                offset,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(last());
        }
        let words = bytes.checked_div(size_of::<AtomicU64>()).unwrap_or(0);

        // SAFETY: It is the mapping just made, which nobody uses yet.
        if unsafe { ibv_dontfork_range(address, bytes) } != 0 {
            let error = last();

            // SAFETY: It is the mapping just made, which nobody else can know.
            unsafe { unmap(address, bytes) };
            return Err(error);
        }
        Ok(Self {
            address: NonNull::new(address.cast()).ok_or(Errno(libc::EFAULT))?,
            words,
            bytes,
        })
    }
}

impl AsRef<[AtomicU64]> for Mapping {
    fn as_ref(&self) -> &[AtomicU64] {
        // SAFETY: The mapping begins at a page, has that many bytes, and lasts as long as `self`.
        // The kernel and other threads access it by atomic operations only.
        unsafe { slice::from_raw_parts(self.address.as_ptr(), self.words) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let address = self.address.as_ptr().cast();

        // If this fails, pages stay marked that are unmapped now: it is of no consequence.
        // SAFETY: It undoes the call of `new()`.
        unsafe { ibv_dofork_range(address, self.bytes) };
        // SAFETY: `new()` has mapped it, and no reference to it outlives `self`.
        unsafe { unmap(address, self.bytes) };
    }
}

/// A [`Mapping`] that lasts as long as any of its clones.
#[derive(Clone)]
pub(crate) struct SharedMapping(Arc<Mapping>);

impl SharedMapping {
    pub(crate) fn new(mapping: Mapping) -> Self {
        Self(Arc::new(mapping))
    }
}

impl AsRef<[AtomicU64]> for SharedMapping {
    fn as_ref(&self) -> &[AtomicU64] {
        (*self.0).as_ref()
    }
}

/// Removes a mapping.
///
/// # Safety
///
/// It is a whole mapping, to which nobody has a reference.
unsafe fn unmap(address: *mut c_void, bytes: usize) {
    // It fails only for an address or a length that is no multiple of pages.
    // SAFETY: By the caller's promise.
    unsafe { libc::munmap(address, bytes) };
}
