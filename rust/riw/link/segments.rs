// SPDX-License-Identifier: GPL-2.0

//! Received data, out of which a stream pulls segments.

use super::tcp::MpaRx;
use core::num::NonZeroUsize;
use iwarp::{ddp::FrameHead, ddp::Ulpdu, Error, Segment};
use kernel::prelude::*;
use net::{RecvBuf, Unread};

/// The state of a link between two receives of a stream. The lock of the stream's receiving side
/// protects it. [`LinkRx::new`] creates it.
pub(crate) enum LinkRx {
    Mpa(MpaRx),
    /// Nothing: a chunk is a whole frame.
    Sctp,
}

impl LinkRx {
    /// Returns MPA's receiving side; `None` over another transport.
    #[inline]
    pub(super) fn mpa(&mut self) -> Option<&mut MpaRx> {
        match self {
            Self::Mpa(rx) => Some(rx),
            Self::Sctp => None,
        }
    }

    /// Whether a worker receives the rest of a run. Any context.
    #[inline]
    pub(crate) fn has_rest(&self) -> bool {
        match self {
            Self::Mpa(rx) => rx.has_rest(),
            Self::Sctp => false,
        }
    }

    /// Whether the stream may end here, as what is not taken is no part of a frame. Any context.
    pub(crate) fn may_end(&self) -> bool {
        match self {
            Self::Mpa(rx) => rx.may_end(),
            Self::Sctp => true,
        }
    }

    /// Returns the size of the buffer that the frame at the front needs; `None` if it needs none.
    /// Any context.
    pub(crate) fn buffer_size(&self) -> Option<NonZeroUsize> {
        match self {
            Self::Mpa(rx) => rx.buffer_size(),
            Self::Sctp => None,
        }
    }

    /// Gives the frame at the front its buffer of `size` bytes, if it still needs one. Any context.
    /// Without memory, fails with the number of failures for this frame.
    pub(crate) fn hold(&mut self, size: NonZeroUsize, buffer: Result<RecvBuf>) -> Result<(), u32> {
        match self {
            Self::Mpa(rx) => rx.hold(size, buffer),
            Self::Sctp => Ok(()),
        }
    }
}

/// Data that a link has received.
pub(crate) trait Inflow {
    /// Returns the RDMA Write that has arrived before its turn, if that is what has been received:
    /// there are no segments then.
    #[inline]
    fn early_write(&mut self) -> Option<EarlyWrite<'_>> {
        None
    }

    /// Begins to receive it. `None` if a worker receives the rest of an earlier receive, or if `rx`
    /// is of another transport.
    fn segments<'a>(&'a mut self, rx: &'a mut LinkRx) -> Option<impl Segments + 'a>;

    /// Drops it, also what follows the segments that were taken.
    fn discard(&mut self);
}

/// An RDMA Write that has arrived before its turn. In its turn it comes as a segment, which is
/// checked again.
pub(crate) struct EarlyWrite<'a> {
    pub(crate) segment: Segment,
    pub(crate) payload: Unread<'a>,
    is_placed: &'a mut bool,
}

impl<'a> EarlyWrite<'a> {
    /// `is_placed` is set once the payload is placed. Any context.
    pub(super) fn new(segment: Segment, payload: Unread<'a>, is_placed: &'a mut bool) -> Self {
        Self {
            segment,
            payload,
            is_placed,
        }
    }

    /// Notes that the payload is placed: the link does not keep it. Any context.
    pub(crate) fn set_placed(self) {
        *self.is_placed = true;
    }
}

/// The segments in such data.
pub(crate) trait Segments {
    /// The error for a segment that is too short for its DDP header.
    const SHORT: Error;

    /// Yields the next segment, whose frame is whole and checked, and copies its first octets to
    /// `head`. `None` if there is none now. A segment whose payload has been placed before its turn
    /// has no runs, so that nothing is copied again.
    fn next(&mut self, head: &mut FrameHead) -> Result<Option<Ulpdu>, Error>;

    /// Returns the octets in which it lies.
    fn octets(&self) -> Unread<'_>;

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
    /// A worker that gives the frame a buffer, as the socket has no room for it: see
    /// [`LinkRx::buffer_size`]. Requested once: a worker without memory repeats it.
    Buffer,
    /// A worker, which receives the rest.
    Worker,
}
