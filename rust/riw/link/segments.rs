// SPDX-License-Identifier: GPL-2.0

//! Received data, out of which a stream pulls segments.

use super::{octets::RxOctets, tcp::MpaRx};
use iwarp::{ddp::FrameHead, ddp::Ulpdu, Error};

/// Data that a link has received.
pub(crate) trait Inflow {
    /// Begins to receive it. `rx` is what the link keeps of the stream between two receives. `None`
    /// if a worker receives the rest of an earlier one.
    fn segments<'a>(&'a mut self, rx: &'a mut MpaRx) -> Option<impl Segments + 'a>;

    /// Drops it, also what follows the segments that were taken.
    fn discard(&mut self);
}

/// The segments in such data.
pub(crate) trait Segments {
    /// The error for a segment that is too short for its DDP header.
    const SHORT: Error;

    /// Yields the next segment, whose frame is whole and checked, and copies its first octets to
    /// `head`. `None` if there is none now. A segment whose payload has been placed before its turn
    /// has no runs, so that nothing is copied again.
    fn next(&mut self, head: &mut FrameHead) -> Result<Option<Ulpdu>, Error>;

    /// Calls `f` with the octets in which it lies.
    fn octets<R>(&self, f: impl FnOnce(RxOctets<'_>) -> R) -> R;

    /// Takes it, with the `octets` of its frame.
    fn advance(&mut self, octets: usize);

    /// Ends the receive. `blocked`: the segment at the front is not taken yet.
    fn finish(self, blocked: bool) -> Result<Pause, Error>;
}

/// The event, or the worker, that resumes a receive.
#[derive(Default)]
pub(crate) enum Pause {
    /// The next event of the link.
    #[default]
    Event,
    /// A worker that has a buffer for the frame, as the socket has no room for it: see
    /// [`MpaRx::buffer_size`].
    Buffer,
    /// A worker, which receives the rest.
    Worker,
}
