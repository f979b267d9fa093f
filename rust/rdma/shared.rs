// SPDX-License-Identifier: GPL-2.0

//! Memory that the kernel shares with a user process.
//!
//! C sources: `mm/vmalloc.c`; `shared_alloc()` in `rust/bindings/helpers/rdma.c`

use core::{ptr::NonNull, slice};
use kernel::{
    error::to_result,
    mm::virt::VmaNew,
    page::PAGE_SIZE,
    prelude::*,
    sync::atomic::Atomic, //
};
use riw_bindings as bindings;

// A 64-bit access must be a single one.
const _: () = assert!(usize::BITS == 64);

/// Zeroed, page-aligned vmalloc memory that user space may map while the kernel uses it.
///
/// User space may write anything to it at any time, so it is accessible only as atomic 64-bit
/// words. Load a word once, then check and use the copy.
///
/// # Invariants
///
/// `words` points to `len` words of vmalloc memory, which the value owns.
pub struct SharedMem {
    words: NonNull<Atomic<u64>>,
    len: usize,
}

impl SharedMem {
    /// Allocates at least `words` 64-bit words, rounded up to whole pages (`__vmalloc()`,
    /// `mm/vmalloc.c`), and charges the memory cgroup of the calling process. Process context; may
    /// sleep.
    ///
    /// Fails with `EINVAL` if `words` is 0 or the size overflows, `ENOMEM` without memory.
    pub fn new(words: usize) -> Result<Self> {
        let bytes = words
            .checked_mul(size_of::<u64>())
            .and_then(|bytes| bytes.checked_next_multiple_of(PAGE_SIZE))
            .filter(|bytes| *bytes != 0)
            .ok_or(EINVAL)?;
        // SAFETY: The function has no preconditions. A null result is handled below.
        let ptr = unsafe { bindings::shared_alloc(bytes) };

        // INVARIANT: `shared_alloc` returned `bytes` bytes of zeroed, page-aligned vmalloc memory,
        // which nothing else owns.
        Ok(Self {
            words: NonNull::new(ptr.cast()).ok_or(ENOMEM)?,
            len: bytes / size_of::<u64>(),
        })
    }

    /// Returns the memory as words. Any context.
    pub fn words(&self) -> &[Atomic<u64>] {
        // SAFETY: By the type invariant `words` points to `len` words, which live as long as
        // `self`. Every bit pattern is a valid `Atomic<u64>`, so user space can only store other
        // valid values.
        unsafe { slice::from_raw_parts(self.words.as_ptr(), self.len) }
    }

    /// Copies words into `to`, beginning at word `at`. Loads each word once, relaxed, in no
    /// particular order. Any context.
    ///
    /// Returns `None`, with nothing copied, if the range exceeds the memory.
    #[inline]
    pub fn load(&self, at: usize, to: &mut [u64]) -> Option<()> {
        let words = self.words().get(at..at.checked_add(to.len())?)?;

        for (to, from) in to.iter_mut().zip(words) {
            // SAFETY: `from` is a reference, so the word is valid and aligned. User space may
            // change it meanwhile; this is no data race, since the kernel's memory model treats a
            // volatile access of one word as a relaxed atomic access.
            *to = unsafe { from.as_ptr().read_volatile() };
        }
        Some(())
    }

    /// Copies `from` to the memory, beginning at word `at`. Stores each word once, relaxed, in no
    /// particular order. Any context.
    ///
    /// Returns `None`, with nothing stored, if the range exceeds the memory.
    #[inline]
    pub fn store(&self, at: usize, from: &[u64]) -> Option<()> {
        let words = self.words().get(at..at.checked_add(from.len())?)?;

        for (to, from) in words.iter().zip(from) {
            // SAFETY: `to` is a reference to an atomic, so the word is valid, aligned and writable.
            // Concurrent access is no data race: the kernel's memory model treats a volatile access
            // of one word as a relaxed atomic access.
            unsafe { to.as_ptr().write_volatile(*from) };
        }
        Some(())
    }

    /// Returns the size in bytes, a multiple of the page size. Any context.
    pub fn bytes(&self) -> usize {
        size_of_val(self.words())
    }

    /// Maps all pages to a process, from the start of `vma` on. Process context; may sleep. The
    /// mapping holds a reference to each page.
    ///
    /// Fails with `EFAULT` if `vma` is shorter, or as `vm_insert_page()` (`mm/memory.c`) does. The
    /// kernel then removes what is mapped, when the mmap() fails.
    ///
    /// # Safety
    ///
    /// A running mmap() is setting up `vma`, which the memory alone is mapped to.
    pub(crate) unsafe fn map(&self, vma: *mut bindings::vm_area_struct) -> Result {
        // SAFETY: The caller promises that it is being set up.
        let new = unsafe { VmaNew::from_raw(vma) };

        new.set_dontexpand();
        new.set_dontdump();
        for offset in (0..self.bytes()).step_by(PAGE_SIZE) {
            let page = self.as_ptr().wrapping_byte_add(offset);
            let at = new.start().wrapping_add(offset);
            // SAFETY: By the type invariant `page` is the address of a page of vmalloc memory. The
            // caller promises that `vma` is being set up, so its mm is locked for writing; and that
            // only such pages are mapped to it, so that nobody has made it one of page frames
            // (`VM_PFNMAP`).
            to_result(unsafe {
                bindings::vm_insert_page(vma, at, bindings::vmalloc_to_page(page))
            })?;
        }
        Ok(())
    }

    /// Returns the address.
    fn as_ptr(&self) -> *mut kernel::ffi::c_void {
        self.words.as_ptr().cast()
    }
}

impl Drop for SharedMem {
    fn drop(&mut self) {
        // SAFETY: The value owns the memory, which `shared_alloc` took from vmalloc. Each mapping
        // holds references to its pages, so these outlive vfree() until they are unmapped.
        unsafe { bindings::vfree(self.as_ptr()) };
    }
}

// SAFETY: vmalloc memory belongs to no thread: any thread may access it and free it.
unsafe impl Send for SharedMem {}
// SAFETY: `&self` allows only relaxed accesses of single words, which are atomic in the kernel's
// memory model.
unsafe impl Sync for SharedMem {}
