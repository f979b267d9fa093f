// SPDX-License-Identifier: GPL-2.0

//! Memory that the kernel shares with a user process.

use core::{ptr::NonNull, slice};
use kernel::{page::PAGE_SIZE, prelude::*, sync::atomic::Atomic};
use riw_bindings as bindings;

// An access of 64 bits must be a single one.
const _: () = assert!(usize::BITS == 64);

/// Zeroed, page-aligned memory that can be mapped by user space while the kernel uses it.
///
/// User space may write anything into it at any time. It is therefore only accessible as atomic
/// 64-bit words: what is to be trusted must be loaded once, checked, and used from the copy.
///
/// # Invariants
///
/// `words` points to `len` words of vmalloc memory, owned by the value.
pub struct SharedMem {
    words: NonNull<Atomic<u64>>,
    len: usize,
}

impl SharedMem {
    /// Allocates at least `words` words, rounded up to whole pages, at the cost of the calling
    /// process's memory cgroup. May sleep.
    pub fn new(words: usize) -> Result<Self> {
        let bytes = words
            .checked_mul(size_of::<u64>())
            .and_then(|bytes| bytes.checked_next_multiple_of(PAGE_SIZE))
            .filter(|bytes| *bytes != 0)
            .ok_or(EINVAL)?;
        // SAFETY: No requirements; the result is checked.
        let ptr = unsafe { bindings::shared_alloc(bytes) };

        // INVARIANT: The memory is new, zeroed and page-aligned.
        Ok(Self {
            words: NonNull::new(ptr.cast()).ok_or(ENOMEM)?,
            len: bytes / size_of::<u64>(),
        })
    }

    /// The memory as words.
    pub fn words(&self) -> &[Atomic<u64>] {
        // SAFETY: By the type's invariant. Every bit pattern is a valid `Atomic<u64>`, and user
        // space can not do worse than store another one.
        unsafe { slice::from_raw_parts(self.words.as_ptr(), self.len) }
    }

    /// Copies words from `at` on to `to`. Each is loaded once, relaxed, in no particular order.
    /// `None` if they are not all there.
    #[inline]
    pub fn load(&self, at: usize, to: &mut [u64]) -> Option<()> {
        let words = self.words().get(at..at.checked_add(to.len())?)?;

        for (to, from) in to.iter_mut().zip(words) {
            // SAFETY: The word is valid and aligned. That it may change meanwhile is no data race:
            // in the kernel's memory model a volatile access of a word is a relaxed atomic one.
            *to = unsafe { from.as_ptr().read_volatile() };
        }
        Some(())
    }

    /// Copies `from` to the words from `at` on. Each is stored once, relaxed, in no particular
    /// order. `None` if they are not all there.
    #[inline]
    pub fn store(&self, at: usize, from: &[u64]) -> Option<()> {
        let words = self.words().get(at..at.checked_add(from.len())?)?;

        for (to, from) in words.iter().zip(from) {
            // SAFETY: As for `load`.
            unsafe { to.as_ptr().write_volatile(*from) };
        }
        Some(())
    }

    /// Bytes, a multiple of the page size.
    pub fn bytes(&self) -> usize {
        self.len * size_of::<u64>()
    }

    /// The address, for mapping it.
    pub(crate) fn as_ptr(&self) -> *mut kernel::ffi::c_void {
        self.words.as_ptr().cast()
    }
}

impl Drop for SharedMem {
    fn drop(&mut self) {
        // SAFETY: Owned by the value. Pages that are still mapped have a reference each from there
        // and are freed when the mapping goes.
        unsafe { bindings::vfree(self.as_ptr()) };
    }
}

// SAFETY: All access is atomic.
unsafe impl Send for SharedMem {}
// SAFETY: As above.
unsafe impl Sync for SharedMem {}
