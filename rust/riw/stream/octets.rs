// SPDX-License-Identifier: GPL-2.0

//! Received octets that are not taken yet, and their way to memory.

use crate::{mr::Sink, queue::send::SendQueue};
use core::ops::Range;
use iwarp::{Crc, DdpUntagged, Denied, Error, Local};
use net::Unread;

/// The octets at the front of the stream: in the socket, in the buffer of an FPDU that the socket has no room
/// for, or in a message of SCTP.
#[derive(Clone, Copy)]
pub(super) struct RxOctets<'a>(pub(super) Unread<'a>);

/// Why octets are not placed.
pub(super) enum Unplaced {
    /// They cannot be read.
    Octets,
    /// The memory may not be written to.
    Sink(Denied),
    /// They exceed the buffers.
    TooLong,
}

impl From<Denied> for Unplaced {
    fn from(denied: Denied) -> Self {
        Self::Sink(denied)
    }
}

impl RxOctets<'_> {
    /// Copies the octets `from` to memory, `at` bytes from the start of `sink`. Softirq or process context. `sq` is
    /// for traces.
    pub(super) fn place(
        &self,
        from: Range<usize>,
        sq: &SendQueue,
        sink: &Sink<'_>,
        at: u32,
    ) -> Result<(), Unplaced> {
        let mut end = at;
        let mut placed = Ok(());

        self.0
            .each(from, |fragment| {
                if placed.is_ok() {
                    placed = sink.write(end, fragment);
                    // CAST: A fragment is part of an FPDU.
                    end = end.saturating_add(fragment.len() as u32);
                }
            })
            .map_err(|_| Unplaced::Octets)?;
        placed?;
        trace::place(sq, || {
            let (stag, addr) = sink.at(at);

            trace::Placed {
                stag,
                addr,
                len: end.wrapping_sub(at),
            }
        });
        Ok(())
    }
}

impl Unplaced {
    /// Returns the error that ends the stream. `denied` returns the one of a sink that may not be written to.
    pub(super) fn error(self, denied: impl FnOnce(Denied) -> Error) -> Error {
        match self {
            Self::Octets => Local::LowerLayer.into(),
            Self::Sink(reason) => denied(reason),
            Self::TooLong => DdpUntagged::TooLong.into(),
        }
    }
}

/// Returns the range of `len` octets from `at` on.
fn range(at: usize, len: usize) -> Range<usize> {
    at..at.saturating_add(len)
}

impl iwarp::Octets for RxOctets<'_> {
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
