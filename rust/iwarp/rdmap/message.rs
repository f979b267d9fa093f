// SPDX-License-Identifier: GPL-2.0

//! The messages of RDMAP (RFC 5040 §5, RFC 7306 §5, §6), as a sender starts them.

use crate::rdmap::atomic::{AtomicRequest, AtomicResponse};
use crate::rdmap::read::ReadRequest;
use crate::rdmap::terminate::Terminate;
use crate::types::Stag;

/// A message to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message {
    /// A Send of any of the four types (RFC 5040 §5.3).
    Send {
        /// With Solicited Event.
        solicited: bool,
        /// With Invalidate of this STag of the peer.
        invalidate: Option<Stag>,
    },
    /// An RDMA Write (RFC 5040 §5.1).
    Write {
        /// The peer's buffer.
        stag: Stag,
        /// Tagged Offset of the first octet.
        to: u64,
    },
    /// An RDMA Read Request.
    ReadRequest(ReadRequest),
    /// An RDMA Read Response to the sink in the request.
    ReadResponse {
        /// The requester's buffer.
        stag: Stag,
        /// Tagged Offset of the first octet.
        to: u64,
    },
    /// A Terminate. No message may follow it.
    Terminate(Terminate),
    /// Immediate Data (RFC 7306 §6).
    Immediate {
        /// The data.
        data: [u8; 8],
        /// With Solicited Event.
        solicited: bool,
    },
    /// An Atomic Request (RFC 7306 §5.2.1).
    AtomicRequest(AtomicRequest),
    /// An Atomic Response (RFC 7306 §5.2.2).
    AtomicResponse(AtomicResponse),
}

impl Message {
    /// Returns whether the segments of the message are for a Tagged Buffer (RFC 5040 §4.1).
    #[inline]
    pub const fn is_tagged(&self) -> bool {
        matches!(self, Self::Write { .. } | Self::ReadResponse { .. })
    }
}
