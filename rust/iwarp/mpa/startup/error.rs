// SPDX-License-Identifier: GPL-2.0

//! The errors of the startup, and the Terminate for each of them.

use crate::error::{Error, Mpa};
use crate::negotiation::Disagreement;

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
    /// Returns the rule that was broken, as a clause for a log line. Each error has its own.
    pub const fn rule(self) -> &'static str {
        match self {
            Self::BadKey => "the first octets are not those of a startup frame",
            Self::WrongRole => "the startup frame is that of the other role",
            Self::Revision => "the MPA revision is not supported",
            Self::Length => "the private data has a wrong length",
            Self::Format => "the Reply has another format than the Request",
            Self::Crc => "the peer requires CRCs, which are off on this side",
            Self::Incomplete => "the startup frame is incomplete",
            Self::PrivateData => "the private data to send is too long",
            Self::InsufficientIrd => Mpa::InsufficientIrd.rule(),
            Self::NoRtr => Mpa::NoRtr.rule(),
        }
    }

    /// Returns the error for a Terminate to send before the close, if the protocol wants one (RFC
    /// 6581 §9). Only an initiator with an accepting Reply can send it, framed as the two frames
    /// negotiated ([`Initiator::crc`](super::Initiator::crc)). For any other error the connection
    /// closes at once (RFC 5044 §8).
    pub const fn term(self) -> Option<Error> {
        match self {
            Self::InsufficientIrd => Some(Error::Mpa(Mpa::InsufficientIrd)),
            Self::NoRtr => Some(Error::Mpa(Mpa::NoRtr)),
            Self::Crc => Some(Error::Mpa(Mpa::LocalCatastrophic)),
            _ => None,
        }
    }
}

impl From<Disagreement> for StartupError {
    fn from(disagreement: Disagreement) -> Self {
        match disagreement {
            Disagreement::InsufficientIrd => Self::InsufficientIrd,
            Disagreement::NoRtr => Self::NoRtr,
        }
    }
}
