// SPDX-License-Identifier: GPL-2.0

//! Atomic Operations (RFC 7306 §5).

use crate::types::Stag;
use crate::wire::rdmap as wire;
use zerocopy::byteorder::network_endian::{U32, U64};
use zerocopy::FromBytes;

/// The operation of an Atomic Request. All values are 64 bits wide.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AtomicOp {
    /// Adds to each field of the target by itself (RFC 7306 §5.1.1).
    FetchAdd {
        /// The number to add.
        add: u64,
        /// The most significant bit of each field: no carry leaves it. 0: there is one field.
        mask: u64,
    },
    /// Swaps bits of the target if it has the expected value (RFC 7306 §5.1.2).
    CmpSwap {
        /// The new value.
        swap: u64,
        /// The bits that are swapped.
        swap_mask: u64,
        /// The expected value.
        compare: u64,
        /// The bits that are compared.
        compare_mask: u64,
    },
}

impl AtomicOp {
    /// Returns a FetchAdd of all 64 bits, which carries no mask.
    pub const fn fetch_add(add: u64) -> Self {
        Self::FetchAdd { add, mask: 0 }
    }

    /// Returns a CmpSwap of all 64 bits: compares with `compare`, and stores `swap`.
    pub const fn cmp_swap(compare: u64, swap: u64) -> Self {
        Self::CmpSwap {
            swap,
            swap_mask: u64::MAX,
            compare,
            compare_mask: u64::MAX,
        }
    }

    /// Returns the value of the target after the operation, if it was `original` before. The caller
    /// makes that atomic.
    #[must_use]
    pub const fn apply(self, original: u64) -> u64 {
        match self {
            Self::FetchAdd { add, mask } => {
                // Without the top bit of each field there is no carry out of it. Then add that bit,
                // without carry.
                let low = (original & !mask).wrapping_add(add & !mask);
                low ^ ((original ^ add) & mask)
            }
            Self::CmpSwap {
                swap,
                swap_mask,
                compare,
                compare_mask,
            } => {
                if (compare ^ original) & compare_mask == 0 {
                    original ^ ((original ^ swap) & swap_mask)
                } else {
                    original
                }
            }
        }
    }
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
    /// Tagged Offset of the target. Any value is valid. The embedder checks that the address of the
    /// target in memory is a multiple of 8, because only it knows the address (RFC 7306 §5.2.1,
    /// §8.2; refuse with [`Rdmap::UnalignedAtomic`](crate::Rdmap::UnalignedAtomic)).
    pub to: u64,
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
            wire::ATOMIC_FETCH_ADD => AtomicOp::FetchAdd {
                add: h.data.get(),
                mask: h.mask.get(),
            },
            wire::ATOMIC_CMP_SWAP => AtomicOp::CmpSwap {
                swap: h.data.get(),
                swap_mask: h.mask.get(),
                compare: h.compare.get(),
                compare_mask: h.compare_mask.get(),
            },
            _ => return None,
        };
        Some(Self {
            op,
            id: h.id.get(),
            stag: Stag(h.stag.get()),
            to: h.to.get(),
        })
    }

    /// Builds the header. The RFC fixes the fields that a FetchAdd does not use.
    pub(crate) fn wire(&self) -> wire::AtomicRequestHeader {
        let (opcode, data, mask, compare, compare_mask) = match self.op {
            AtomicOp::FetchAdd { add, mask } => (wire::ATOMIC_FETCH_ADD, add, mask, 0, u64::MAX),
            AtomicOp::CmpSwap {
                swap,
                swap_mask,
                compare,
                compare_mask,
            } => (
                wire::ATOMIC_CMP_SWAP,
                swap,
                swap_mask,
                compare,
                compare_mask,
            ),
        };
        wire::AtomicRequestHeader {
            opcode: U32::new(u32::from(opcode)),
            id: U32::new(self.id),
            stag: U32::new(self.stag.0),
            to: U64::new(self.to),
            data: U64::new(data),
            mask: U64::new(mask),
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
