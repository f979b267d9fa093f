// SPDX-License-Identifier: GPL-2.0

//! Memory regions: registration, checks of access, and copies.

use crate::{abi, limits::ObjectCharge, Riw};
use iwarp::{Access, Denied, Region, Stag};
use kernel::{
    prelude::*,
    sync::{
        aref::ARef,
        atomic::{ordering, Atomic},
        Arc,
    },
};
use kernel_ext::sync::BhUses;
use rdma::{
    mr::MrTable,
    pd::Pd,
    restrack::{Details, DetailsWriter, MessageFull},
    umem::Umem,
    Udata,
};

/// A memory region, as a verbs object.
pub(crate) type MrObject = rdma::mr::Mr<Riw>;

/// The rights among the access flags (`enum ib_access_flags`).
const RIGHTS: u32 = 0xf;
/// `IB_ACCESS_MW_BIND`. riw has no memory windows; here the flag allows a peer to invalidate the
/// region.
const MW_BIND: u32 = 1 << 4;
/// The access flags that riw accepts: [`RIGHTS`], [`MW_BIND`], huge pages, and the flags that a
/// driver may ignore.
const KNOWN_ACCESS: u32 = RIGHTS | MW_BIND | 1 << 7 | 0x3ff << 20;

/// The driver's part of a memory region.
#[pin_data]
pub(crate) struct Mr {
    umem: Umem,
    stag: Stag,
    pd: u64,
    /// The address of the first byte, as work requests and the wire name it.
    base: u64,
    access: Access,
    /// Whether a peer's Send with Invalidate may invalidate the region.
    remote_invalidate: bool,
    /// Cleared when a peer invalidates the region.
    valid: Atomic<bool>,
    /// Tracks copies to and from the region. After the delivery of a Send with Invalidate, the
    /// consumer may rely on no further access to the region (RFC 5040 §5.3).
    #[pin]
    copies: BhUses,
    _charge: ObjectCharge,
}

impl Mr {
    /// Registers user memory. Process context; may sleep.
    ///
    /// Fails with `EOPNOTSUPP` for an unknown access flag, `EINVAL` for a range that wraps,
    /// `ENOMEM` above the limit of regions, and with the errors of [`Umem::pin`],
    /// [`rdma::Exchange::request`] and [`rdma::Exchange::respond`].
    pub(crate) fn new(
        pd: &Pd<Riw>,
        request: &rdma::mr::MrRequest,
        udata: &Udata<'_, Riw>,
    ) -> Result<impl PinInit<Self>> {
        if request.access & !KNOWN_ACCESS != 0 {
            return Err(EOPNOTSUPP);
        }
        request.iova.checked_add(request.length).ok_or(EINVAL)?;
        // libsiw proposes a key, which riw ignores.
        let _: abi::MrRequest = udata.request()?;

        let dev = pd.device();
        let charge = dev.limits.mr.charge()?;
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
            _charge: charge,
        }))
    }

    /// Returns the details. Any context.
    pub(crate) fn details(&self) -> MrDetails {
        let invalidate = if self.remote_invalidate { MW_BIND } else { 0 };

        MrDetails {
            access: self.access.bits() | invalidate,
            pages: self.umem.pages(),
            valid: self.valid.load(ordering::Relaxed),
        }
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

/// The details of a region, for an administrator to see.
pub(crate) struct MrDetails {
    /// The rights, as access flags: [`RIGHTS`], [`MW_BIND`].
    access: u32,
    pages: usize,
    /// Cleared when a peer has invalidated the region.
    valid: bool,
}

impl Details for MrDetails {
    fn write(&self, to: &mut DetailsWriter<'_>) -> Result<(), MessageFull> {
        to.u32_hex(c"access", self.access)?;
        // CAST: A size fits.
        to.u64(c"pages", self.pages as u64)?;
        to.u32(c"valid", self.valid.into())
    }
}

/// The regions that a queue pair may name: those of its protection domain.
pub(crate) struct Regions {
    pub(crate) mrs: Arc<MrTable<Riw>>,
    /// The number of the protection domain.
    pub(crate) pd: u64,
}

impl Regions {
    /// Finds the range of `len` bytes at `addr` in the region `stag`, if the region allows `want`.
    /// Any context. `len` must not be 0: an empty range is not checked.
    pub(crate) fn find(
        &self,
        stag: Stag,
        want: Access,
        addr: u64,
        len: u32,
    ) -> Result<Target, Denied> {
        let mr = self.mrs.get(stag.0).ok_or(Denied::InvalidStag)?;
        let offset = mr.check(stag, self.pd, want, addr, len)?;

        Ok(Target { mr, offset })
    }

    /// Invalidates a region for a peer's Send with Invalidate. On return no copy to or from it is
    /// running or begins. Process context or softirq; the caller must not be in a copy of any region.
    ///
    /// Fails with `InvalidStag` if no valid region has the STag, `PdMismatch` if the region is in
    /// another protection domain, `Rights` if its registration does not allow this. All queue pairs
    /// of a protection domain share its regions: a peer of one must not take a region from the
    /// others unless the owner allows it (RFC 5040 §8.1.1).
    pub(crate) fn invalidate(&self, stag: Stag) -> Result<(), Denied> {
        let mr = self.mrs.get(stag.0).ok_or(Denied::InvalidStag)?;

        if mr.stag != stag {
            return Err(Denied::InvalidStag);
        }
        if mr.pd != self.pd {
            return Err(Denied::PdMismatch);
        }
        if !mr.remote_invalidate {
            return Err(Denied::Rights);
        }
        // Clear `valid` first: no new copy begins, so the wait is short.
        if !mr.valid.xchg(false, ordering::Full) {
            return Err(Denied::InvalidStag);
        }
        mr.copies.wait();
        Ok(())
    }
}

/// A range of a region, with its access checked.
///
/// It holds a reference to the region, and deregistration waits for that. So keep it only for the
/// copies of one FPDU.
pub(crate) struct Target {
    mr: ARef<MrObject>,
    /// Offset of the range from the start of the region, in bytes.
    offset: u64,
}

impl Target {
    /// Returns the STag of the region. Any context.
    pub(crate) fn stag(&self) -> Stag {
        self.mr.stag
    }

    /// Returns the address `at` bytes from the start of the range, as work requests and the wire name
    /// it. Any context.
    pub(crate) fn addr(&self, at: u32) -> u64 {
        self.mr
            .base
            .wrapping_add(self.offset)
            .wrapping_add(at.into())
    }

    /// Copies `from` to the range, `at` bytes from its start. Process context or softirq.
    ///
    /// Fails with `InvalidStag` if the region was invalidated meanwhile, `Bounds` outside of the
    /// region.
    pub(crate) fn write(&self, at: u32, from: net::Fragment<'_>) -> Result<(), Denied> {
        self.copy(at, |umem, at| umem.write(at, from))
    }

    /// Copies `len` bytes from the range, `at` bytes from its start, to `to`. Process context or
    /// softirq.
    ///
    /// Fails with `InvalidStag` if the region was invalidated meanwhile, `Bounds` outside of the
    /// region.
    pub(crate) fn read(&self, at: u32, len: usize, to: &mut net::Room<'_>) -> Result<(), Denied> {
        self.copy(at, |umem, at| umem.read(at, len, to))
    }

    fn copy(&self, at: u32, f: impl FnOnce(&Umem, u64) -> Result) -> Result<(), Denied> {
        let at = self.offset.checked_add(at.into()).ok_or(Denied::Wrap)?;

        self.mr.copies.during(|| {
            // `invalidate` clears `valid` and then waits for copies, so a copy that starts after
            // the wait fails here.
            match self.mr.valid.load(ordering::Relaxed) {
                true => f(&self.mr.umem, at).map_err(|_| Denied::Bounds),
                false => Err(Denied::InvalidStag),
            }
        })
    }
}
