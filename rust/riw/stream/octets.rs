// SPDX-License-Identifier: GPL-2.0

//! Received octets that are not consumed yet.

use crate::link::SegmentChunk;
use core::ops::Range;
use iwarp::Crc;
use kernel::prelude::*;
use net::{Fragment, RecvBuf, Unread};

/// Where the unconsumed octets are.
#[derive(Clone, Copy)]
pub(crate) enum RxOctets<'a> {
    /// In the socket. This is the normal case.
    Socket(Unread<'a>),
    /// In a buffer: the part of an FPDU that the socket has no room for.
    Buffer(&'a RecvBuf),
    /// In a message of SCTP, which is one frame. The payload may have been placed already.
    Message(SegmentChunk<'a>),
}

impl RxOctets<'_> {
    /// Whether the payload has been placed already, and is not here any more. Any context.
    pub(super) fn is_placed(&self) -> bool {
        match self {
            Self::Socket(_) | Self::Buffer(_) => false,
            Self::Message(chunk) => chunk.is_placed(),
        }
    }

    /// Calls `f` with the octets of `range`, piece by piece. Any context; `f` must not sleep. Fails
    /// with `EFAULT` if they cannot be read.
    pub(crate) fn each(&self, range: Range<usize>, mut f: impl FnMut(Fragment<'_>)) -> Result {
        match self {
            Self::Socket(unread) => unread.each(range, f),
            Self::Buffer(buffer) => buffer.each(range, f),
            Self::Message(chunk) => {
                f(chunk.bytes.get(range).ok_or(EFAULT)?.into());
                Ok(())
            }
        }
    }
}

/// Returns the range of `len` octets from `at` on.
fn range(at: usize, len: usize) -> Range<usize> {
    at..at.saturating_add(len)
}

impl iwarp::Octets for RxOctets<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Socket(unread) => unread.len(),
            Self::Buffer(buffer) => buffer.len(),
            Self::Message(chunk) => chunk.len,
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
