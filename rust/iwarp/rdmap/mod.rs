// SPDX-License-Identifier: GPL-2.0

//! RDMAP (RFC 5040) and its extensions (RFC 7306): its messages, and the headers behind DDP's.

pub mod atomic;
pub mod content;
pub mod message;
pub mod read;
pub mod segment;
pub mod terminate;

pub use atomic::{AtomicOp, AtomicRequest, AtomicResponse};
pub use content::{Content, Taker};
pub use message::Message;
pub use read::{Outstanding, ReadRequest};
pub use segment::Segment;
pub use terminate::{Quote, Terminate, Terminated};
