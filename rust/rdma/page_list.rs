// SPDX-License-Identifier: GPL-2.0

//! The memory of a kernel user's region.
//!
//! C source: `ib_sg_to_pages()`, `core/verbs.c`

use crate::{
    blocks::each_piece,
    update::{is_word, try_update},
};
use kernel::{ffi::c_int, prelude::*, types::Opaque};
use kernel_ext::octets::{Fragment, Room};
use riw_bindings as bindings;

/// ib_core's part of a region, and the list that a consumer maps memory to.
#[repr(C)]
pub(crate) struct FilledMr {
    ib: Opaque<bindings::ib_mr>,
    /// During [`PageList::map`].
    filling: *mut PageList,
}

/// A list of kernel memory, in blocks of one size, that a consumer maps to a region
/// (`ib_map_mr_sg()`, `include/rdma/ib_verbs.h`).
///
/// The consumer keeps the memory as long as it is registered. So a driver gets the list only while
/// the registration is in force: see [`KernelRegion::copy`](crate::mr::KernelRegion::copy).
///
/// # Invariants
///
/// Each block is `1 << shift` bytes at an address of the kernel. `offset + len` bytes from the
/// start of the first block are in the list.
pub struct PageList {
    /// The addresses of the blocks. It has room for as many as the region may have. Not vmalloc
    /// memory: it may be freed in any context.
    blocks: KVec<usize>,
    shift: u32,
    /// Offset of the first byte in the first block, in bytes.
    offset: usize,
    len: usize,
}

impl PageList {
    /// Creates an empty list with room for `max` blocks. Process context; may sleep. Fails with
    /// `ENOMEM` without memory.
    pub(crate) fn new(max: u32) -> Result<Self> {
        // INVARIANT: There are no bytes.
        Ok(Self {
            blocks: KVec::with_capacity(max.try_into()?, GFP_KERNEL_ACCOUNT)?,
            shift: 0,
            offset: 0,
            len: 0,
        })
    }

    /// Returns the length in bytes. Any context.
    pub fn len(&self) -> u64 {
        // CAST: A size fits.
        self.len as u64
    }

    /// Whether no memory is mapped. Any context.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the number of blocks. Any context.
    pub fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Forgets the memory. Any context.
    fn clear(&mut self) {
        // INVARIANT: There are no bytes.
        self.blocks.clear();
        (self.offset, self.len) = (0, 0);
    }

    /// Maps the memory of a scatterlist instead of the present memory. Returns the number of
    /// entries mapped, or an error number, as `ib_device_ops::map_mr_sg` does. Any context.
    ///
    /// # Safety
    ///
    /// `mr` must be the start of a [`FilledMr`] whose device has no DMA device, `sg` a list of
    /// `count` entries mapped for it, and `offset` null or valid. Nothing else may map to `mr`
    /// during the call. The consumer must keep the memory as the type says.
    pub(crate) unsafe fn map(
        &mut self,
        mr: *mut bindings::ib_mr,
        sg: *mut bindings::scatterlist,
        count: c_int,
        offset: *mut u32,
    ) -> c_int {
        self.clear();
        // SAFETY: The caller promises a valid region.
        let size = unsafe { (*mr).page_size };
        if !size.is_power_of_two() {
            return EINVAL.to_errno();
        }
        self.shift = size.trailing_zeros();
        // CAST: A 32-bit number fits.
        let size = size as usize;

        let base: *mut FilledMr = mr.cast();
        // SAFETY: By the caller's promise all pointers are valid, and nothing else maps to `mr`, so
        // nothing else accesses `filling`. `add_block` runs during the call only, so it finds
        // `self`.
        let mapped = unsafe {
            (*base).filling = self;
            let mapped = bindings::ib_sg_to_pages(mr, sg, count, offset, Some(add_block));
            (*base).filling = core::ptr::null_mut();
            mapped
        };

        // Part of the first entry may be mapped if that is longer than the list.
        if mapped >= 0 {
            // SAFETY: ib_sg_to_pages() has set both.
            let (first, len) = unsafe { ((*mr).iova, (*mr).length) };
            let room = self.blocks.len().saturating_mul(size);

            // INVARIANT: ib_sg_to_pages() has added the blocks from `first` on, and aligns blocks
            // to their size. With a virtual-DMA device a DMA address is an address of the kernel.
            // `len` is limited to the blocks. CAST: Addresses and sizes of the kernel fit.
            self.offset = first as usize & size.wrapping_sub(1);
            self.len = (len as usize).min(room.saturating_sub(self.offset));
            // The consumer sends this address to its peer, which must not learn where the kernel's
            // memory is.
            // CAST: A size fits.
            // SAFETY: The region is valid, and only its consumer uses the field.
            unsafe { (*mr).iova = self.offset as u64 };
        }
        mapped
    }

    /// Copies `from` to the memory, `at` bytes from its start. Any context. Fails with `EINVAL`,
    /// with nothing copied, if it does not fit there.
    pub fn write(&self, at: u64, from: Fragment<'_>) -> Result {
        self.each(at, from.len(), |block, done, n| {
            // SAFETY: `each` passes pieces that lie within one block, and within `from.len()` bytes
            // of `from`. The registration is in force, since only then `KernelRegion::copy` lends
            // the list. So the consumer keeps the memory. C code copies, which is how a `Fragment`
            // may be accessed.
            unsafe { bindings::copy_memory(block, from.as_ptr().add(done), n) }
        })
    }

    /// Copies `len` bytes to `to`, from `at` bytes after the start of the memory. Any context.
    /// Fails with `EINVAL`, with nothing copied, if the bytes are not in the memory or do not fit.
    pub fn read(&self, at: u64, len: usize, to: &mut Room<'_>) -> Result {
        let copy = |to: *mut u8| {
            self.each(at, len, |block, done, n| {
                // SAFETY: `put_with` calls this with room for `len` bytes. `each` passes pieces
                // that lie within these and within one block, which the consumer keeps, as in
                // `write`.
                unsafe { bindings::copy_memory(to.add(done), block, n) }
            })
        };

        // SAFETY: If `each` succeeds, its pieces have covered all of the `len` bytes, so `copy` has
        // initialized them.
        unsafe { to.put_with(len, copy) }
    }

    /// Whether the byte `at` bytes from the start of the memory is at a multiple of 8. Any context.
    pub fn is_word(&self, at: u64) -> bool {
        // Blocks are aligned to their size. One of less than 8 bytes has no place for 8.
        self.shift >= 3 && is_word(at, self.offset)
    }

    /// Replaces the 8 bytes that are `at` bytes from the start of the memory by the result of `f`,
    /// as [`Umem::update`](crate::umem::Umem::update) does. Any context; `f` must not sleep.
    ///
    /// Fails with `EINVAL` if the bytes are not in the memory or not [aligned](Self::is_word).
    pub fn update(&self, at: u64, f: impl Fn(u64) -> u64) -> Result<Option<u64>> {
        if !self.is_word(at) {
            return Err(EINVAL);
        }
        let mut original = None;

        self.each(at, size_of::<u64>(), |block, _, _| {
            // The bytes are aligned, so they are one piece.
            original = try_update(&f, |old, new| {
                // SAFETY: `each` passes a piece of 8 bytes within one block, at a multiple of 8.
                // The consumer keeps the memory, as in `write`, and others access it by C code
                // only.
                unsafe { bindings::cmpxchg_memory(block.cast(), old, new) }
            });
        })?;
        Ok(original)
    }

    /// Calls `f(address, bytes done, bytes in this piece)` for each block of a range. The pieces
    /// cover the range in order. Fails with `EINVAL` if the range exceeds the memory.
    fn each(&self, at: u64, len: usize, mut f: impl FnMut(*mut u8, usize, usize)) -> Result {
        let at = usize::try_from(at)?;
        if at.checked_add(len).ok_or(EINVAL)? > self.len {
            return Err(EINVAL);
        }

        let start = at.checked_add(self.offset).ok_or(EINVAL)?;
        each_piece(
            &self.blocks,
            self.shift,
            start,
            len,
            |block, offset, done, n| f(block.wrapping_add(offset) as *mut u8, done, n),
        )
    }
}

/// Adds a block to the list that is being mapped.
///
/// # Safety
///
/// Only ib_sg_to_pages() may call this, from [`PageList::map`].
unsafe extern "C" fn add_block(mr: *mut bindings::ib_mr, addr: u64) -> c_int {
    // SAFETY: `map` has set `filling` to its list, which it borrows exclusively during the call.
    let list = unsafe { &mut *(*mr.cast::<FilledMr>()).filling };

    // CAST: An address of the kernel.
    match list.blocks.push_within_capacity(addr as usize) {
        Ok(()) => 0,
        Err(_) => ENOMEM.to_errno(),
    }
}
