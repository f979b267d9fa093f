// SPDX-License-Identifier: GPL-2.0

//! The initiator's side of the startup.

use super::depths::Depths;
use super::error::StartupError;
use super::frame::{Frame, Kind, OutFrame, Reader};
use super::parameters::Parameters;
use super::policy::{CrcPolicy, Policy};
use super::rtr::{Rtr, RtrTypes};

/// An initiator that has built its Request and waits for the Reply.
#[derive(Clone, Copy, Debug)]
pub struct Initiator {
    policy: Policy,
    depths: Depths,
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
    /// Builds the Request.
    ///
    /// `ird` is the number of Read Requests that this side accepts at a time, `ord` the number that
    /// it wants outstanding; [`NO_NEGOTIATION`](super::NO_NEGOTIATION) leaves either to the ULP.
    /// Revision 1 does not send them. `private` has at most 512 octets, 508 with revision 2.
    ///
    /// # Errors
    ///
    /// The private data does not fit; or the policy is invalid: a revision other than 1 and 2, or
    /// the peer-to-peer model with revision 1 or without any RTR indication.
    pub fn new(
        policy: &Policy,
        ird: u32,
        ord: u32,
        private: &[u8],
    ) -> Result<(Self, OutFrame), StartupError> {
        let this = Self {
            policy: *policy,
            depths: Depths::clamped(ird, ord),
        };
        let enhanced = match policy.revision {
            1 => false,
            2 => true,
            _ => return Err(StartupError::Revision),
        };
        if policy.peer_to_peer && (!enhanced || policy.rtr == RtrTypes::NONE) {
            return Err(StartupError::NoRtr);
        }
        let frame = Frame {
            markers: policy.markers,
            crc: policy.crc == CrcPolicy::Require,
            reject: false,
            revision: policy.revision,
            depths: enhanced.then_some(this.depths),
            rtr: policy.peer_to_peer.then_some(policy.rtr),
        };
        Ok((this, OutFrame::new(Kind::Request, &frame, private)?))
    }

    /// Checks the Reply.
    ///
    /// # Errors
    ///
    /// See [`StartupError`]. If its [`term`](StartupError::term) is not `None`, the responder
    /// considers the connection established; tell it by a Terminate. On
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
        let peer_ird = reply.depths.and_then(|d| d.negotiated_ird());
        let peer_ord = reply.depths.and_then(|d| d.negotiated_ord());
        // The responder's ORD is the minimum for this side's IRD. Its IRD is the maximum for this
        // side's ORD (RFC 6581 §9.1).
        let ird = self.depths.ird.max(peer_ord.unwrap_or(0));
        if ird > self.depths.ird.max(self.policy.ird_max) {
            return Err(StartupError::InsufficientIrd);
        }
        let ord = match peer_ird {
            Some(peer) => self.depths.ord.min(peer),
            None => self.depths.ord,
        };
        Ok(Outcome::Established(Parameters {
            crc: self.crc(&reply),
            rx_markers: self.policy.markers,
            tx_markers: reply.markers,
            ird,
            ord,
            revision: reply.revision,
            rtr: self.rtr(&reply, peer_ird)?,
            peer_ird,
            peer_ord,
        }))
    }

    /// Returns whether the stream uses CRCs, given the responder's `reply`.
    pub fn crc(&self, reply: &Frame) -> bool {
        reply.crc || self.policy.crc == CrcPolicy::Require
    }

    /// Returns the RTR indication to send, in the peer-to-peer model (RFC 6581 §9.2).
    fn rtr(&self, reply: &Frame, peer_ird: Option<u32>) -> Result<Option<Rtr>, StartupError> {
        if !self.policy.peer_to_peer {
            return Ok(None);
        }
        let offered = reply.rtr.ok_or(StartupError::NoRtr)?;
        let mut common = self.policy.rtr.intersection(offered);
        if peer_ird == Some(0) {
            // A responder with IRD 0 cannot accept a zero-length RDMA Read.
            common = common.intersection(RtrTypes::SEND.union(RtrTypes::WRITE));
        }
        common.choose().map(Some).ok_or(StartupError::NoRtr)
    }
}
