// SPDX-License-Identifier: GPL-2.0

//! The settings of one side for a connection.

use crate::negotiation::RtrTypes;

/// CRC policy of this side. Both sides use CRCs if either sets the C bit (RFC 5044 §7.1.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CrcPolicy {
    /// Do not use CRCs; refuse a peer that requires them.
    Off,
    /// Use CRCs if the peer requires them.
    Offer,
    /// Use CRCs. The default that RFC 5044 §4.4 demands.
    Require,
}

/// Connection policy of this side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Policy {
    /// The highest revision, 1 or 2. An initiator sends this one; a responder accepts it and lower
    /// ones.
    pub revision: u8,
    /// CRCs.
    pub crc: CrcPolicy,
    /// Require markers from the peer.
    pub markers: bool,
    /// As initiator: request the peer-to-peer model (RFC 6581 §9.2). Needs revision 2. A responder
    /// follows the initiator.
    pub peer_to_peer: bool,
    /// The allowed RTR indications.
    pub rtr: RtrTypes,
    /// As initiator: the largest IRD of this side. If the responder's ORD exceeds the requested
    /// IRD, IRD rises up to this.
    pub ird_max: u32,
}

impl Policy {
    /// Revision 2, CRCs, no markers, client-server model, every RTR indication, fixed IRD.
    pub const DEFAULT: Self = Self {
        revision: 2,
        crc: CrcPolicy::Require,
        markers: false,
        peer_to_peer: false,
        rtr: RtrTypes::ALL,
        ird_max: 0,
    };
}

impl Default for Policy {
    fn default() -> Self {
        Self::DEFAULT
    }
}
