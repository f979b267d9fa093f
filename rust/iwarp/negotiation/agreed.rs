// SPDX-License-Identifier: GPL-2.0

//! The result of a negotiation.

use super::rtr::Rtr;
use crate::error::Mpa;

/// The agreement of both sides, from this side's view.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Agreed {
    /// Read Requests that this side must accept at a time.
    pub ird: u32,
    /// Read Requests that this side may keep outstanding.
    pub ord: u32,
    /// Set in the peer-to-peer model: the indication that the initiator sends first.
    pub rtr: Option<Rtr>,
    /// The IRD that the peer sent, if negotiated.
    pub peer_ird: Option<u32>,
    /// The ORD that the peer sent, if negotiated.
    pub peer_ord: Option<u32>,
}

/// The reason an initiator cannot follow the responder's answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Disagreement {
    /// The responder's ORD exceeds the largest IRD of this side.
    InsufficientIrd,
    /// No RTR indication in common.
    NoRtr,
}

impl Disagreement {
    /// Returns the error for the Terminate to the responder. RFC 6581 §8 uses the numbers of MPA's
    /// errors over each lower layer.
    pub const fn error(self) -> Mpa {
        match self {
            Self::InsufficientIrd => Mpa::InsufficientIrd,
            Self::NoRtr => Mpa::NoRtr,
        }
    }
}
