// SPDX-License-Identifier: GPL-2.0

//! The responder's side of the startup.

use super::depths::{Depths, NO_NEGOTIATION};
use super::error::StartupError;
use super::frame::{Frame, Kind, OutFrame, Reader};
use super::parameters::Parameters;
use super::policy::{CrcPolicy, Policy};
use super::rtr::{Rtr, RtrTypes};

/// A Request to be refused without asking the ULP.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The reason.
    pub error: StartupError,
    /// A Reply to send before the close, if the protocol allows one.
    pub reply: Option<OutFrame>,
}

/// A responder that has received a valid Request. About 600 octets.
#[derive(Clone, Debug)]
pub struct Responder {
    policy: Policy,
    request: Frame,
    reader: Reader,
}

impl Responder {
    /// Checks the Request in `reader`.
    ///
    /// # Errors
    ///
    /// Incomplete, malformed or of an unsupported revision: close the connection without a Reply
    /// (RFC 5044 §7.1.1, §7.1.2). The peer requires CRCs and the policy is off: send the rejecting
    /// Reply, then close.
    // A frame is large, and there is no heap.
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

    /// Returns the Request.
    pub const fn frame(&self) -> &Frame {
        &self.request
    }

    /// Returns the ULP's private data in the Request.
    pub fn private_data(&self) -> &[u8] {
        self.reader.private_data()
    }

    /// Returns the number of Read Requests that the initiator accepts at a time, if it negotiates
    /// it. This side's ORD cannot exceed it.
    pub fn peer_ird(&self) -> Option<u32> {
        self.request.depths.and_then(|d| d.negotiated_ird())
    }

    /// Returns the number of Read Requests that the initiator wants outstanding, if it negotiates
    /// it. This side's IRD should be at least that.
    pub fn peer_ord(&self) -> Option<u32> {
        self.request.depths.and_then(|d| d.negotiated_ord())
    }

    /// Builds the accepting Reply and the negotiated parameters.
    ///
    /// `ird` and `ord` are the ULP's values: Read Requests that this side accepts at a time and
    /// keeps outstanding. ORD is lowered to the initiator's IRD. IRD is raised from 0 to 1 if the
    /// initiator's first message will be an RDMA Read. Depths that the initiator does not negotiate
    /// stay unchanged (RFC 6581 §9.1).
    ///
    /// After the Reply, send nothing before the initiator's first FPDU (RFC 5044 §7.1.2 rule 4).
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

    /// Builds the rejecting Reply. Its depths are the initiator's own, swapped.
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

    /// Builds a Reply in the revision and format of the Request (RFC 6581 §10).
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

    /// Returns the RTR indication for the Reply if the Request asks for the peer-to-peer model: one
    /// that both sides support, else one of this side (RFC 6581 §9.2). It is a single one, so that
    /// both sides know it.
    fn rtr(&self) -> Option<Rtr> {
        let wanted = self.request.rtr?;
        let mine = self.policy.rtr;
        let common = mine.intersection(wanted);
        // A responder must support at least one; the receiver supports all.
        common.choose().or(mine.choose()).or(Some(Rtr::Write))
    }
}

/// Returns this side's depth for the Reply, unless the initiator leaves the depth to the ULP.
const fn answer(peer: u32, mine: u32) -> u32 {
    if peer == NO_NEGOTIATION {
        NO_NEGOTIATION
    } else {
        mine
    }
}
