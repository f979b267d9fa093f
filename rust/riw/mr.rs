// SPDX-License-Identifier: GPL-2.0

//! Memory regions: what may be read from and written to, and by whom.

use crate::{abi, limit::Quota, Riw};
use iwarp::{Access, Denied, Region, Stag};
use kernel::{
    prelude::*,
    sync::{
        aref::ARef,
        atomic::{ordering, Atomic},
    },
};
use net::sync::BhUses;
use rdma::{mr::MrTable, pd::Pd, umem::Umem, Udata};

/// A memory region as the verbs have it.
pub(crate) type Handle = rdma::mr::Mr<Riw>;

/// The rights among the access flags (`enum ib_access_flags`).
const RIGHTS: u32 = 0xf;
/// `IB_ACCESS_MW_BIND`. No window can be made; it lets a peer invalidate the region.
const MW_BIND: u32 = 1 << 4;
/// Access flags that a region can have: also huge pages, and the flags that a driver may ignore.
const KNOWN_ACCESS: u32 = RIGHTS | MW_BIND | 1 << 7 | 0x3ff << 20;

/// The driver's part of a memory region.
#[pin_data]
pub(crate) struct Mr {
    umem: Umem,
    stag: Stag,
    pd: u64,
    /// The address of the first byte, in the region's terms.
    base: u64,
    access: Access,
    /// A peer's Send with Invalidate may invalidate it.
    remote_invalidate: bool,
    /// Not invalidated by a peer.
    valid: Atomic<bool>,
    /// Copies from the region and to it. When a Send with Invalidate is delivered, its consumer may
    /// rely on the region being left alone (RFC 5040 §5.3).
    #[pin]
    copies: BhUses,
    _quota: Quota,
}

impl Mr {
    /// Registers user memory. May sleep.
    pub(crate) fn new(
        pd: &Pd<Riw>,
        request: &rdma::mr::MrRequest,
        udata: &Udata<'_, Riw>,
    ) -> Result<impl PinInit<Self>> {
        if request.access & !KNOWN_ACCESS != 0 {
            return Err(EOPNOTSUPP);
        }
        request.iova.checked_add(request.length).ok_or(EINVAL)?;
        // The key that user space proposes is ignored; that it proposes one is its ABI.
        let _: abi::MrRequest = udata.request()?;

        let dev = pd.device();
        let quota = dev.limits.mr.take()?;
        let umem = Umem::pin(dev, request.start, request.length, request.access)?;

        udata.respond(&abi::MrResponse {
            stag: request.stag,
            pad: 0,
        })?;
        let (stag, base) = (Stag(request.stag), request.iova);
        let (pd, access) = (pd.id, Access::from_bits(request.access & RIGHTS));
        let remote_invalidate = request.access & MW_BIND != 0;
        Ok(pin_init!(Self {
            umem: umem,
            stag: stag,
            pd: pd,
            base: base,
            access: access,
            remote_invalidate: remote_invalidate,
            valid: Atomic::new(true),
            copies <- BhUses::new(),
            _quota: quota,
        }))
    }

    fn check(&self, stag: Stag, pd: u64, want: Access, addr: u64, len: u32) -> Result<u64, Denied> {
        Region {
            stag: self.stag,
            pd: self.pd,
            base: self.base,
            len: self.umem.len(),
            access: self.access,
            valid: self.valid.load(ordering::Relaxed),
        }
        .check(stag, pd, want, addr, len)
    }
}

/// A range of a region that may be accessed.
///
/// Holds the region: deregistration waits for it. So it lives for one stretch of copying only: that
/// of an FPDU at most.
pub(crate) struct Target {
    mr: ARef<Handle>,
    /// Of the range, from the region's start.
    offset: u64,
}

impl Target {
    /// The range of `len` bytes at `addr` in the region of `stag`, if it lies in `pd` and allows
    /// `want`. Any context. `len` must not be 0: nothing is checked of an empty range.
    pub(crate) fn find(
        mrs: &MrTable<Riw>,
        stag: Stag,
        pd: u64,
        want: Access,
        addr: u64,
        len: u32,
    ) -> Result<Self, Denied> {
        let mr = mrs.get(stag.0).ok_or(Denied::InvalidStag)?;
        let offset = mr.check(stag, pd, want, addr, len)?;

        Ok(Self { mr, offset })
    }

    /// Copies to `at` in the range, unless the region has been taken away meanwhile. Process
    /// context or softirq.
    pub(crate) fn write(&self, at: u32, from: net::Fragment<'_>) -> Result<(), Denied> {
        self.copy(at, |umem, at| umem.write(at, from))
    }

    /// Copies `len` bytes from `at` in the range, unless the region has been taken away meanwhile.
    /// Process context or softirq.
    pub(crate) fn read(&self, at: u32, len: usize, to: &mut net::Room<'_>) -> Result<(), Denied> {
        self.copy(at, |umem, at| umem.read(at, len, to))
    }

    fn copy(&self, at: u32, f: impl FnOnce(&Umem, u64) -> Result) -> Result<(), Denied> {
        let at = self.offset.checked_add(at.into()).ok_or(Denied::Wrap)?;

        self.mr.copies.during(|| {
            // What `invalidate` has done before it waited for copies is seen by those after that.
            match self.mr.valid.load(ordering::Relaxed) {
                true => f(&self.mr.umem, at).map_err(|_| Denied::Bounds),
                false => Err(Denied::InvalidStag),
            }
        })
    }
}

/// Invalidates a region for a peer's Send with Invalidate. On return nothing is copied from it or to
/// it any more. Process context or softirq; the caller must not be copying from or to any region.
///
/// Refuses a region whose registration does not allow that: the queue pairs of a protection domain
/// share its regions, and one of them must not take a region from the others unless its owner has
/// said so (RFC 5040, section 8.1.1).
pub(crate) fn invalidate(mrs: &MrTable<Riw>, stag: Stag, pd: u64) -> Result<(), Denied> {
    let mr = mrs.get(stag.0).ok_or(Denied::InvalidStag)?;

    if mr.stag != stag {
        return Err(Denied::InvalidStag);
    }
    if mr.pd != pd {
        return Err(Denied::PdMismatch);
    }
    if !mr.remote_invalidate {
        return Err(Denied::Rights);
    }
    // First, so that no new copies begin, and the wait ends soon however many want to copy.
    if !mr.valid.xchg(false, ordering::Full) {
        return Err(Denied::InvalidStag);
    }
    mr.copies.wait();
    Ok(())
}
