// SPDX-License-Identifier: GPL-2.0

//! TLS 1.3 below MPA: TCP, whose octets the kernel encrypts.
//!
//! - A [`TlsConnection`] is one end, as a [`Connection`](super::Connection) is. It is established
//!   once a process (tlshd) has made the handshake (`handshake.rs`).
//! - Its [`RecordInlet`] has the octets that were decrypted and that the stream has not taken.
//!   `session.rs` fills it.
//!
//! There is no standard for this, and so no other peer than riw. Octets that are not encrypted are
//! neither sent nor received, whatever the peer does.
//!
//! Octets are received in process context: TLS has no other way. The inlet is locked meanwhile, and
//! the connection only for each read, so that a transmit run goes on.

mod connection;
mod fault;
mod handshake;
mod inlet;
mod queue;
mod session;

pub(crate) use connection::TlsConnection;
pub(in crate::link) use fault::TlsFault;
pub(super) use inlet::RecordInlet;
pub(in crate::link) use queue::HandshakeQueue;
