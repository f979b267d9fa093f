// SPDX-License-Identifier: GPL-2.0

//! The way of received octets to memory.

use crate::{mr::Sink, queue::send::SendQueue};
use core::ops::Range;
use iwarp::{DdpUntagged, Denied, Error, Local};
use net::Unread;

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

impl Unplaced {
    /// Returns the error that ends the stream. `denied` returns the one of a sink that may not be
    /// written to.
    pub(super) fn error(self, denied: impl FnOnce(Denied) -> Error) -> Error {
        match self {
            Self::Octets => Local::LowerLayer.into(),
            Self::Sink(reason) => denied(reason),
            Self::TooLong => DdpUntagged::TooLong.into(),
        }
    }
}

/// Copies the octets `from` to memory, `at` bytes from the start of `sink`. Softirq or process
/// context. `sq` is for traces.
pub(super) fn place(
    octets: &Unread<'_>,
    from: Range<usize>,
    sq: &SendQueue,
    sink: &Sink<'_>,
    at: u32,
) -> Result<(), Unplaced> {
    let mut end = at;
    let mut placed = Ok(());

    octets
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
