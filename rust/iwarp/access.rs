// SPDX-License-Identifier: GPL-2.0

//! Whether an access to registered memory is allowed.

use crate::error::{DdpTagged, Error, Rdmap};
use crate::types::Stag;

/// Access rights of a region. The bits are those of the verbs (`IB_ACCESS_*`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Access(u32);

impl Access {
    /// No right. Local reads need none.
    pub const NONE: Self = Self(0);
    /// This side may write: receive buffers, sinks of RDMA Reads.
    pub const LOCAL_WRITE: Self = Self(1);
    /// The peer may write: RDMA Write.
    pub const REMOTE_WRITE: Self = Self(2);
    /// The peer may read: RDMA Read.
    pub const REMOTE_READ: Self = Self(4);
    /// The peer may do atomic operations.
    pub const REMOTE_ATOMIC: Self = Self(8);

    /// The rights in `bits`; bits that mean no right of this protocol are dropped.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits & 0xf)
    }

    /// The bits of the verbs.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Whether all rights of `other` are here.
    #[inline]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The rights of both.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A registered memory region, as far as access checks go.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    /// The STag, key included.
    pub stag: Stag,
    /// The protection domain, by any number that is the embedder's own. A region for a single
    /// stream has the number of that stream (RFC 5041 §8.2).
    pub pd: u64,
    /// The Tagged Offset of the region's first octet.
    pub base: u64,
    /// The length in octets.
    pub len: u64,
    /// What it allows.
    pub access: Access,
    /// False when deregistered or invalidated.
    pub valid: bool,
}

/// Why an access is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Denied {
    /// No region has this STag.
    InvalidStag,
    /// The region is in another protection domain.
    PdMismatch,
    /// The region does not grant the right.
    Rights,
    /// The access leaves the region.
    Bounds,
    /// Address plus length passes 2^64.
    Wrap,
}

impl Region {
    /// Checks an access of `len` octets at Tagged Offset `addr` from protection domain `pd`, that
    /// needs the rights `want`. Returns the offset of the access within the region.
    ///
    /// Of a zero-length access nothing is checked, not even the STag, and the offset is 0: RFC
    /// 5041 §5.2 forbids the check for tagged messages, RFC 5040 §5.2.1 for read requests.
    ///
    /// # Errors
    ///
    /// The first of these that fails: STag and validity, protection domain, rights, wrap, bounds
    /// (RFC 5041 §7.1, RFC 5040 §7.2).
    #[inline]
    pub fn check(
        &self,
        stag: Stag,
        pd: u64,
        want: Access,
        addr: u64,
        len: u32,
    ) -> Result<u64, Denied> {
        if len == 0 {
            return Ok(0);
        }
        if !self.valid || self.stag != stag {
            return Err(Denied::InvalidStag);
        }
        if self.pd != pd {
            return Err(Denied::PdMismatch);
        }
        if !self.access.contains(want) {
            return Err(Denied::Rights);
        }
        let len = u64::from(len);
        if addr.checked_add(len).is_none() {
            return Err(Denied::Wrap);
        }
        let offset = addr.checked_sub(self.base).ok_or(Denied::Bounds)?;
        match self.len.checked_sub(offset) {
            Some(left) if left >= len => Ok(offset),
            _ => Err(Denied::Bounds),
        }
    }
}

impl Denied {
    /// The error of a tagged segment that may not be placed: RDMA Write or Read Response
    /// (RFC 5041 §7.2). DDP has no code for a missing right; an STag that does not allow placement
    /// is reported as invalid (check 2 of §7.1).
    pub const fn tagged(self) -> Error {
        Error::DdpTagged(match self {
            Self::InvalidStag | Self::Rights => DdpTagged::InvalidStag,
            Self::PdMismatch => DdpTagged::StagNotAssociated,
            Self::Bounds => DdpTagged::Bounds,
            Self::Wrap => DdpTagged::ToWrap,
        })
    }

    /// The error of a Read Request or Atomic Request whose target may not be accessed
    /// (RFC 5040 §7.2).
    pub const fn read_source(self) -> Error {
        Error::Rdmap(match self {
            Self::InvalidStag => Rdmap::InvalidStag,
            Self::PdMismatch => Rdmap::StagNotAssociated,
            Self::Rights => Rdmap::AccessRights,
            Self::Bounds => Rdmap::Bounds,
            Self::Wrap => Rdmap::ToWrap,
        })
    }

    /// The error of a Send with Invalidate whose STag is not this stream's to invalidate
    /// (RFC 5040 §5.3), whatever the reason.
    pub const fn invalidate(self) -> Error {
        Error::Rdmap(Rdmap::CannotInvalidate)
    }

    /// The error when memory that this side itself posted cannot be used: the peer did no wrong.
    pub const fn local(self) -> Error {
        Error::LocalCatastrophic
    }
}
