// SPDX-License-Identifier: GPL-2.0

//! The rule that each error breaks, in words for an operator.

use crate::error::{DdpTagged, DdpUntagged, Error, Local, Mpa, Rdmap, Sctp};

impl Error {
    /// Returns the rule that was broken, as a clause for a log line. Each error has its own.
    pub const fn rule(self) -> &'static str {
        match self {
            Self::Mpa(e) => e.rule(),
            Self::Sctp(e) => e.rule(),
            Self::LlpClosed => "the peer closed inside a message, or with work outstanding",
            Self::DdpTagged(e) => e.rule(),
            Self::DdpUntagged(e) => e.rule(),
            Self::Rdmap(e) => e.rule(),
            Self::DdpLocalCatastrophic => "this side cannot place data",
            Self::Local(e) => e.rule(),
        }
    }
}

impl Local {
    const fn rule(self) -> &'static str {
        match self {
            Self::Request => "a work request of this side is not valid",
            Self::Buffer => "a work request of this side names memory that it may not use",
            Self::Completion => "a completion queue of this side overflowed",
            Self::Memory => "this side has no memory",
            Self::LowerLayer => "this side cannot use the connection",
        }
    }
}

impl Mpa {
    pub(crate) const fn rule(self) -> &'static str {
        match self {
            Self::Crc => "the CRC of an FPDU is wrong",
            Self::Marker => "a marker does not point to the start of its FPDU",
            Self::Length => "an FPDU is shorter than its headers",
            Self::Startup => "a startup frame is malformed",
            Self::LocalCatastrophic => "this side cannot set up the connection",
            Self::InsufficientIrd => "the peer's ORD exceeds the largest IRD of this side",
            Self::NoRtr => "the two sides have no RTR indication in common",
        }
    }
}

impl Sctp {
    const fn rule(self) -> &'static str {
        match self {
            Self::Length => "a chunk is shorter than its headers, or too long",
            Self::Ppid => "the payload protocol identifier of a chunk is not DDP's",
            Self::Function => "the function of a session control chunk is unknown",
            Self::PrivateData => "the private data of a session control chunk is malformed",
            Self::Duplicate => "a chunk has the DDP-SSN of an earlier one",
            Self::TooFar => "the DDP-SSN of a chunk is too far ahead",
            Self::TooManyHeld => "chunks ahead of a missing one take too much memory",
            Self::Order => "a segment chunk is out of order",
            Self::Sequence => "a chunk is not allowed at this point of the session",
        }
    }
}

impl DdpTagged {
    const fn rule(self) -> &'static str {
        match self {
            Self::InvalidStag => "the STag of a tagged segment is not valid",
            Self::AccessRights => "a tagged segment goes to a region that may not be written",
            Self::Bounds => "a tagged segment is outside of its buffer",
            Self::StagNotAssociated => {
                "the STag of a tagged segment belongs to another protection domain"
            }
            Self::ToWrap => "a tagged segment wraps around 2^64",
            Self::InvalidVersion => "the DDP version of a tagged segment is not 1",
        }
    }
}

impl DdpUntagged {
    const fn rule(self) -> &'static str {
        match self {
            Self::InvalidQn => "an untagged segment names the wrong queue",
            Self::NoBuffer => "no receive is posted for a Send",
            Self::TooManyReads => "a Read or Atomic Request exceeds the IRD",
            Self::InvalidMsnRange => "an untagged segment has the wrong MSN",
            Self::InvalidMo => "an untagged segment has the wrong message offset",
            Self::TooLong => "a message is longer than its buffer",
            Self::InvalidVersion => "the DDP version of an untagged segment is not 1",
        }
    }
}

impl Rdmap {
    const fn rule(self) -> &'static str {
        match self {
            Self::InvalidStag => "the STag of a Read or Atomic Request is not valid",
            Self::Bounds => "a Read or Atomic Request is outside of its region",
            Self::AccessRights => "a Read or Atomic Request names a region without the right",
            Self::StagNotAssociated => "a Read or Atomic Request names a region of another domain",
            Self::ToWrap => "a Read or Atomic Request wraps around 2^64",
            Self::CannotInvalidate => "a Send names an STag that it may not invalidate",
            Self::ProtectionUnspecified => "an access is not allowed",
            Self::InvalidVersion => "the RDMAP version is not 1",
            Self::UnexpectedOpcode => "the opcode is unknown or not allowed here",
            Self::CatastrophicStream => "a message is cut short, or urgent data came",
            Self::UnalignedAtomic => "the target of an Atomic Request is not a multiple of 8",
            Self::CatastrophicGlobal => "the RNIC cannot continue",
            Self::OperationCannotInvalidate => "an STag cannot be invalidated",
            Self::Unspecified => "an operation cannot be done",
            Self::WrongResponse => "a response is not that of the oldest request",
        }
    }
}
