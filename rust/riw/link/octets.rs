// SPDX-License-Identifier: GPL-2.0

//! Received octets, as a deframer reads them.

use core::ops::Range;
use iwarp::{Crc, Octets};
use net::Unread;

/// [`Unread`] octets for a deframer. A type of its own, as the trait is the crate `iwarp`'s and the
/// octets are `net`'s: neither depends on the other, and the driver may implement the trait for its
/// own types only.
pub(super) struct DeframerOctets<'a>(pub(super) Unread<'a>);

/// Returns the range of `len` octets from `at` on.
fn range(at: usize, len: usize) -> Range<usize> {
    at..at.saturating_add(len)
}

impl Octets for DeframerOctets<'_> {
    #[inline]
    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    fn copy(&self, at: usize, to: &mut [u8]) -> Option<()> {
        let mut left = &mut *to;
        let all = range(at, left.len());

        self.0
            .each(all, |fragment| {
                fragment.copy_to(left);
                let done = fragment.len().min(left.len());
                left = core::mem::take(&mut left)
                    .get_mut(done..)
                    .unwrap_or_default();
            })
            .ok()
    }

    #[inline]
    fn crc(&self, crc: Crc, at: usize, len: usize) -> Option<Crc> {
        let mut raw = crc.raw();

        self.0
            .each(range(at, len), |fragment| raw = fragment.crc32c(raw))
            .ok()?;
        Some(Crc::from_raw(raw))
    }
}
