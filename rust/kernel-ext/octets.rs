// SPDX-License-Identifier: GPL-2.0

//! Bytes that are copied: those that others may still change, and room that is not initialized.

use core::{marker::PhantomData, mem::MaybeUninit};
use kernel::prelude::*;
use riw_bindings as bindings;

/// Contiguous bytes that may change at any time. Received bytes may: a sender on this machine can
/// still write to pages that it spliced into its socket.
///
/// So the bytes can be copied and summed, but never borrowed as a slice. Two reads may give
/// different values.
///
/// # Invariants
///
/// `start` is valid for reads of `len` bytes by C code, for `'a`.
#[derive(Clone, Copy)]
pub struct Fragment<'a> {
    start: *const u8,
    len: usize,
    _memory: PhantomData<&'a [u8]>,
}

impl Fragment<'_> {
    /// Makes a fragment of the `len` bytes from `start` on. Any context.
    ///
    /// # Safety
    ///
    /// C code must be allowed to read them as long as the fragment, or a copy of it, lives.
    #[inline]
    pub unsafe fn from_raw(start: *const u8, len: usize) -> Self {
        // INVARIANT: The caller promises it.
        Self {
            start,
            len,
            _memory: PhantomData,
        }
    }

    /// Returns the number of bytes. Any context.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bytes. Any context.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the address, from which C code may read [`len`](Self::len) bytes. Any context.
    #[inline]
    pub fn as_ptr(&self) -> *const u8 {
        self.start
    }

    /// Copies the first bytes, at most `to.len()`, to the front of `to`. Any context.
    #[inline]
    pub fn copy_to(&self, to: &mut [u8]) {
        let len = self.len.min(to.len());

        // SAFETY: By the type's invariant C code may read `len` bytes from `start`. `to` has room
        // for `len` bytes and is borrowed exclusively.
        unsafe { bindings::copy_memory(to.as_mut_ptr(), self.start, len) }
    }

    /// Continues a CRC32c (Castagnoli) over the bytes, from the value `crc`; most protocols start
    /// with `!0`. Inverts neither that nor the result. Any context. Returns the new value.
    ///
    /// ```
    /// use kernel_ext::octets::Fragment;
    ///
    /// /// Returns the CRC of a header as iSCSI and iWARP send it.
    /// fn digest(header: &[u8]) -> [u8; 4] {
    ///     (!Fragment::from(header).crc32c(!0)).to_le_bytes()
    /// }
    /// ```
    #[inline]
    pub fn crc32c(&self, crc: u32) -> u32 {
        // SAFETY: By the type's invariant C code may read `len` bytes from `start`.
        unsafe { bindings::crc32c(crc, self.start.cast(), self.len) }
    }
}

impl<'a> From<&'a [u8]> for Fragment<'a> {
    #[inline]
    fn from(bytes: &'a [u8]) -> Self {
        // INVARIANT: The slice is valid for reads of its length, for `'a`.
        Self {
            start: bytes.as_ptr(),
            len: bytes.len(),
            _memory: PhantomData,
        }
    }
}

/// Room for bytes, filled from its front. Bytes that are not filled are stale kernel memory and
/// cannot be read.
///
/// # Invariants
///
/// The first `filled` of `bytes` are initialized.
pub struct Room<'a> {
    bytes: &'a mut [MaybeUninit<u8>],
    filled: usize,
}

impl<'a> Room<'a> {
    /// Makes room of memory of which nothing is filled. Any context.
    pub fn new(bytes: &'a mut [MaybeUninit<u8>]) -> Self {
        // INVARIANT: `filled` is 0.
        Self { bytes, filled: 0 }
    }

    /// Returns the number of bytes that are not filled yet. Any context.
    pub fn len(&self) -> usize {
        self.bytes.len().saturating_sub(self.filled)
    }

    /// Whether no room is left: all bytes are filled. Any context.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the filled bytes. Any context.
    pub fn filled(&self) -> &[u8] {
        // SAFETY: By the type's invariant the first `filled` of `bytes` are initialized.
        unsafe { core::slice::from_raw_parts(self.bytes.as_ptr().cast(), self.filled) }
    }

    /// Fills the next bytes with a copy of `from`. Any context. `EINVAL` if there is not enough
    /// room; nothing is copied then.
    pub fn put(&mut self, from: &[u8]) -> Result {
        // SAFETY: The closure writes exactly `from.len()` bytes. They do not overlap `from`: the
        // room is borrowed exclusively.
        unsafe {
            self.put_with(from.len(), |to| {
                to.copy_from_nonoverlapping(from.as_ptr(), from.len());
                Ok(())
            })
        }
    }

    /// Calls `write` with a pointer to the next `len` bytes, to fill them. Any context that `write`
    /// allows. `EINVAL` if there is not enough room; `write` is not called then. Returns the error
    /// of `write`; the bytes count as not filled then.
    ///
    /// # Safety
    ///
    /// `write` may write only these `len` bytes, and must write all of them if it returns `Ok`.
    pub unsafe fn put_with(&mut self, len: usize, write: impl FnOnce(*mut u8) -> Result) -> Result {
        let end = self.filled.checked_add(len).ok_or(EINVAL)?;
        let to = self.bytes.get_mut(self.filled..end).ok_or(EINVAL)?;

        write(to.as_mut_ptr().cast())?;
        // INVARIANT: The caller promises that `write` has written all `len` bytes.
        self.filled = end;
        Ok(())
    }
}
