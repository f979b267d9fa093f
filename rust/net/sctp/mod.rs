// SPDX-License-Identifier: GPL-2.0

//! Kernel SCTP sockets, in the one-to-one style: a socket has one association.
//!
//! Messages are sent unordered, on the only stream, and received in process context; callbacks only
//! report that one has arrived ([`AnyEvent`](crate::AnyEvent)).
//!
//! C headers: [`include/net/sctp/structs.h`](srctree/include/net/sctp/structs.h),
//! [`include/uapi/linux/sctp.h`](srctree/include/uapi/linux/sctp.h)

mod message;
mod module;
mod socket;
mod watch;

pub use message::{MessageBuf, NoPart};
pub use socket::{is_restart, Look, Part, PartKind, Phase, SctpListenSocket, SctpSocket};
