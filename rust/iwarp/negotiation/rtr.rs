// SPDX-License-Identifier: GPL-2.0

//! Ready-to-receive indications (RFC 6581 §9.2).

use crate::rdmap::message::Message;
use crate::rdmap::read::ReadRequest;
use crate::types::Stag;

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
