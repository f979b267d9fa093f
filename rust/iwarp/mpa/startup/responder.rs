// SPDX-License-Identifier: GPL-2.0

//! The responder's side of the startup.

use super::error::StartupError;
use super::frame::{Frame, Kind, OutFrame, Reader};
use super::parameters::Parameters;
use super::policy::{CrcPolicy, Policy};
use crate::negotiation::{Request, Words};

/// A Request to refuse without a report to the ULP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// The reason.
    pub error: StartupError,
    /// A Reply to send before the close, if the protocol allows one.
    pub reply: Option<OutFrame<'static>>,
}

/// A responder that has received a valid Request. The ULP's private data stays in the [`Reader`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Responder {
    policy: Policy,
    request: Frame,
}

impl Responder {
    /// Checks the Request in `reader`.
    ///
    /// # Errors
    ///
    /// Incomplete, malformed or of an unsupported revision: close the connection without a Reply
    /// (RFC 5044 §7.1.1, §7.1.2). The peer requires CRCs and the policy is off: send the
    /// rejecting Reply, then close.
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

    /// Returns the number of Read Requests that the initiator accepts at a time, if it negotiates
    /// it. This side's ORD cannot exceed it.
    pub fn peer_ird(&self) -> Option<u32> {
        self.negotiation().peer_ird()
    }

    /// Returns the number of Read Requests that the initiator wants outstanding, if it negotiates
    /// it. This side's IRD should be at least that.
    pub fn peer_ord(&self) -> Option<u32> {
        self.negotiation().peer_ord()
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
    pub fn accept<'a>(
        &self,
        ird: u32,
        ord: u32,
        private: &'a [u8],
    ) -> Result<(OutFrame<'a>, Parameters), StartupError> {
        let (words, agreed) = self.negotiation().accept(ird, ord);
        let crc = self.request.crc || self.policy.crc == CrcPolicy::Require;
        let frame = self.reply(crc, false, words);
        let parameters = Parameters {
            crc,
            rx_markers: self.policy.markers,
            tx_markers: self.request.markers,
            ird: agreed.ird,
            ord: agreed.ord,
            revision: self.request.revision,
            rtr: agreed.rtr,
            peer_ird: agreed.peer_ird,
            peer_ord: agreed.peer_ord,
        };
        Ok((OutFrame::new(Kind::Reply, &frame, private)?, parameters))
    }

    /// Builds the rejecting Reply. Its depths are the initiator's own, swapped.
    ///
    /// # Errors
    ///
    /// The private data does not fit: 512 octets, 508 if the Request is enhanced.
    pub fn reject<'a>(&self, private: &'a [u8]) -> Result<OutFrame<'a>, StartupError> {
        let crc = self.policy.crc == CrcPolicy::Require;
        let frame = self.reply(crc, true, self.negotiation().reject());
        OutFrame::new(Kind::Reply, &frame, private)
    }

    /// Builds a Reply in the revision and format of the Request (RFC 6581 §10).
    fn reply(&self, crc: bool, reject: bool, words: Option<Words>) -> Frame {
        Frame {
            markers: self.policy.markers,
            crc,
            reject,
            revision: self.request.revision,
            depths: words.map(|words| words.depths),
            rtr: words.and_then(|words| words.rtr),
        }
    }

    /// Returns the depths and RTR types that the Request negotiates.
    fn negotiation(&self) -> Request {
        Request::new(self.request.words(), self.policy.rtr)
    }
}
