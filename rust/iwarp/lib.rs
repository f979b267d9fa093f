// SPDX-License-Identifier: GPL-2.0

//! The iWARP protocols without I/O: MPA (RFC 5044, RFC 6581) and DDP's adaptation to SCTP (RFC
//! 5043), DDP (RFC 5041) and RDMAP (RFC 5040, with the wire formats of RFC 7306).
//!
//! Bytes go in, decisions come out; sockets, memory and time belong to the embedder.
//!
//! - [`startup`]: the frames that open a connection, and their negotiation.
//! - [`traits`]: the interfaces with the embedder, and of DDP with a lower layer.
//! - [`Segmenter`]: cuts messages into DDP segments and hands a [`Gather`] header bytes and payload
//!   ranges, framed by a [`Framing`].
//! - [`Receiver`]: finds DDP segments in the stream's [`Octets`] by a [`Deframing`], checks them,
//!   and yields one after the other with its [`Content`] and the place of its payload.
//! - [`mpa`]: the lower layer over TCP, whose frames are FPDUs.
//! - [`sctp`]: the lower layer over SCTP, whose frames are chunks.
//! - [`Region`]: checks accesses to registered memory.
//! - [`Error`]: every protocol error, its Terminate code and the rule that it breaks.
//! - [`qp`]: the states of a queue pair.
//!
//! No two files import each other. A file imports only from its own layer and from those before it:
//! - `types`, `error`, `rule`, `wire`, `ddp`, `rdmap`, `access`, `qp`, `negotiation`: values,
//!   headers, messages;
//! - `traits`;
//! - `tx` and `rx`, which use the lower layer by its traits, and `mpa` and `sctp`, which import
//!   neither them nor each other.
//!
//! No function allocates, blocks or panics, whatever the input. All state is of fixed size. Every
//! function may be called in any context; none takes a lock.

#![cfg_attr(not(CONFIG_RUST), no_std)]
#![crate_name = "iwarp"]
#![forbid(unsafe_code)]
#![deny(
    missing_docs,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::arithmetic_side_effects,
    clippy::as_conversions
)]

pub mod access;
pub mod ddp;
pub mod error;
pub mod mpa;
pub mod negotiation;
pub mod qp;
pub mod rdmap;
mod rule;
pub mod rx;
pub mod sctp;
pub mod traits;
pub mod tx;
pub mod types;
pub mod wire;

pub use access::{Access, Denied, Region};
pub use error::{DdpTagged, DdpUntagged, Error, Local, Mpa, Rdmap, Sctp, TermCode};
pub use mpa::{startup, RxConfig, TxConfig};
pub use rdmap::{AtomicOp, AtomicRequest, AtomicResponse, Message, Outstanding, ReadRequest};
pub use rdmap::{Content, Quote, Segment, Taker, Terminate, Terminated};
pub use rx::{CheckedFrame, CheckedSegment, Receiver};
pub use traits::{Crc, Crc32c, Deframed, Deframing, Framing, Gather, Octets};
pub use tx::{Busy, Emitted, Segmenter};
pub use types::Stag;
