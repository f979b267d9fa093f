// SPDX-License-Identifier: GPL-2.0

//! RDMAP (RFC 5040) and its extensions (RFC 7306): opcodes, the headers behind DDP's, and the
//! handling of received messages.

pub mod atomic;
pub(crate) mod inbound;
pub mod message;
pub mod read;
pub mod segment;
pub mod terminate;

pub use atomic::{AtomicOp, AtomicRequest, AtomicResponse};
pub use message::Message;
pub use read::{Outstanding, ReadRequest};
pub use segment::Segment;
pub use terminate::{Quote, Terminate, Terminated};
