// SPDX-License-Identifier: GPL-2.0

//! The responder's side of the negotiation (RFC 6581 §9).

use super::agreed::Agreed;
use super::depths::{Depths, NO_NEGOTIATION};
use super::rtr::{Rtr, RtrTypes};
use super::words::Words;

/// The request of an initiator, and the limits of this side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    words: Option<Words>,
    rtr: RtrTypes,
}

impl Request {
    /// Creates the request of an initiator that has sent these control words, if any. `rtr` has the
    /// RTR indications that this side allows.
    pub const fn new(words: Option<Words>, rtr: RtrTypes) -> Self {
        Self { words, rtr }
    }

    /// Returns whether the initiator has sent control words. The answer then has them, too.
    pub const fn enhanced(&self) -> bool {
        self.words.is_some()
    }

    /// Returns the number of Read Requests that the initiator accepts at a time, if it negotiates
    /// it. This side's ORD cannot exceed it.
    pub fn peer_ird(&self) -> Option<u32> {
        self.words.and_then(|words| words.depths.negotiated_ird())
    }

    /// Returns the number of Read Requests that the initiator wants outstanding, if it negotiates
    /// it. This side's IRD should be at least that.
    pub fn peer_ord(&self) -> Option<u32> {
        self.words.and_then(|words| words.depths.negotiated_ord())
    }

    /// Accepts. Returns the control words to send, if the initiator has sent some, and the result.
    ///
    /// `ird` and `ord` are the ULP's values: Read Requests that this side accepts at a time and
    /// keeps outstanding. ORD is lowered to the initiator's IRD. IRD is raised from 0 to 1 if the
    /// initiator's first message will be an RDMA Read. Depths that the initiator does not negotiate
    /// stay unchanged (RFC 6581 §9.1).
    pub fn accept(&self, ird: u32, ord: u32) -> (Option<Words>, Agreed) {
        let rtr = self.choose_rtr();
        let Depths { mut ird, mut ord } = Depths::clamped(ird, ord);
        if rtr == Some(Rtr::Read) {
            ird = ird.max(1);
        }
        if let Some(peer) = self.peer_ird() {
            ord = ord.min(peer);
        }
        let words = self.words.map(|peer| Words {
            depths: Depths {
                ird: answer(peer.depths.ord, ird),
                ord: answer(peer.depths.ird, ord),
            },
            rtr: rtr.map(RtrTypes::from),
        });
        let agreed = Agreed {
            ird,
            ord,
            rtr,
            peer_ird: self.peer_ird(),
            peer_ord: self.peer_ord(),
        };
        (words, agreed)
    }

    /// Rejects. Returns the control words to send, if the initiator has sent some: its own depths,
    /// swapped.
    pub fn reject(&self) -> Option<Words> {
        self.words.map(|peer| Words {
            depths: Depths {
                ird: peer.depths.ord,
                ord: peer.depths.ird,
            },
            rtr: self.choose_rtr().map(RtrTypes::from),
        })
    }

    /// Returns the RTR indication for the answer if the initiator requests the peer-to-peer model:
    /// one that both sides support, else one of this side (RFC 6581 §9.2). It is a single one, so
    /// that both sides know it.
    fn choose_rtr(&self) -> Option<Rtr> {
        let wanted = self.words?.rtr?;
        let common = self.rtr.intersection(wanted);
        // A responder must support at least one; the receiver supports all.
        common.choose().or(self.rtr.choose()).or(Some(Rtr::Write))
    }
}

/// Returns this side's depth for the answer, unless the initiator leaves the depth to the ULP.
const fn answer(peer: u32, mine: u32) -> u32 {
    if peer == NO_NEGOTIATION {
        NO_NEGOTIATION
    } else {
        mine
    }
}
