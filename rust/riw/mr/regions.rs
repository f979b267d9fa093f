// SPDX-License-Identifier: GPL-2.0

//! The regions that a queue pair may name, and the ranges of them that it accesses.

use super::{Mapping, MrMemory, MrObject};
use crate::Riw;
use iwarp::{Access, Denied, Region, Stag};
use kernel::{
    prelude::*,
    sync::{aref::ARef, Arc},
};
use net::{Fragment, Room};
use rdma::{
    mr::MrTable,
    wr::{Memory, LOCAL_DMA_LKEY},
};

/// The regions that a queue pair may name: those of its protection domain.
pub(crate) struct Regions {
    pub(crate) mrs: Arc<MrTable<Riw>>,
    /// The number of the protection domain.
    pub(crate) pd: u64,
    /// The number of the queue pair.
    pub(crate) qp: u32,
}

impl Regions {
    /// Finds the range of `len` bytes at `addr` in the region `stag`, if the region allows `want`.
    /// Process context or softirq. `len` must not be 0: an empty range is not checked.
    pub(crate) fn find(
        &self,
        stag: Stag,
        want: Access,
        addr: u64,
        len: u32,
    ) -> Result<Target, Denied> {
        let mr = self.mrs.get(stag.0).ok_or(Denied::InvalidStag)?;
        let check = |region: &Region| region.check(stag, self.pd, want, addr, len);
        let (offset, generation) = match &mr.memory {
            MrMemory::User(region) => (check(&region.region(mr.pd))?, 0),
            MrMemory::Kernel(region) => region.check(mr.pd, check)?,
        };

        Ok(Target {
            mr,
            offset,
            generation,
        })
    }

    /// Finds the region `stag` in the protection domain.
    fn region(&self, stag: Stag) -> Result<ARef<MrObject>, Denied> {
        let mr = self.mrs.get(stag.0).ok_or(Denied::InvalidStag)?;

        if mr.pd != self.pd {
            return Err(Denied::PdMismatch);
        }
        Ok(mr)
    }

    /// Invalidates a region for a peer's Send with Invalidate. On return no copy to or from it is
    /// running or begins. Process context or softirq; the caller must not be in a copy of any region.
    ///
    /// Fails with `InvalidStag` if no valid region has the STag, `PdMismatch` if the region is in
    /// another protection domain, `Rights` if its registration does not allow this. All queue pairs
    /// of a protection domain share its regions: a peer of one must not take a region from the
    /// others unless the owner allows it (RFC 5040 §8.1.1).
    pub(crate) fn invalidate(&self, stag: Stag) -> Result<(), Denied> {
        let mr = self.region(stag)?;

        match &mr.memory {
            MrMemory::User(region) => region.invalidate(stag, &mr.copies),
            MrMemory::Kernel(region) => region.invalidate_remote(stag, self.qp),
        }
    }

    /// Invalidates a registration for its consumer, as [`Self::invalidate`] does. Fails with
    /// `InvalidStag` if the region does not exist, has another STag now, or belongs to a process,
    /// `PdMismatch` if it is in another protection domain.
    pub(crate) fn invalidate_local(&self, stag: Stag) -> Result<(), Denied> {
        self.region(stag)?.invalidate_local(stag)
    }

    /// Registers memory of a kernel user. Process context or softirq. Fails with `InvalidStag` if the
    /// region does not exist any more or a registration is in force, `PdMismatch` if it is in another
    /// protection domain.
    pub(crate) fn register(&self, mapping: Mapping) -> Result<(), Denied> {
        let mr = self.region(mapping.stag())?;

        match &mr.memory {
            MrMemory::User(_) => Err(Denied::InvalidStag),
            MrMemory::Kernel(region) => region.register(mapping, self.qp),
        }
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
    /// The registration that was in force, of a kernel user.
    generation: u32,
}

impl Target {
    /// Returns STag and address of the byte `at` bytes from the start of the range, as work requests
    /// and the wire name it. Process context or softirq.
    fn name(&self, at: u32) -> (Stag, u64) {
        let offset = self.offset.wrapping_add(at.into());

        match &self.mr.memory {
            MrMemory::User(region) => (region.stag(), region.addr(offset)),
            MrMemory::Kernel(region) => region.name(offset),
        }
    }

    /// Copies `from` to the range, `at` bytes from its start. Process context or softirq.
    ///
    /// Fails with `InvalidStag` if the region was invalidated meanwhile, `Bounds` outside of the
    /// region.
    fn write(&self, at: u32, from: Fragment<'_>) -> Result<(), Denied> {
        let at = self.offset.checked_add(at.into()).ok_or(Denied::Wrap)?;

        match &self.mr.memory {
            MrMemory::User(region) => region.copy(&self.mr.copies, |umem| umem.write(at, from)),
            MrMemory::Kernel(region) => region.copy(self.generation, |list| list.write(at, from)),
        }
    }

    /// Copies `len` bytes from the range, `at` bytes from its start, to `to`. Process context or
    /// softirq.
    ///
    /// Fails with `InvalidStag` if the region was invalidated meanwhile, `Bounds` outside of the
    /// region.
    pub(crate) fn read(&self, at: u32, len: usize, to: &mut Room<'_>) -> Result<(), Denied> {
        let at = self.offset.checked_add(at.into()).ok_or(Denied::Wrap)?;

        match &self.mr.memory {
            MrMemory::User(region) => region.copy(&self.mr.copies, |umem| umem.read(at, len, to)),
            MrMemory::Kernel(region) => region.copy(self.generation, |list| list.read(at, len, to)),
        }
    }
}

/// Where received data goes.
pub(crate) enum Sink<'a> {
    /// A range of a region.
    Region(Target),
    /// Memory that a kernel user has lent for a WR.
    Memory(Memory<'a>),
}

impl Sink<'_> {
    /// Copies `from` to the sink, `at` bytes from its start. Process context or softirq.
    ///
    /// Fails with `InvalidStag` if the region was invalidated meanwhile, `Bounds` if it does not fit.
    pub(crate) fn write(&self, at: u32, from: Fragment<'_>) -> Result<(), Denied> {
        match self {
            Self::Region(target) => target.write(at, from),
            // CAST: A 32-bit number fits.
            Self::Memory(memory) => memory.write(at as usize, from).map_err(|_| Denied::Bounds),
        }
    }

    /// Returns STag and address of the byte `at` bytes from the start of the sink, for traces. Process
    /// context or softirq.
    pub(crate) fn at(&self, at: u32) -> (Stag, u64) {
        match self {
            Self::Region(target) => target.name(at),
            Self::Memory(memory) => (Stag(LOCAL_DMA_LKEY), memory.addr().wrapping_add(at.into())),
        }
    }
}
