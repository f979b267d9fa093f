// SPDX-License-Identifier: GPL-2.0

//! Types that all layers share, and the few conversions that `as` would otherwise do.
//!
//! Small functions on the data path are `#[inline]`, because users are separate crates.

/// A Steering Tag: names a registered buffer towards the peer (RFC 5041 §2.1).
///
/// The upper 24 bits index the embedder's table. The low 8 bits are a key; it differs between
/// successive registrations of one slot.
///
/// ```
/// use iwarp::Stag;
///
/// let stag = Stag(0x0012_3407);
/// assert_eq!(stag.index(), 0x1234);
/// assert_eq!(stag.key(), 7);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Stag(pub u32);

impl Stag {
    /// The table index: the upper 24 bits.
    #[inline]
    pub const fn index(self) -> u32 {
        self.0 >> 8
    }

    /// The key: the low 8 bits.
    #[inline]
    pub const fn key(self) -> u8 {
        let [.., key] = self.0.to_be_bytes();
        key
    }
}

/// Converts `u32` to `usize`. Saturates if `usize` is narrower; no supported machine has that.
#[inline]
pub(crate) fn size(n: u32) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

/// Converts `usize` to `u32`, saturating. Callers pass lengths far below the limit.
#[inline]
pub(crate) fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// Returns the low 16 bits of `n`.
#[inline]
pub(crate) const fn low16(n: u32) -> u16 {
    let [.., a, b] = n.to_be_bytes();
    u16::from_be_bytes([a, b])
}

/// Copies as much of `src` as fits in `dst`. Returns the number of octets copied.
#[inline]
pub(crate) fn copy(dst: &mut [u8], src: &[u8]) -> usize {
    let n = dst.len().min(src.len());
    if let (Some(d), Some(s)) = (dst.get_mut(..n), src.get(..n)) {
        d.copy_from_slice(s);
    }
    n
}

/// Splits `data` at `at`, or at its end if it is shorter.
#[inline]
pub(crate) fn split(data: &[u8], at: usize) -> (&[u8], &[u8]) {
    data.split_at_checked(at).unwrap_or((data, &[]))
}
