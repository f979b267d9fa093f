// SPDX-License-Identifier: GPL-2.0

//! The startup frames (RFC 5044 §7.1) and what they negotiate (RFC 6581).
//!
//! Each side feeds a [`Reader`] exactly the octets it asks for, so that an FPDU right behind the
//! frame stays in the socket. The [`Initiator`] sends a Request and judges the Reply; the
//! [`Responder`] judges a Request and makes the Reply. Time-outs are the embedder's.

mod frame;
mod initiator;
mod responder;

pub use frame::{Frame, Kind, OutFrame, Reader};
pub use initiator::{Initiator, Outcome};
pub use responder::{Refusal, Responder};

use crate::error::{Error, Mpa};
use crate::rdmap::read::ReadRequest;
use crate::tx::Message;
use crate::types::Stag;

/// An IRD or ORD of this value means: not negotiated here, left to the ULP (RFC 6581 §9.1).
pub const NO_NEGOTIATION: u32 = 0x3fff;
/// The largest IRD or ORD that can be negotiated.
pub const DEPTH_MAX: u32 = 0x3ffe;

/// What this side wants of CRCs. Both sides use them if either sets the C bit (RFC 5044 §7.1.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CrcPolicy {
    /// Not used; a peer that requires them is refused.
    Off,
    /// Used if the peer requires them.
    Offer,
    /// Used. The default that RFC 5044 §4.4 demands.
    Require,
}

/// What this side wants of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Policy {
    /// The highest revision spoken, 1 or 2. An initiator sends this one; a responder accepts it
    /// and those below.
    pub revision: u8,
    /// CRCs.
    pub crc: CrcPolicy,
    /// The peer has to send markers.
    pub markers: bool,
    /// As initiator: ask for the peer-to-peer model (RFC 6581 §9.2). Needs revision 2. A responder
    /// follows the initiator in this.
    pub peer_to_peer: bool,
    /// The RTR indications that may be used.
    pub rtr: RtrTypes,
    /// As initiator: Read Requests that this side could take at a time at the very most. If the
    /// responder's ORD is above the IRD that was asked for, IRD is raised up to this.
    pub ird_max: u32,
}

impl Policy {
    /// Revision 2, CRCs, no markers, client-server model, every RTR indication, IRD not raised.
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

/// A ready-to-receive indication: the first FPDU of the initiator in the peer-to-peer model. It
/// has no payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rtr {
    /// A Send. Takes a receive buffer of the responder.
    Send,
    /// An RDMA Write.
    Write,
    /// An RDMA Read. Takes a place of ORD and IRD, even if both are 0 otherwise, and is answered.
    Read,
}

impl Rtr {
    /// The message, to be started with length 0. Where it has an STag this is 1: no one may check
    /// it, but there are adapters that refuse 0.
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

    /// Whether all of `other` are here.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Those of both.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Those in common.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The one to use: the Write, which takes nothing from anyone; else the Read, which takes no
    /// buffer; else the Send.
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

/// The read depths of an enhanced frame, as its sender means them (RFC 6581 §9.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Depths {
    /// Read Requests that the sender takes at a time; [`NO_NEGOTIATION`] if it leaves that open.
    pub ird: u32,
    /// Read Requests that the sender has outstanding at a time; likewise.
    pub ord: u32,
}

impl Depths {
    /// Depths as they can be sent: anything above the largest becomes the largest.
    const fn clamped(ird: u32, ord: u32) -> Self {
        Self {
            ird: clamp(ird),
            ord: clamp(ord),
        }
    }

    /// The IRD, if it takes part in negotiation.
    pub const fn negotiated_ird(&self) -> Option<u32> {
        negotiated(self.ird)
    }

    /// The ORD, if it takes part in negotiation.
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

/// What the two sides agreed upon, as this side sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameters {
    /// CRCs are used, in both directions.
    pub crc: bool,
    /// What this side receives has markers.
    pub rx_markers: bool,
    /// What this side sends must have markers.
    pub tx_markers: bool,
    /// Read Requests that this side must be ready to take at a time.
    pub ird: u32,
    /// Read Requests that this side may have outstanding.
    pub ord: u32,
    /// The revision that was used.
    pub revision: u8,
    /// Set in the peer-to-peer model: the indication that the initiator sends before all else.
    pub rtr: Option<Rtr>,
    /// The IRD in the peer's frame, if it negotiates one.
    pub peer_ird: Option<u32>,
    /// The ORD in the peer's frame, if it negotiates one.
    pub peer_ord: Option<u32>,
}

/// Why a connection does not come about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StartupError {
    /// Not a startup frame.
    BadKey,
    /// The frame of the other role: both sides are initiators, or both responders.
    WrongRole,
    /// A revision that is not spoken here, or not the one that was asked for.
    Revision,
    /// More private data than allowed, or too little to hold the control words.
    Length,
    /// The Reply does not answer the Request: enhanced for plain, or plain for enhanced.
    Format,
    /// The peer requires CRCs, and they are off here.
    Crc,
    /// The frame is not complete.
    Incomplete,
    /// The private data to be sent does not fit.
    PrivateData,
    /// The peer's ORD is more than this side's IRD can be.
    InsufficientIrd,
    /// No RTR indication in common.
    NoRtr,
}

impl StartupError {
    /// The error that a Terminate reports before the connection is closed, if the protocol wants
    /// one (RFC 6581 §9): only an initiator that has an accepting Reply can send it, framed as the
    /// two frames say ([`Initiator::crc`]). Otherwise the connection is closed at once (RFC 5044
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
