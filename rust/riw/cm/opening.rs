// SPDX-License-Identifier: GPL-2.0

//! The state of a connection that is being opened.

use crate::link::{AddrPair, Connection, Deadline};
use iwarp::{
    sctp::Form,
    startup::{Initiator, Reader},
};
use kernel::{prelude::*, sync::aref::ARef};
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
    /// The deadline of the phase.
    pub(super) deadline: Deadline,
    /// When the consumer, which may wait, gets the connect reply at the latest, over all attempts.
    pub(super) limit: Deadline,
}

/// The startup of a connection that is being opened.
pub(super) enum Startup {
    Mpa(MpaStartup),
    Sctp(SctpStartup),
}

/// The startup by MPA's frames.
pub(super) struct MpaStartup {
    pub(super) initiator: Initiator,
    /// The same Request may be sent once more, if the peer closes without a Reply.
    pub(super) repeat: bool,
    /// For a peer that does not know revision 2 of MPA.
    pub(super) fallback: Option<Initiator>,
    /// The private data of the Request.
    pub(super) private: KVec<u8>,
    pub(super) reader: KBox<Reader>,
}

/// The startup by session control chunks (RFC 5043, RFC 6581 section 7).
pub(super) struct SctpStartup {
    pub(super) form: Form,
    pub(super) ird: u32,
    pub(super) ord: u32,
    /// The private data of the Initiate.
    pub(super) private: KVec<u8>,
    /// The private data of the answer.
    pub(super) reply: KVec<u8>,
    /// IRD and ORD of the answer, if it negotiates them.
    pub(super) depths: (Option<u32>, Option<u32>),
}
