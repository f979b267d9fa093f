// SPDX-License-Identifier: GPL-2.0

//! Checksums.

use riw_bindings as bindings;

/// Continues a CRC32c (Castagnoli) over `data`.
///
/// `crc` is the value so far, `!0` at the start of most protocols' checksums; nothing is inverted
/// here. Any context.
///
/// C header: [`include/linux/crc32c.h`](srctree/include/linux/crc32c.h)
#[inline]
pub fn crc32c(crc: u32, data: &[u8]) -> u32 {
    // SAFETY: The slice is valid for reads of its length.
    unsafe { bindings::crc32c(crc, data.as_ptr().cast(), data.len()) }
}
