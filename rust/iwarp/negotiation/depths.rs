// SPDX-License-Identifier: GPL-2.0

//! Read depths: IRD and ORD (RFC 6581 §9.1).

/// IRD or ORD value that leaves the depth to the ULP (RFC 6581 §9.1).
pub const NO_NEGOTIATION: u32 = 0x3fff;
/// The largest IRD or ORD that can be negotiated.
pub const DEPTH_MAX: u32 = 0x3ffe;

/// The read depths in an enhanced frame, from its sender's view (RFC 6581 §9.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Depths {
    /// Read Requests that the sender accepts at a time; [`NO_NEGOTIATION`] leaves it to the ULP.
    pub ird: u32,
    /// Read Requests that the sender keeps outstanding; [`NO_NEGOTIATION`] leaves it to the ULP.
    pub ord: u32,
}

impl Depths {
    /// Creates depths that fit in a frame: values above the maximum become the maximum.
    pub(crate) const fn clamped(ird: u32, ord: u32) -> Self {
        Self {
            ird: clamp(ird),
            ord: clamp(ord),
        }
    }

    /// Returns the IRD, unless it is left to the ULP.
    pub const fn negotiated_ird(&self) -> Option<u32> {
        negotiated(self.ird)
    }

    /// Returns the ORD, unless it is left to the ULP.
    pub const fn negotiated_ord(&self) -> Option<u32> {
        negotiated(self.ord)
    }
}

const fn clamp(depth: u32) -> u32 {
    if depth > NO_NEGOTIATION {
        DEPTH_MAX
    } else {
        depth
    }
}

const fn negotiated(depth: u32) -> Option<u32> {
    if depth == NO_NEGOTIATION {
        None
    } else {
        Some(depth)
    }
}
