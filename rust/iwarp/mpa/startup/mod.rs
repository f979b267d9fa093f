// SPDX-License-Identifier: GPL-2.0

//! The startup frames (RFC 5044 §7.1) and their negotiation (RFC 6581).
//!
//! Each side feeds a [`Reader`] exactly the octets that it asks for, so that an FPDU directly
//! behind the frame stays in the socket. The [`Initiator`] sends a Request and checks the Reply;
//! the [`Responder`] checks a Request and builds the Reply. The embedder handles time-outs.

mod frame;
mod initiator;
mod responder;

pub use frame::{Frame, Kind, OutFrame, Reader};
pub use initiator::{Initiator, Outcome};
pub use responder::{Refusal, Responder};

use crate::error::{Error, Mpa};
use crate::rdmap::message::Message;
use crate::rdmap::read::ReadRequest;
use crate::types::Stag;

/// IRD or ORD value that leaves the depth to the ULP (RFC 6581 §9.1).
pub const NO_NEGOTIATION: u32 = 0x3fff;
/// The largest IRD or ORD that can be negotiated.
pub const DEPTH_MAX: u32 = 0x3ffe;

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

/// A ready-to-receive indication: the initiator's first FPDU in the peer-to-peer model. It has no
/// payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rtr {
    /// A Send. Takes a receive buffer of the responder.
    Send,
    /// An RDMA Write.
    Write,
    /// An RDMA Read. Takes one slot of ORD and IRD, even if both are otherwise 0. The responder
    /// answers it.
    Read,
}

impl Rtr {
    /// Returns the message, to be started with length 0. Its STags are 1: no receiver may check
    /// them, but some adapters refuse 0.
    pub const fn message(self) -> Message {
        const STAG: Stag = Stag(1);
        match self {
            Self::Send => Message::Send {
                solicited: false,
                invalidate: None,
            },
            Self::Write => Message::Write { stag: STAG, to: 0 },
            Self::Read => Message::ReadRequest(ReadRequest {
                sink_stag: STAG,
                sink_to: 0,
                len: 0,
                src_stag: STAG,
                src_to: 0,
            }),
        }
    }
}

/// A set of RTR indications.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RtrTypes(u8);

impl RtrTypes {
    /// No indication.
    pub const NONE: Self = Self(0);
    /// A zero-length Send.
    pub const SEND: Self = Self(1);
    /// A zero-length RDMA Write.
    pub const WRITE: Self = Self(2);
    /// A zero-length RDMA Read.
    pub const READ: Self = Self(4);
    /// All three.
    pub const ALL: Self = Self(7);

    /// Returns whether `self` includes all of `other`.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the indications in either set.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the indications in both sets.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns the preferred indication: Write, which takes no resource of either side; else Read,
    /// which takes no receive buffer; else Send.
    pub const fn choose(self) -> Option<Rtr> {
        if self.contains(Self::WRITE) {
            Some(Rtr::Write)
        } else if self.contains(Self::READ) {
            Some(Rtr::Read)
        } else if self.contains(Self::SEND) {
            Some(Rtr::Send)
        } else {
            None
        }
    }
}

impl From<Rtr> for RtrTypes {
    fn from(rtr: Rtr) -> Self {
        match rtr {
            Rtr::Send => Self::SEND,
            Rtr::Write => Self::WRITE,
            Rtr::Read => Self::READ,
        }
    }
}

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
    const fn clamped(ird: u32, ord: u32) -> Self {
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

/// The negotiated parameters, from this side's view.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameters {
    /// CRCs are used in both directions.
    pub crc: bool,
    /// Received data has markers.
    pub rx_markers: bool,
    /// Sent data must have markers.
    pub tx_markers: bool,
    /// Read Requests that this side must accept at a time.
    pub ird: u32,
    /// Read Requests that this side may keep outstanding.
    pub ord: u32,
    /// The revision in use.
    pub revision: u8,
    /// Set in the peer-to-peer model: the indication that the initiator sends first.
    pub rtr: Option<Rtr>,
    /// The IRD in the peer's frame, if negotiated.
    pub peer_ird: Option<u32>,
    /// The ORD in the peer's frame, if negotiated.
    pub peer_ord: Option<u32>,
}

/// The reason a connection is not established.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StartupError {
    /// Not a startup frame.
    BadKey,
    /// The frame of the other role: both sides are initiators, or both responders.
    WrongRole,
    /// Unsupported revision, or not the requested one.
    Revision,
    /// Too much private data, or too little to hold the control words.
    Length,
    /// The Reply's format does not match the Request: enhanced for plain, or plain for enhanced.
    Format,
    /// The peer requires CRCs, but the policy is off.
    Crc,
    /// The frame is incomplete.
    Incomplete,
    /// The private data to send does not fit.
    PrivateData,
    /// The peer's ORD exceeds the largest IRD of this side.
    InsufficientIrd,
    /// No RTR indication in common.
    NoRtr,
}

impl StartupError {
    /// Returns the error for a Terminate to send before the close, if the protocol wants one (RFC
    /// 6581 §9). Only an initiator with an accepting Reply can send it, framed as the two frames
    /// negotiated ([`Initiator::crc`]). For any other error the connection closes at once (RFC 5044
    /// §8).
    pub const fn term(self) -> Option<Error> {
        match self {
            Self::InsufficientIrd => Some(Error::Mpa(Mpa::InsufficientIrd)),
            Self::NoRtr => Some(Error::Mpa(Mpa::NoRtr)),
            Self::Crc => Some(Error::Mpa(Mpa::LocalCatastrophic)),
            _ => None,
        }
    }
}
