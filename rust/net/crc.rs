// SPDX-License-Identifier: GPL-2.0

//! Checksums.

use riw_bindings as bindings;

/// Continues a CRC32c (Castagnoli) over `data`. Any context. Returns the new value.
///
/// `crc` is the value so far; most protocols start with `!0`. Neither the start value nor the
/// result is inverted here.
///
/// C header: [`include/linux/crc32c.h`](srctree/include/linux/crc32c.h)
///
/// ```
/// use net::crc32c;
///
/// /// Returns the CRC of a message as iSCSI and iWARP send it.
/// fn digest(header: &[u8], payload: &[u8]) -> [u8; 4] {
///     (!crc32c(crc32c(!0, header), payload)).to_le_bytes()
/// }
/// ```
#[inline]
pub fn crc32c(crc: u32, data: &[u8]) -> u32 {
    // SAFETY: `data` is a slice, so it is valid for reads of `data.len()` bytes.
    unsafe { bindings::crc32c(crc, data.as_ptr().cast(), data.len()) }
}
