// SPDX-License-Identifier: GPL-2.0

//! Regions of memory of a process.

use super::{MrDetails, KNOWN_ACCESS, MW_BIND, RIGHTS};
use crate::{abi, Riw};
use iwarp::{Access, Denied, Region, Stag};
use kernel::{
    prelude::*,
    sync::atomic::{ordering, Atomic},
};
use kernel_ext::sync::BhUses;
use rdma::{mr::MrRequest, umem::Umem, Device, Udata};

/// Memory of a process.
pub(super) struct UserRegion {
    umem: Umem,
    stag: Stag,
    /// The address of the first byte, as work requests and the wire name it.
    base: u64,
    access: Access,
    /// Whether a peer's Send with Invalidate may invalidate the region.
    remote_invalidate: bool,
    /// Cleared when a peer invalidates the region.
    valid: Atomic<bool>,
}

impl UserRegion {
    /// Registers memory of the calling process. Process context; may sleep. Fails as
    /// [`Mr::new`](super::Mr::new) does.
    pub(super) fn new(
        dev: &Device<Riw>,
        request: &MrRequest,
        udata: &Udata<'_, Riw>,
    ) -> Result<Self> {
        if request.access & !KNOWN_ACCESS != 0 {
            return Err(EOPNOTSUPP);
        }
        request.iova.checked_add(request.length).ok_or(EINVAL)?;
        // libsiw proposes a key, which riw ignores.
        let _: abi::MrRequest = udata.request()?;

        let umem = Umem::pin(dev, request.start, request.length, request.access)?;

        udata.respond(&abi::MrResponse {
            stag: request.stag,
            pad: 0,
        })?;
        Ok(Self {
            umem,
            stag: Stag(request.stag),
            base: request.iova,
            access: Access::from_bits(request.access & RIGHTS),
            remote_invalidate: request.access & MW_BIND != 0,
            valid: Atomic::new(true),
        })
    }

    /// Returns the details. Any context.
    pub(super) fn details(&self) -> MrDetails {
        let invalidate = if self.remote_invalidate { MW_BIND } else { 0 };

        MrDetails {
            access: self.access.bits() | invalidate,
            pages: self.umem.pages(),
            valid: self.valid.load(ordering::Relaxed),
        }
    }

    /// Returns what an access is checked against, in protection domain `pd`. Any context.
    pub(super) fn region(&self, pd: u64) -> Region {
        Region {
            stag: self.stag,
            pd,
            base: self.base,
            len: self.umem.len(),
            access: self.access,
            valid: self.valid.load(ordering::Relaxed),
        }
    }

    /// Returns the address `offset` bytes from the start of the region, as work requests and the wire
    /// name it. Any context.
    pub(super) fn addr(&self, offset: u64) -> u64 {
        self.base.wrapping_add(offset)
    }

    /// Returns the STag. Any context.
    pub(super) fn stag(&self) -> Stag {
        self.stag
    }

    /// Invalidates the region for a peer. Process context or softirq. Fails with `InvalidStag` if it
    /// has another STag or is invalid, `Rights` if its registration does not allow this.
    pub(super) fn invalidate(&self, stag: Stag, copies: &BhUses) -> Result<(), Denied> {
        if self.stag != stag {
            return Err(Denied::InvalidStag);
        }
        if !self.remote_invalidate {
            return Err(Denied::Rights);
        }
        // Clear `valid` first: no new copy begins, so the wait is short.
        if !self.valid.xchg(false, ordering::Full) {
            return Err(Denied::InvalidStag);
        }
        copies.wait();
        Ok(())
    }

    /// Calls `f` with the memory, unless the region is invalid. Process context or softirq; `f` must
    /// not sleep. Fails with `InvalidStag`, or `Bounds` if `f` fails.
    pub(super) fn copy(
        &self,
        copies: &BhUses,
        f: impl FnOnce(&Umem) -> Result,
    ) -> Result<(), Denied> {
        copies.during(|| {
            // `invalidate` clears `valid` and then waits for copies, so a copy that starts after
            // the wait fails here.
            match self.valid.load(ordering::Relaxed) {
                true => f(&self.umem).map_err(|_| Denied::Bounds),
                false => Err(Denied::InvalidStag),
            }
        })
    }
}
