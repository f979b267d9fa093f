// SPDX-License-Identifier: GPL-2.0

//! Where the octets of a stream lie until they are consumed.

use core::ops::Range;
use iwarp::{Crc, Octets};
use kernel::prelude::*;
use net::{Fragment, RecvBuf, Unread};

/// What has come of a stream and was not consumed.
#[derive(Clone, Copy)]
pub(crate) enum Stream<'a> {
    /// In the socket: this is the rule.
    Socket(Unread<'a>),
    /// Of an FPDU that the socket has no room for.
    Buffer(&'a RecvBuf),
}

impl Stream<'_> {
    /// Calls `f` with the octets of `range`, piece by piece. `EFAULT` if they cannot be read. `f` must
    /// not sleep.
    pub(crate) fn each(&self, range: Range<usize>, f: impl FnMut(Fragment<'_>)) -> Result {
        match self {
            Self::Socket(unread) => unread.each(range, f),
            Self::Buffer(buffer) => buffer.each(range, f),
        }
    }
}

/// The range of `len` octets from `at` on.
fn range(at: usize, len: usize) -> Range<usize> {
    at..at.saturating_add(len)
}

impl Octets for Stream<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Socket(unread) => unread.len(),
            Self::Buffer(buffer) => buffer.len(),
        }
    }

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

    fn crc(&self, crc: Crc, at: usize, len: usize) -> Option<Crc> {
        let mut raw = crc.raw();

        self.each(range(at, len), |fragment| raw = fragment.crc32c(raw))
            .ok()?;
        Some(Crc::from_raw(raw))
    }
}
