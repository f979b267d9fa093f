// SPDX-License-Identifier: GPL-2.0

//! Access checks of registered memory.

use crate::error::{DdpTagged, Error, Local, Rdmap};
use crate::types::Stag;

/// Access rights of a region. The bits are the low bits of `IB_ACCESS_*`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Access(u32);

impl Access {
    /// No rights. Local reads need none.
    pub const NONE: Self = Self(0);
    /// This side may write: receive buffers, sinks of RDMA Reads.
    pub const LOCAL_WRITE: Self = Self(1);
    /// The peer may write: RDMA Write.
    pub const REMOTE_WRITE: Self = Self(2);
    /// The peer may read: RDMA Read.
    pub const REMOTE_READ: Self = Self(4);
    /// The peer may do atomic operations.
    pub const REMOTE_ATOMIC: Self = Self(8);

    /// Returns the rights in `bits`. Bits that are no right of this protocol are dropped.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits & 0xf)
    }

    /// Returns the rights as `IB_ACCESS_*` bits.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Returns whether `self` includes all rights of `other`.
    #[inline]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the rights of both.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A registered memory region, as far as access checks need it.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    /// The STag, key included.
    pub stag: Stag,
    /// The protection domain; the embedder assigns the numbers. A region for a single stream has
    /// the number of that stream (RFC 5041 §8.2).
    pub pd: u64,
    /// The Tagged Offset of the region's first octet.
    pub base: u64,
    /// The length in octets.
    pub len: u64,
    /// The rights it grants.
    pub access: Access,
    /// Cleared by deregistration and invalidation.
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
    /// The access exceeds the region.
    Bounds,
    /// Address plus length exceeds 2^64.
    Wrap,
}

impl Region {
    /// Checks an access of `len` octets at Tagged Offset `addr` from protection domain `pd` that
    /// needs the rights `want`. Returns the offset of the access within the region.
    ///
    /// A zero-length access passes without any check, not even of the STag, and returns 0: RFC 5041
    /// §5.2 forbids the check for tagged messages, RFC 5040 §5.2.1 for Read Requests.
    ///
    /// # Errors
    ///
    /// The first check that fails, in this order: STag and validity, protection domain, rights,
    /// wrap, bounds (RFC 5041 §7.1, RFC 5040 §7.2).
    ///
    /// # Example
    ///
    /// ```
    /// use iwarp::{Access, DdpTagged, Denied, Error, Region, Stag};
    ///
    /// let region = Region {
    ///     stag: Stag(0x0012_3407),
    ///     pd: 1,
    ///     base: 0x1000,
    ///     len: 512,
    ///     access: Access::LOCAL_WRITE.union(Access::REMOTE_WRITE),
    ///     valid: true,
    /// };
    /// let access = |want, addr, len| region.check(region.stag, 1, want, addr, len);
    ///
    /// // An RDMA Write may fill the region to its end, but go no further.
    /// assert_eq!(access(Access::REMOTE_WRITE, 0x11f4, 12), Ok(500));
    /// assert_eq!(
    ///     access(Access::REMOTE_WRITE, 0x11f4, 13),
    ///     Err(Denied::Bounds)
    /// );
    /// // The region does not grant RDMA Reads.
    /// assert_eq!(access(Access::REMOTE_READ, 0x1000, 1), Err(Denied::Rights));
    /// // The STag of an earlier registration of the slot has another key.
    /// let old = region.check(Stag(0x0012_3406), 1, Access::REMOTE_WRITE, 0x1000, 1);
    /// assert_eq!(old, Err(Denied::InvalidStag));
    /// // The Terminate depends on the message that is refused.
    /// assert_eq!(Denied::Bounds.tagged(), Error::DdpTagged(DdpTagged::Bounds));
    /// ```
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
    /// The error for a tagged segment that must not be placed: RDMA Write or Read Response (RFC
    /// 5041 §7.2).
    pub const fn tagged(self) -> Error {
        Error::DdpTagged(match self {
            Self::InvalidStag => DdpTagged::InvalidStag,
            Self::Rights => DdpTagged::AccessRights,
            Self::PdMismatch => DdpTagged::StagNotAssociated,
            Self::Bounds => DdpTagged::Bounds,
            Self::Wrap => DdpTagged::ToWrap,
        })
    }

    /// The error for a Read Request or Atomic Request that must not access its target (RFC 5040
    /// §7.2).
    pub const fn read_source(self) -> Error {
        Error::Rdmap(match self {
            Self::InvalidStag => Rdmap::InvalidStag,
            Self::PdMismatch => Rdmap::StagNotAssociated,
            Self::Rights => Rdmap::AccessRights,
            Self::Bounds => Rdmap::Bounds,
            Self::Wrap => Rdmap::ToWrap,
        })
    }

    /// The error for a Send with Invalidate whose STag this stream may not invalidate (RFC 5040
    /// §5.3), whatever the reason.
    pub const fn invalidate(self) -> Error {
        Error::Rdmap(Rdmap::CannotInvalidate)
    }

    /// The error for memory that this side posted and cannot use; it is not the peer's fault.
    pub const fn local(self) -> Error {
        Error::Local(Local::Buffer)
    }
}
