// SPDX-License-Identifier: GPL-2.0

//! The initiator's side of the startup.

use super::error::StartupError;
use super::frame::{Frame, Kind, OutFrame, Reader};
use super::parameters::Parameters;
use super::policy::{CrcPolicy, Policy};
use crate::negotiation::{Proposal, RtrTypes};

/// An initiator: builds the Request and checks the Reply.
#[derive(Clone, Copy, Debug)]
pub struct Initiator {
    policy: Policy,
    proposal: Proposal,
}

/// The responder's answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Accepted. If [`Parameters::rtr`] is set, send that message first.
    Established(Parameters),
    /// Rejected. The private data has the reason, if any. [`Frame::depths`] has the depths that the
    /// responder wanted, if it sent any.
    Rejected,
}

impl Initiator {
    /// Creates an initiator.
    ///
    /// `ird` is the number of Read Requests that this side accepts at a time, `ord` the number that
    /// it wants outstanding; [`NO_NEGOTIATION`](super::NO_NEGOTIATION) leaves either to the ULP.
    /// Revision 1 does not send them.
    ///
    /// # Errors
    ///
    /// The policy is invalid: a revision other than 1 and 2, or the peer-to-peer model with
    /// revision 1 or without any RTR indication.
    pub fn new(policy: &Policy, ird: u32, ord: u32) -> Result<Self, StartupError> {
        if !matches!(policy.revision, 1 | 2) {
            return Err(StartupError::Revision);
        }
        if policy.peer_to_peer && (policy.revision < 2 || policy.rtr == RtrTypes::NONE) {
            return Err(StartupError::NoRtr);
        }
        let rtr = policy.peer_to_peer.then_some(policy.rtr);
        Ok(Self {
            policy: *policy,
            proposal: Proposal::new(ird, ord, policy.ird_max, rtr),
        })
    }

    /// Builds the Request, with the ULP's private data.
    ///
    /// # Errors
    ///
    /// The private data does not fit: 512 octets, 508 with revision 2.
    pub fn request<'a>(&self, private: &'a [u8]) -> Result<OutFrame<'a>, StartupError> {
        let words = (self.policy.revision >= 2).then_some(self.proposal.words());
        let frame = Frame {
            markers: self.policy.markers,
            crc: self.policy.crc == CrcPolicy::Require,
            reject: false,
            revision: self.policy.revision,
            depths: words.map(|words| words.depths),
            rtr: words.and_then(|words| words.rtr),
        };
        OutFrame::new(Kind::Request, &frame, private)
    }

    /// Checks the Reply.
    ///
    /// # Errors
    ///
    /// See [`StartupError`]. If its [`term`](StartupError::term) is not `None`, the responder
    /// considers the connection established; send it a Terminate. On
    /// [`Revision`](StartupError::Revision), or if the responder closes without a Reply, the caller
    /// may retry with revision 1 on a new connection (RFC 6581 §10).
    pub fn reply(&self, reader: &Reader) -> Result<Outcome, StartupError> {
        let reply = reader.frame().ok_or(StartupError::Incomplete)?;
        if reply.reject {
            // The other fields do not matter: there is no connection.
            return Ok(Outcome::Rejected);
        }
        if reply.revision != self.policy.revision {
            return Err(StartupError::Revision);
        }
        if reader.truncated() {
            return Err(StartupError::Length);
        }
        if reply.depths.is_some() != (self.policy.revision >= 2) {
            return Err(StartupError::Format);
        }
        if reply.crc && self.policy.crc == CrcPolicy::Off {
            return Err(StartupError::Crc);
        }
        let agreed = self.proposal.conclude(reply.words())?;
        Ok(Outcome::Established(Parameters {
            crc: self.crc(&reply),
            rx_markers: self.policy.markers,
            tx_markers: reply.markers,
            ird: agreed.ird,
            ord: agreed.ord,
            revision: reply.revision,
            rtr: agreed.rtr,
            peer_ird: agreed.peer_ird,
            peer_ord: agreed.peer_ord,
        }))
    }

    /// Returns whether the stream uses CRCs, given the responder's `reply`.
    pub fn crc(&self, reply: &Frame) -> bool {
        reply.crc || self.policy.crc == CrcPolicy::Require
    }
}
