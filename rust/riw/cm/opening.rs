// SPDX-License-Identifier: GPL-2.0

//! The state of a connection that is being opened.

use crate::{
    link::{AddrPair, Connection, Deadline, Startup},
    stream::StartRoom,
};
use kernel::sync::aref::ARef;
use rdma::iw::CmId;

/// A connection that is being opened.
pub(super) struct Opening {
    /// iw_cm's id, which waits for the connect reply.
    pub(super) id: ARef<CmId>,
    /// The addresses; the local one as far as it is known.
    pub(super) addrs: AddrPair,
    pub(super) startup: Startup,
    /// To be tried if the first transport does not connect, and the connection for it.
    pub(super) fallback: Option<(Startup, Connection)>,
    /// Memory for the stream, until that starts.
    pub(super) room: Option<StartRoom>,
    /// The deadline of the phase.
    pub(super) deadline: Deadline,
    /// When the consumer, which may wait, gets the connect reply at the latest, over all attempts.
    pub(super) limit: Deadline,
}
