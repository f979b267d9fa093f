// SPDX-License-Identifier: GPL-2.0

//! The content of a received segment: payload, or a message that consists of one header.

use crate::rdmap::atomic::{AtomicRequest, AtomicResponse};
use crate::rdmap::read::ReadRequest;
use crate::rdmap::segment::Segment;
use crate::rdmap::terminate::Terminated;

/// The content of a segment whose headers are valid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content {
    /// Payload. The embedder checks state, rights, protection domain and bounds. It must not check
    /// STag and offset of an RDMA Write without payload (RFC 5041 §5.2).
    Payload(Segment),
    /// A Read Request. The embedder enforces IRD and checks the source. It must not check a request
    /// for 0 octets, and must answer it (RFC 5040 §5.2.1). If it finds an error later, it builds
    /// the Terminate from [`Quote::read_request`](crate::Quote::read_request).
    ReadRequest {
        /// The request.
        request: ReadRequest,
        /// Its message sequence number.
        msn: u32,
    },
    /// An Atomic Request (RFC 7306). It counts as a Read Request for IRD.
    AtomicRequest {
        /// The request.
        request: AtomicRequest,
        /// Its message sequence number.
        msn: u32,
    },
    /// An Atomic Response (RFC 7306).
    AtomicResponse {
        /// The response.
        response: AtomicResponse,
        /// Its message sequence number.
        msn: u32,
    },
    /// Immediate Data (RFC 7306).
    Immediate {
        /// The data.
        data: [u8; 8],
        /// The sender requests a solicited event.
        solicited: bool,
        /// Its message sequence number.
        msn: u32,
    },
    /// The peer's Terminate. The stream is dead; later data means nothing.
    Terminate(Terminated),
}

/// A message that takes a receive WQE.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taker {
    /// A Send of any kind.
    Send,
    /// Immediate Data (RFC 7306).
    Immediate,
}

impl Content {
    /// Returns the kind of the message that the segment begins, if it takes a receive WQE.
    #[inline]
    pub const fn takes_receive(&self) -> Option<Taker> {
        match self {
            Self::Payload(Segment::Send { mo: 0, .. }) => Some(Taker::Send),
            Self::Immediate { .. } => Some(Taker::Immediate),
            _ => None,
        }
    }
}
