// SPDX-License-Identifier: GPL-2.0

//! The initiator's side of the negotiation (RFC 6581 §9).

use super::agreed::{Agreed, Disagreement};
use super::depths::Depths;
use super::rtr::{Rtr, RtrTypes};
use super::words::Words;

/// The proposal of an initiator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Proposal {
    words: Words,
    /// The largest IRD of this side.
    ird_max: u32,
}

impl Proposal {
    /// Creates a proposal.
    ///
    /// `ird` is the number of Read Requests that this side accepts at a time, `ord` the number that
    /// it wants outstanding; [`NO_NEGOTIATION`](super::NO_NEGOTIATION) leaves either to the ULP. If
    /// the responder's ORD exceeds `ird`, IRD rises up to `ird_max`. `rtr` requests the
    /// peer-to-peer model with one of these RTR indications.
    pub const fn new(ird: u32, ord: u32, ird_max: u32, rtr: Option<RtrTypes>) -> Self {
        Self {
            words: Words {
                depths: Depths::clamped(ird, ord),
                rtr,
            },
            ird_max,
        }
    }

    /// Returns the control words to send.
    pub const fn words(&self) -> Words {
        self.words
    }

    /// Concludes the negotiation. `answer` has the responder's control words; without them the
    /// depths stay as they are.
    ///
    /// # Errors
    ///
    /// This side cannot follow the responder. The responder considers the connection established;
    /// send it a Terminate with [`Disagreement::error`].
    pub fn conclude(&self, answer: Option<Words>) -> Result<Agreed, Disagreement> {
        let mine = self.words.depths;
        let peer_ird = answer.and_then(|words| words.depths.negotiated_ird());
        let peer_ord = answer.and_then(|words| words.depths.negotiated_ord());
        // The responder's ORD is the minimum for this side's IRD. Its IRD is the maximum for this
        // side's ORD (RFC 6581 §9.1).
        let ird = mine.ird.max(peer_ord.unwrap_or(0));
        if ird > mine.ird.max(self.ird_max) {
            return Err(Disagreement::InsufficientIrd);
        }
        let ord = match peer_ird {
            Some(peer) => mine.ord.min(peer),
            None => mine.ord,
        };
        Ok(Agreed {
            ird,
            ord,
            rtr: self.rtr(answer, peer_ird)?,
            peer_ird,
            peer_ord,
        })
    }

    /// Returns the RTR indication to send, in the peer-to-peer model (RFC 6581 §9.2).
    fn rtr(
        &self,
        answer: Option<Words>,
        peer_ird: Option<u32>,
    ) -> Result<Option<Rtr>, Disagreement> {
        let Some(mine) = self.words.rtr else {
            return Ok(None);
        };
        let offered = answer
            .and_then(|words| words.rtr)
            .ok_or(Disagreement::NoRtr)?;
        let mut common = mine.intersection(offered);
        if peer_ird == Some(0) {
            // A responder with IRD 0 cannot accept a zero-length RDMA Read.
            common = common.intersection(RtrTypes::SEND.union(RtrTypes::WRITE));
        }
        common.choose().map(Some).ok_or(Disagreement::NoRtr)
    }
}
