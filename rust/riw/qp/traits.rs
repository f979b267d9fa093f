// SPDX-License-Identifier: GPL-2.0

//! The connection, as its queue pair uses it.

use crate::link::{AddrPair, Link};
use kernel::sync::{Arc, ArcBorrow};
use rdma::iw::CmId;

/// The connection of a queue pair. Connection management implements it: it imports queue pairs, so
/// these cannot import the type.
pub(crate) trait QpConnection: Send + Sync {
    /// Returns the link of the stream.
    fn link(&self) -> &Arc<Link>;

    /// Returns the addresses of both sides; `None` before the stream starts. Any context.
    fn addrs(&self) -> Option<&AddrPair>;

    /// Notes that the peer's first FPDU has arrived. Any context.
    fn first_fpdu(self: ArcBorrow<'_, Self>);

    /// Notes that the queue pair has begun to end the stream. It calls [`Self::close`] when it is
    /// done, within a limited time, because the peer may not take the rest. Any context.
    fn ending(self: ArcBorrow<'_, Self>);

    /// Requests the close of the connection, which is done later. Any context.
    fn close(self: ArcBorrow<'_, Self>);

    /// Receives the data in the link: it may have arrived before the queue pair had a buffer for
    /// it. Does nothing before the stream starts. Process context; may sleep.
    fn catch_up(self: ArcBorrow<'_, Self>);

    /// Closes the connection. Process context; may sleep. On return
    /// [`Qp::detach`](super::Qp::detach) has been called, and no callback or work item of the
    /// connection uses the queue pair any more.
    fn teardown(self: ArcBorrow<'_, Self>);

    /// Ends the connection that `id` accepted, as
    /// [`CmOperations::abandon`](rdma::iw::CmOperations::abandon) says. Process context; may sleep.
    fn abandon(self: ArcBorrow<'_, Self>, id: &CmId) -> bool;
}

/// The side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The side that connected.
    Initiator,
    /// The side that accepted.
    Responder,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closed {
    /// The peer has ended its half in order, or both halves.
    Graceful,
    /// The peer reset it.
    Reset,
    /// This side reset it: its consumer gave it up, or its device is shut down.
    Aborted,
    /// The peer does not answer.
    Timeout,
}
