// SPDX-License-Identifier: GPL-2.0

//! Regions of memory of a process, pinned pages or a dma-buf, and the access flags of all regions
//! and windows.

use super::{
    grant::BindRequest,
    memory::{LentMemory, UserMemory},
};
use crate::{
    abi::{self, siw, Provider},
    driver::Riw,
};
use iwarp::{Access, Denied, Region, Stag};
use kernel::{
    prelude::*,
    sync::{
        atomic::{ordering, Atomic},
        Arc,
    },
};
use kernel_ext::sync::BhUses;
use rdma::{
    dmabuf::DmaBuf,
    mr::{DmaBufRequest, MrChange, MrRange, MrRequest},
    restrack::{Details, DetailsWriter, MessageFull},
    umem::Umem,
    ContextUdata, Device,
};
use riw_abi::udata::RegMrResponse;

/// The rights among the access flags (`enum ib_access_flags`).
pub(super) const RIGHTS: u32 = 0xf;
/// The rights of the peer among them: to write, to read, and to do atomic operations.
pub(super) const REMOTE_RIGHTS: u32 = 1 << 1 | 1 << 2 | 1 << 3;
/// `IB_ACCESS_MW_BIND`: memory windows may be bound to the region, and a peer may invalidate it.
pub(super) const MW_BIND: u32 = 1 << 4;
/// The access flags that riw accepts: [`RIGHTS`], [`MW_BIND`], huge pages, and the flags that a
/// driver may ignore.
pub(super) const KNOWN_ACCESS: u32 = RIGHTS | MW_BIND | 1 << 7 | 0x3ff << 20;

/// Memory of a process.
pub(super) struct UserRegion {
    /// Shared with the region that replaces this one, unless it has other memory.
    memory: Arc<UserMemory>,
    stag: Stag,
    /// The address of the first byte, as work requests and the wire name it.
    base: u64,
    /// The access flags: of [`KNOWN_ACCESS`].
    flags: u32,
    /// Cleared when a peer invalidates the region.
    valid: Atomic<bool>,
}

/// Fails with `EOPNOTSUPP` for an unknown access flag.
fn check_access(flags: u32) -> Result {
    match flags & !KNOWN_ACCESS {
        0 => Ok(()),
        _ => Err(EOPNOTSUPP),
    }
}

/// Pins memory of the calling process. Fails with `EINVAL` if its addresses wrap, and as
/// [`Umem::pin`] does.
fn pin(dev: &Device<Riw>, memory: &MrRange, access: u32) -> Result<Arc<UserMemory>> {
    memory.iova.checked_add(memory.length).ok_or(EINVAL)?;
    let umem = Umem::pin(dev, memory.start, memory.length, access)?;

    Ok(Arc::new(UserMemory::Pages(umem), GFP_KERNEL_ACCOUNT)?)
}

impl UserRegion {
    /// Registers memory of the calling process. Process context; may sleep. Fails as
    /// [`Mr::new`](super::Mr::new) does.
    pub(super) fn new(
        dev: &Device<Riw>,
        request: &MrRequest,
        udata: &ContextUdata<'_, Riw>,
    ) -> Result<Self> {
        let MrRequest {
            memory,
            access,
            stag,
        } = request;

        check_access(*access)?;
        match dev.provider {
            // libsiw proposes a key, which riw ignores.
            Provider::Siw => {
                let _: siw::MrRequest = udata.request()?;
            }
            Provider::Own => abi::check_request(dev.provider, udata)?,
        }

        let pinned = pin(dev, memory, *access)?;

        match dev.provider {
            Provider::Siw => udata.respond(&siw::MrResponse {
                stag: *stag,
                pad: 0,
            })?,
            Provider::Own => udata.respond(&RegMrResponse::default())?,
        }
        Ok(Self {
            memory: pinned,
            stag: Stag(*stag),
            base: memory.iova,
            flags: *access,
            valid: Atomic::new(true),
        })
    }

    /// Registers memory of a dma-buf. Process context; may sleep. Fails as
    /// [`Mr::of_dmabuf`](super::Mr::of_dmabuf) does.
    pub(super) fn of_dmabuf(request: &DmaBufRequest) -> Result<Self> {
        let DmaBufRequest {
            fd,
            offset,
            length,
            iova,
            access,
            stag,
        } = *request;

        check_access(access)?;
        // The exporter may map the memory write-combined or uncached, where exclusive accesses of
        // the CPU can fault.
        if access & Access::REMOTE_ATOMIC.bits() != 0 {
            return Err(EOPNOTSUPP);
        }
        iova.checked_add(length).ok_or(EINVAL)?;
        let buf = UserMemory::DmaBuf(DmaBuf::map(fd, offset, length, access)?);

        Ok(Self {
            memory: Arc::new(buf, GFP_KERNEL_ACCOUNT)?,
            stag: Stag(stag),
            base: iova,
            flags: access,
            valid: Atomic::new(true),
        })
    }

    /// Returns a valid region that differs as `change` says. Process context; may sleep. Fails as
    /// [`Mr::replacement`](super::Mr::replacement) does.
    pub(super) fn changed(&self, dev: &Device<Riw>, change: &MrChange) -> Result<Self> {
        let flags = change.access.unwrap_or(self.flags);

        check_access(flags)?;
        let UserMemory::Pages(umem) = &*self.memory else {
            return Err(EOPNOTSUPP);
        };
        let (memory, base) = match &change.memory {
            Some(memory) => (pin(dev, memory, flags)?, memory.iova),
            None if umem.suits(flags) => (self.memory.clone(), self.base),
            None => {
                let again = UserMemory::Pages(umem.pin_again(dev, flags)?);

                (Arc::new(again, GFP_KERNEL_ACCOUNT)?, self.base)
            }
        };

        Ok(Self {
            memory,
            stag: self.stag,
            base,
            flags,
            valid: Atomic::new(true),
        })
    }

    fn access(&self) -> Access {
        Access::from_bits(self.flags & RIGHTS)
    }

    /// Checks that the region, in protection domain `pd`, may have a window. Any context. Returns
    /// the offset of its first byte. Fails as [`Binding::new`](super::window) does.
    pub(super) fn check_window(
        &self,
        pd: u64,
        bind: &BindRequest,
        access: Access,
    ) -> Result<u64, Denied> {
        let region = self.region(pd);
        let writes = access.bits() & Access::REMOTE_READ.bits() != access.bits();

        if !region.valid || region.stag != bind.region {
            return Err(Denied::InvalidStag);
        }
        if self.flags & MW_BIND == 0 || (writes && !region.access.contains(Access::LOCAL_WRITE)) {
            return Err(Denied::Rights);
        }
        if bind.addr.checked_add(bind.len).is_none() {
            return Err(Denied::Wrap);
        }
        let offset = bind.addr.checked_sub(region.base).ok_or(Denied::Bounds)?;
        match region.len.checked_sub(offset) {
            Some(left) if left >= bind.len => Ok(offset),
            _ => Err(Denied::Bounds),
        }
    }

    /// Returns the details. Any context.
    pub(super) fn details(&self) -> MrDetails {
        MrDetails {
            access: self.flags & (RIGHTS | MW_BIND),
            pages: self.memory.pages(),
            valid: self.valid.load(ordering::Relaxed),
        }
    }

    /// Returns the region that an access is checked against, in protection domain `pd`. Any
    /// context.
    pub(super) fn region(&self, pd: u64) -> Region {
        Region {
            stag: self.stag,
            pd,
            base: self.base,
            len: self.memory.len(),
            access: self.access(),
            valid: self.valid.load(ordering::Relaxed),
        }
    }

    /// Returns the address `offset` bytes from the start of the region, as work requests and the
    /// wire name it. Any context.
    pub(super) fn addr(&self, offset: u64) -> u64 {
        self.base.wrapping_add(offset)
    }

    /// Returns the STag. Any context.
    pub(super) fn stag(&self) -> Stag {
        self.stag
    }

    /// Invalidates the region for a peer or for a WR. Process context or softirq. Fails with
    /// `InvalidStag` if it has another STag or is invalid, `Rights` if its registration does not
    /// allow this.
    pub(super) fn invalidate(&self, stag: Stag, copies: &BhUses) -> Result<(), Denied> {
        if self.stag != stag {
            return Err(Denied::InvalidStag);
        }
        if self.flags & MW_BIND == 0 {
            return Err(Denied::Rights);
        }
        // Clear `valid` first: no new copy begins, so the wait is short
        // (selftests/litmus/bh_uses.litmus).
        if !self.valid.xchg(false, ordering::Full) {
            return Err(Denied::InvalidStag);
        }
        copies.wait();
        Ok(())
    }

    /// Calls `f` with the memory, unless the region is invalid. Process context or softirq; `f`
    /// must not sleep. Fails with `InvalidStag`, or `Bounds` if `f` fails.
    pub(super) fn copy<R>(
        &self,
        copies: &BhUses,
        f: impl FnOnce(LentMemory<'_>) -> Result<R>,
    ) -> Result<R, Denied> {
        if self.flags & MW_BIND == 0 {
            // `invalidate` refuses: it waits for no copy. Deregistration waits for the caller's
            // reference.
            return f(self.memory.lend()).map_err(|_| Denied::Bounds);
        }
        copies.during(|| {
            // `invalidate` clears `valid` and then waits for copies, so a copy that starts after
            // the wait fails here (selftests/litmus/bh_uses.litmus).
            match self.valid.load(ordering::Relaxed) {
                true => f(self.memory.lend()).map_err(|_| Denied::Bounds),
                false => Err(Denied::InvalidStag),
            }
        })
    }
}

/// The details of a region, for an administrator to see.
pub(crate) struct MrDetails {
    /// The rights, as access flags: [`RIGHTS`], [`MW_BIND`].
    pub(super) access: u32,
    pub(super) pages: usize,
    /// Whether the region is registered, and not invalidated since.
    pub(super) valid: bool,
}

impl Details for MrDetails {
    fn write(&self, to: &mut DetailsWriter<'_>) -> Result<(), MessageFull> {
        to.u32_hex(c"access", self.access)?;
        // CAST: A size fits.
        to.u64(c"pages", self.pages as u64)?;
        to.u32(c"valid", self.valid.into())
    }
}
