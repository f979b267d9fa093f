// SPDX-License-Identifier: GPL-2.0

//! A received segment with payload.

use crate::types::Stag;

/// A segment that carries payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Segment {
    /// A segment of a Send. The payload goes to the receive buffer of this message.
    Send {
        /// Message sequence number, from 1, modulo 2^32.
        msn: u32,
        /// Offset of the segment in the message, in octets. 0 begins a message; any other offset is
        /// the end of the segment before.
        mo: u32,
        /// Payload length in octets.
        len: u32,
        /// The last segment of its message. The message length is then `mo` + `len`.
        last: bool,
        /// The sender requests a solicited event.
        solicited: bool,
        /// The STag to invalidate when the message is delivered.
        invalidate: Option<Stag>,
    },
    /// A segment of an RDMA Write, for a buffer that was advertised to the peer.
    Write {
        /// The buffer.
        stag: Stag,
        /// Tagged Offset of the segment.
        to: u64,
        /// Payload length in octets. If it is 0, STag and offset must not be checked.
        len: u32,
        /// The last segment of its message.
        last: bool,
    },
    /// A segment of an RDMA Read Response, for the sink of the oldest outstanding read.
    ReadResponse {
        /// The sink.
        stag: Stag,
        /// Tagged Offset of the segment.
        to: u64,
        /// Payload length in octets.
        len: u32,
        /// The last segment of its message.
        last: bool,
    },
}

impl Segment {
    /// Returns the payload length in octets.
    #[inline]
    pub const fn len(&self) -> u32 {
        match self {
            Self::Send { len, .. } | Self::Write { len, .. } | Self::ReadResponse { len, .. } => {
                *len
            }
        }
    }

    /// Returns whether the segment has no payload.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether this is the last segment of its message.
    #[inline]
    pub const fn last(&self) -> bool {
        match self {
            Self::Send { last, .. }
            | Self::Write { last, .. }
            | Self::ReadResponse { last, .. } => *last,
        }
    }
}
