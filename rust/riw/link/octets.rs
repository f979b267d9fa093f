// SPDX-License-Identifier: GPL-2.0

//! Received octets that are not taken yet.

use core::ops::Range;
use iwarp::{Crc, Octets};
use kernel::prelude::*;
use net::{Fragment, Unread};

/// The octets at the front of a stream, in place.
#[derive(Clone, Copy)]
pub(crate) struct RxOctets<'a> {
    unread: Unread<'a>,
}

impl<'a> RxOctets<'a> {
    #[inline]
    pub(crate) fn new(unread: Unread<'a>) -> Self {
        Self { unread }
    }

    /// Calls `f` with the octets of `range`, as [`Unread::each`] does.
    #[inline]
    pub(crate) fn each(&self, range: Range<usize>, f: impl FnMut(Fragment<'_>)) -> Result {
        self.unread.each(range, f)
    }
}

/// Returns the range of `len` octets from `at` on.
fn range(at: usize, len: usize) -> Range<usize> {
    at..at.saturating_add(len)
}

impl Octets for RxOctets<'_> {
    #[inline]
    fn len(&self) -> usize {
        self.unread.len()
    }

    #[inline]
    fn copy(&self, at: usize, to: &mut [u8]) -> Option<()> {
        let mut left = &mut *to;
        let all = range(at, left.len());

        self.each(all, |fragment| {
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

        self.each(range(at, len), |fragment| raw = fragment.crc32c(raw))
            .ok()?;
        Some(Crc::from_raw(raw))
    }
}
