// SPDX-License-Identifier: GPL-2.0

//! DDP over SCTP (RFC 5043): an association, with the session of its one DDP stream.
//!
//! - An [`Association`] is one end, as a [`Connection`](super::Connection) is.
//! - Its [`Inlet`] sorts the received chunks, and passes them to the session in order.
//!   [`Reorder`](super::Reorder) has the treatment of chunks that are ahead of a missing one.
//! - `session.rs` has the functions of a [`Link`](super::Link) for it, and `startup.rs` what begins
//!   it.
//!
//! Messages are received in process context: SCTP has no other way. The inlet is locked meanwhile,
//! and the connection only for each message, so that a transmit run goes on.

mod association;
mod chunk;
mod held;
mod inlet;
mod listen_socket;
mod session;
mod startup;

pub(super) use association::load;
pub(crate) use association::Association;
use association::PeerSupport;
pub(crate) use inlet::Inlet;
pub(crate) use listen_socket::{SctpListener, UnboundSctp};
pub(super) use startup::accept;
pub(crate) use startup::{AwaitedInitiate, SctpResponder, SctpStartup};
