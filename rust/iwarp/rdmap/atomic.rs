// SPDX-License-Identifier: GPL-2.0

//! Atomic Operations (RFC 7306 §5).

use crate::types::Stag;
use crate::wire::rdmap as wire;
use zerocopy::byteorder::network_endian::{U32, U64};
use zerocopy::FromBytes;

/// The operation of an Atomic Request. All values are 64 bits wide.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AtomicOp {
    /// Add, in the fields that the mask separates (RFC 7306 §5.1.1).
    FetchAdd,
    /// Swap under a mask if the target equals the compare data under another (RFC 7306 §5.1.2).
    CmpSwap,
}

/// An Atomic Request (RFC 7306 §5.2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AtomicRequest {
    /// The operation.
    pub op: AtomicOp,
    /// The requester's identifier, returned in the response.
    pub id: u32,
    /// The target, at the responder.
    pub stag: Stag,
    /// Tagged Offset of the target. The embedder checks that the address is a multiple of 8,
    /// because only it knows the address (RFC 7306 §8.2; refuse with
    /// [`Rdmap::CatastrophicStream`](crate::Rdmap::CatastrophicStream)).
    pub to: u64,
    /// Add or swap data.
    pub data: u64,
    /// Add or swap mask.
    pub mask: u64,
    /// Compare data; ignored for [`AtomicOp::FetchAdd`].
    pub compare: u64,
    /// Compare mask; ignored for [`AtomicOp::FetchAdd`].
    pub compare_mask: u64,
}

/// An Atomic Response (RFC 7306 §5.2.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AtomicResponse {
    /// The identifier of the request.
    pub id: u32,
    /// The value of the target before the operation.
    pub original: u64,
}

impl AtomicRequest {
    /// Parses a request header. Returns `None` for an unknown atomic opcode. `data` is at least as
    /// long as the header.
    pub(crate) fn parse(data: &[u8]) -> Option<Self> {
        let (h, _) = wire::AtomicRequestHeader::read_from_prefix(data).ok()?;
        let [.., opcode] = h.opcode.get().to_be_bytes();
        let op = match opcode & 0xf {
            wire::ATOMIC_FETCH_ADD => AtomicOp::FetchAdd,
            wire::ATOMIC_CMP_SWAP => AtomicOp::CmpSwap,
            _ => return None,
        };
        Some(Self {
            op,
            id: h.id.get(),
            stag: Stag(h.stag.get()),
            to: h.to.get(),
            data: h.data.get(),
            mask: h.mask.get(),
            compare: h.compare.get(),
            compare_mask: h.compare_mask.get(),
        })
    }

    /// Builds the header. The RFC fixes the fields that a FetchAdd does not use.
    pub(crate) fn wire(&self) -> wire::AtomicRequestHeader {
        let (opcode, compare, compare_mask) = match self.op {
            AtomicOp::FetchAdd => (wire::ATOMIC_FETCH_ADD, 0, u64::MAX),
            AtomicOp::CmpSwap => (wire::ATOMIC_CMP_SWAP, self.compare, self.compare_mask),
        };
        wire::AtomicRequestHeader {
            opcode: U32::new(u32::from(opcode)),
            id: U32::new(self.id),
            stag: U32::new(self.stag.0),
            to: U64::new(self.to),
            data: U64::new(self.data),
            mask: U64::new(self.mask),
            compare: U64::new(compare),
            compare_mask: U64::new(compare_mask),
        }
    }
}

impl AtomicResponse {
    /// Parses a response header. `data` is at least as long as the header.
    pub(crate) fn parse(data: &[u8]) -> Option<Self> {
        let (h, _) = wire::AtomicResponseHeader::read_from_prefix(data).ok()?;
        Some(Self {
            id: h.id.get(),
            original: h.original.get(),
        })
    }

    /// Builds the header.
    pub(crate) fn wire(&self) -> wire::AtomicResponseHeader {
        wire::AtomicResponseHeader {
            id: U32::new(self.id),
            original: U64::new(self.original),
        }
    }
}
