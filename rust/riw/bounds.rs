// SPDX-License-Identifier: GPL-2.0

//! The bounds on the kernel's memory that a peer can take, and that no process of this host has
//! asked for.
//!
//! Besides these, a connection holds
//!
//! - in its socket what arrives and what is sent, within the socket's buffers; also while it is
//!   half-open, when the peer sends on behind its Request;
//! - over TCP a buffer for an FPDU that the socket cannot hold until it is complete, [`FPDU_MAX`]
//!   bytes, for which the kernel may take 128 KiB (`link/tcp/fpdus.rs`);
//! - over TLS a buffer of 128 KiB (`link/tls/inlet.rs`), charged to the owner of its queue pair;
//! - over SCTP a mark and 48 bytes for each of the 8191 chunks that may be ahead
//!   (`link/sctp/inlet.rs`, `held.rs`);
//! - in its queue pair a Read Request of the peer for each place of the IRD, at most
//!   [`MAX_READS`](crate::limits::MAX_READS).
//!
//! `Documentation/safety.md` says who is charged.

use iwarp::mpa::fpdu::FPDU_MAX;

// --- a listener

/// Half-open connections of a subscription. Each takes some 5 KiB of TCP and riw together, and what
/// its socket has received.
pub(crate) const HALF_OPEN_MAX: usize = 1024;

/// The length of the accept queue; a larger backlog of the consumer makes it longer, although that
/// backlog limits connections whose Request has arrived. It is not higher: a connection that waits
/// here for too long has been given up by its peer.
pub(crate) const ACCEPT_QUEUE_MIN: u32 = 256;

// --- a device

/// Connections that linger. More are reset. No process is charged for them, and a peer that does
/// not answer keeps each for 10 s at least. There are places for all connections of a large server
/// that ends. Without data, at some 5 KiB each, they take 80 MiB. TCP limits the closed sockets of
/// processes (`net.ipv4.tcp_max_orphans`), but does not count these: they are not released.
pub(crate) const LINGERING_MAX: usize = 16_384;
/// Refused connections among them. More are reset.
pub(crate) const REFUSED_MAX: usize = 1024;

// --- a connection over TCP

/// Unread bytes that a socket must have room for. They are several FPDUs, so that the window stays
/// open while one of them is incomplete.
// CAST: A small constant.
pub(crate) const RX_ROOM: u32 = 4 * FPDU_MAX as u32;

// --- a connection over SCTP

/// Bytes of the user data of the first chunk: an Initiate has up to 520.
pub(crate) const FIRST_CHUNK_MAX: usize = 1024;
/// Bytes that chunks may take that are ahead of a missing one. As long as it is missing, the peer's
/// send buffer has them, too.
pub(crate) const HELD_MAX: u32 = 4 * 1024 * 1024;
/// Addresses of a responder: a wildcard listener has all those of its host.
pub(crate) const RESPONDER_ADDRS_MAX: u32 = 32;
/// Addresses of an initiator: riw connects from 8 at most.
pub(crate) const INITIATOR_ADDRS_MAX: u32 = 8;
