// SPDX-License-Identifier: GPL-2.0

//! The responder's side of the startup.

use super::frame::{Frame, Kind, OutFrame, Reader};
use super::{CrcPolicy, Depths, Parameters, Policy, Rtr, RtrTypes, StartupError, NO_NEGOTIATION};

/// A Request that is to be refused without asking the ULP.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// Why.
    pub error: StartupError,
    /// A Reply to be sent before the connection is closed, if the protocol allows one.
    pub reply: Option<OutFrame>,
}

/// A responder that has a valid Request and decides what to answer. About 600 octets.
#[derive(Clone, Debug)]
pub struct Responder {
    policy: Policy,
    request: Frame,
    reader: Reader,
}

impl Responder {
    /// Judges the Request that `reader` has collected.
    ///
    /// # Errors
    ///
    /// Incomplete or malformed, or of a revision that is not spoken here: the connection is to be
    /// closed without a Reply (RFC 5044 §7.1.1, §7.1.2). The peer requires CRCs and they are off:
    /// it is to be closed after a rejecting Reply.
    // A frame is what it is, and there is no heap to put it.
    #[allow(clippy::result_large_err)]
    pub fn request(reader: &Reader, policy: &Policy) -> Result<Self, Refusal> {
        let refuse = |error| Refusal { error, reply: None };
        let request = reader
            .frame()
            .ok_or_else(|| refuse(StartupError::Incomplete))?;
        if request.revision < 1 || request.revision > policy.revision.min(2) {
            return Err(refuse(StartupError::Revision));
        }
        if reader.truncated() {
            return Err(refuse(StartupError::Length));
        }
        let this = Self {
            policy: *policy,
            request,
            reader: reader.clone(),
        };
        if request.crc && policy.crc == CrcPolicy::Off {
            return Err(Refusal {
                error: StartupError::Crc,
                reply: this.reject(&[]).ok(),
            });
        }
        Ok(this)
    }

    /// What the Request says.
    pub const fn frame(&self) -> &Frame {
        &self.request
    }

    /// The ULP's private data of the Request.
    pub fn private_data(&self) -> &[u8] {
        self.reader.private_data()
    }

    /// Read Requests that the initiator takes at a time, if it negotiates that: the most that
    /// this side's ORD can become.
    pub fn peer_ird(&self) -> Option<u32> {
        self.request.depths.and_then(|d| d.negotiated_ird())
    }

    /// Read Requests that the initiator would like to have outstanding, if it negotiates that:
    /// what this side's IRD should be at least.
    pub fn peer_ord(&self) -> Option<u32> {
        self.request.depths.and_then(|d| d.negotiated_ord())
    }

    /// Makes the Reply that accepts, and says what was agreed upon.
    ///
    /// `ird` and `ord` are what the ULP wants: Read Requests this side takes, and has outstanding,
    /// at a time. ORD is lowered to the initiator's IRD. IRD becomes 1 if it is 0 and the
    /// initiator's first message is to be an RDMA Read. What the initiator does not negotiate
    /// stays as it is (RFC 6581 §9.1).
    ///
    /// Until the initiator's first FPDU has come nothing more may be sent (RFC 5044 §7.1.2 rule
    /// 4).
    ///
    /// # Errors
    ///
    /// The private data does not fit: 512 octets, 508 if the Request is enhanced.
    pub fn accept(
        &self,
        ird: u32,
        ord: u32,
        private: &[u8],
    ) -> Result<(OutFrame, Parameters), StartupError> {
        let rtr = self.rtr();
        let Depths { mut ird, mut ord } = Depths::clamped(ird, ord);
        if rtr == Some(Rtr::Read) {
            ird = ird.max(1);
        }
        if let Some(peer) = self.peer_ird() {
            ord = ord.min(peer);
        }
        let depths = self.request.depths.map(|peer| Depths {
            ird: answer(peer.ord, ird),
            ord: answer(peer.ird, ord),
        });
        let crc = self.request.crc || self.policy.crc == CrcPolicy::Require;
        let frame = self.reply(crc, false, depths, rtr);
        let parameters = Parameters {
            crc,
            rx_markers: self.policy.markers,
            tx_markers: self.request.markers,
            ird,
            ord,
            revision: self.request.revision,
            rtr,
            peer_ird: self.peer_ird(),
            peer_ord: self.peer_ord(),
        };
        Ok((OutFrame::new(Kind::Reply, &frame, private)?, parameters))
    }

    /// Makes the Reply that rejects. The depths in it are the initiator's own, turned round.
    ///
    /// # Errors
    ///
    /// The private data does not fit: 512 octets, 508 if the Request is enhanced.
    pub fn reject(&self, private: &[u8]) -> Result<OutFrame, StartupError> {
        let depths = self.request.depths.map(|peer| Depths {
            ird: peer.ord,
            ord: peer.ird,
        });
        let crc = self.policy.crc == CrcPolicy::Require;
        let frame = self.reply(crc, true, depths, self.rtr());
        OutFrame::new(Kind::Reply, &frame, private)
    }

    /// A Reply in the revision and format of the Request (RFC 6581 §10).
    fn reply(&self, crc: bool, reject: bool, depths: Option<Depths>, rtr: Option<Rtr>) -> Frame {
        Frame {
            markers: self.policy.markers,
            crc,
            reject,
            revision: self.request.revision,
            depths,
            rtr: rtr.map(RtrTypes::from),
        }
    }

    /// The RTR indication of the Reply, if the Request wants the peer-to-peer model: one that
    /// both have, or else one that this side has (RFC 6581 §9.2). It is a single one, so that
    /// both sides know which will come.
    fn rtr(&self) -> Option<Rtr> {
        let wanted = self.request.rtr?;
        let mine = self.policy.rtr;
        let common = mine.intersection(wanted);
        // A responder has to support at least one; the receiver supports them all.
        common.choose().or(mine.choose()).or(Some(Rtr::Write))
    }
}

/// A depth of the Reply: this side's, unless the initiator leaves the matter to the ULP.
const fn answer(peer: u32, mine: u32) -> u32 {
    if peer == NO_NEGOTIATION {
        NO_NEGOTIATION
    } else {
        mine
    }
}
