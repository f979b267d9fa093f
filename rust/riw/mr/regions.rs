// SPDX-License-Identifier: GPL-2.0

//! The regions that a queue pair may name, and the ranges of them that it accesses.

use super::{
    grant::BindRequest,
    granting::{denied, region_of, Granting, Invalidated},
    memory::LentMemory,
    user::REMOTE_RIGHTS,
    MrMemory, MrObject,
};
use crate::driver::Riw;
use iwarp::{Access, AtomicRequest, Denied, Error, Rdmap, Region, Stag};
use kernel::{
    prelude::*,
    sync::{aref::ARef, Arc},
};
use net::{Fragment, Room};
use rdma::{
    mr::{KernelRegion, MrTable, PostedMapping},
    wr::{Memory, WrId, LOCAL_DMA_LKEY},
};

/// Length of the target of an atomic operation, in bytes.
pub(crate) const ATOMIC_LEN: u32 = 8;

/// The regions that a queue pair may name: the regions of its protection domain, except those that
/// another queue pair has registered.
pub(crate) struct Regions {
    pub(crate) mrs: Arc<MrTable<Riw>>,
    /// The number of the protection domain.
    pub(crate) pd: u64,
    /// The queue pair.
    pub(crate) granting: Granting,
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
        self.find_in(self.mrs.get(stag.0), stag, want, addr, len)
    }

    /// Finds a range as [`Self::find`] does, in `mr`, the region with the index of `stag`.
    fn find_in(
        &self,
        mr: Option<ARef<MrObject>>,
        stag: Stag,
        want: Access,
        addr: u64,
        len: u32,
    ) -> Result<Target, Denied> {
        let mr = mr.ok_or(Denied::InvalidStag)?;
        let check = |region: &Region| region.check(stag, self.pd, want, addr, len);
        let (offset, generation) = match &mr.memory {
            MrMemory::User(region) => (check(&region.region(mr.pd))?, 0),
            MrMemory::Kernel => {
                let region = registrations(&mr)?.in_force().ok_or(Denied::InvalidStag)?;
                let offset = check(&region_of(&region.terms, mr.pd))?;

                if !self.granting.of_kernel()?.owns(&region) {
                    return Err(Denied::PdMismatch);
                }
                (offset, region.generation)
            }
            MrMemory::Window(window) => {
                window.check(mr.pd, self.granting.grantor(), want, check)?
            }
        };

        Ok(Target {
            mr,
            offset,
            generation,
        })
    }

    /// Finds the target of an atomic operation of the peer. Process context or softirq. Fails as a
    /// Read Request does, and if the target is not aligned.
    ///
    /// The address in memory counts (RFC 7306, section 5.2.1): the Tagged Offset of an aligned
    /// target may be any number, as a consumer may give its memory any first address on the wire.
    pub(crate) fn find_atomic(&self, request: &AtomicRequest) -> Result<Target, Error> {
        let target = self
            .find(request.stag, Access::REMOTE_ATOMIC, request.to, ATOMIC_LEN)
            .map_err(Denied::read_source)?;

        match target.is_word().map_err(Denied::read_source)? {
            true => Ok(target),
            false => Err(Rdmap::UnalignedAtomic.into()),
        }
    }

    /// Executes an atomic operation of the peer. Process context or softirq. Returns the original
    /// value of the target, or `None` if others have changed it with each try: the operation is to
    /// be tried again after other work. Fails as [`Self::find_atomic`] does. With `None` and with
    /// an error, nothing is changed.
    pub(crate) fn atomic(&self, request: &AtomicRequest) -> Result<Option<u64>, Error> {
        let target = self.find_atomic(request)?;

        target
            .update(|value| request.op.apply(value))
            .map_err(Denied::read_source)
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
    /// running or begins. Process context or softirq; the caller must not be in a copy of any
    /// region.
    ///
    /// Fails with `InvalidStag` if no valid region has the STag, `PdMismatch` if the region is in
    /// another protection domain, `Rights` if its registration does not allow this. All queue pairs
    /// of a protection domain share its regions: a peer of one must not take a region from the
    /// others unless the owner allows it (RFC 5040 §8.1.1).
    pub(crate) fn invalidate(&self, stag: Stag) -> Result<Invalidated, Denied> {
        let mr = self.region(stag)?;

        match &mr.memory {
            MrMemory::User(region) => region.invalidate(stag, &mr.copies)?,
            MrMemory::Kernel => {
                let registrar = self.granting.of_kernel()?;
                let ended = registrar.invalidate_remote(registrations(&mr)?, stag.0, REMOTE_RIGHTS);

                return ended.map(Invalidated::Kernel).map_err(denied);
            }
            MrMemory::Window(window) => {
                window.invalidate_remote(stag, self.granting.of_process()?)?;
            }
        }
        Ok(Invalidated::Process(stag))
    }

    /// Invalidates a region or a window for its process, as [`Self::invalidate`] does. Fails with
    /// `InvalidStag` if the region does not exist, has another STag now, or is a window of type 1,
    /// `PdMismatch` if it is in another protection domain, `Rights` if its registration does not
    /// allow this or another queue pair has bound the window.
    pub(crate) fn invalidate_local(&self, stag: Stag) -> Result<(), Denied> {
        let mr = self.region(stag)?;

        match &mr.memory {
            MrMemory::User(region) => region.invalidate(stag, &mr.copies),
            MrMemory::Kernel => Err(Denied::InvalidStag),
            MrMemory::Window(window) => window.invalidate_local(stag, self.granting.of_process()?),
        }
    }

    /// Binds a memory window, or ends its binding. Process context or softirq; the caller must not
    /// be in a copy of any region. On return no access by an earlier binding is running or begins.
    ///
    /// Fails with `InvalidStag` if the window or the region does not exist, or the window is of
    /// type 2B and bound, `PdMismatch` if either is in another protection domain, `Rights` if the
    /// region does not allow the window or an access flag is unknown, `Bounds` or `Wrap` if the
    /// region does not contain it, or a window of type 2B would be empty.
    pub(crate) fn bind(&self, bind: &BindRequest) -> Result<(), Denied> {
        let mr = self.region(bind.stag)?;
        let MrMemory::Window(window) = &mr.memory else {
            return Err(Denied::InvalidStag);
        };
        let region = match bind.len {
            0 => None,
            _ => Some(self.region(bind.region)?),
        };

        window.bind(region, bind, self.granting.of_process()?)
    }

    /// Registers memory of a kernel user, by the WR with `id`. Process context or softirq. Fails
    /// with `InvalidStag` if the region does not exist any more or a registration is in force,
    /// `PdMismatch` if it is in another protection domain.
    pub(crate) fn register(
        &self,
        mapping: PostedMapping,
        id: Option<&mut WrId>,
    ) -> Result<(), Denied> {
        let registrar = self.granting.of_kernel()?;
        let id = id.ok_or(Denied::InvalidStag)?;

        registrar.register(mapping, id).map_err(denied)
    }

    /// Ends the registration of a kernel user that the WR with `id` invalidates. Process context or
    /// softirq; the caller must not be in a copy of any region. Fails with `InvalidStag` if the
    /// region does not exist, or has another STag now, `PdMismatch` if it is in another protection
    /// domain.
    pub(crate) fn unregister(&self, id: Option<&mut WrId>) -> Result<(), Denied> {
        let registrar = self.granting.of_kernel()?;
        let id = id.ok_or(Denied::InvalidStag)?;

        registrar.invalidate(id).map_err(denied)
    }

    /// Whether what a kernel user has registered has ended. It has with the stream, and before, if
    /// the user moves the queue pair to ERROR. Any context.
    pub(crate) fn has_ended(&self) -> bool {
        self.granting.has_ended()
    }

    /// Ends what the queue pair has registered, and what windows of type 2B it has bound. Process
    /// context or softirq. The caller has stopped the stream: it does not send, and places nothing.
    pub(crate) fn revoke(&self) {
        self.granting.revoke();
    }
}

/// Finds the ranges of a run of FPDUs. Most are in the same region, so it keeps the region that was
/// used last: a search in the table and two atomic operations are a good part of what an FPDU
/// costs.
///
/// Deregistration waits for the region that is kept. So keep a finder only for a run whose length
/// is bounded: a batch to send, with the allocations for it, or what a socket has.
pub(crate) struct Finder<'a> {
    regions: &'a Regions,
    last: Option<ARef<MrObject>>,
}

impl<'a> Finder<'a> {
    /// Returns a finder that keeps no region yet. Any context.
    pub(crate) fn new(regions: &'a Regions) -> Self {
        Self {
            regions,
            last: None,
        }
    }

    /// Finds a range, as [`Regions::find`] does. Process context or softirq.
    pub(crate) fn find(
        &mut self,
        stag: Stag,
        want: Access,
        addr: u64,
        len: u32,
    ) -> Result<Target, Denied> {
        let mr = self.regions.mrs.get_again(stag.0, self.last.take());

        self.regions.find_in(mr, stag, want, addr, len)
    }

    /// Keeps no region from now on: one may end that [`rdma::mr::MrTable::get`] does not find any
    /// more, as another has replaced it. Any context.
    pub(crate) fn forget(&mut self) {
        self.last = None;
    }

    /// Keeps the region of a range whose copies are done. Any context.
    pub(crate) fn keep(&mut self, target: Target) {
        self.last = Some(target.mr);
    }
}

/// A range of a region, with its access checked.
///
/// It holds a reference to the region, and deregistration waits for that. So keep it only for the
/// copies of one FPDU, and give it to a [`Finder`] then, if there is one.
pub(crate) struct Target {
    mr: ARef<MrObject>,
    /// Offset of the range from the start of the region, in bytes.
    offset: u64,
    /// The registration of a kernel user, or the binding of a window, that was in force.
    generation: u64,
}

impl Target {
    /// Returns STag and address of the byte `at` bytes from the start of the range, as work
    /// requests and the wire name it. Process context or softirq.
    fn name(&self, at: u32) -> (Stag, u64) {
        let offset = self.offset.wrapping_add(at.into());

        match &self.mr.memory {
            MrMemory::User(region) => (region.stag(), region.addr(offset)),
            MrMemory::Kernel => {
                let terms = self.mr.registrations().and_then(|region| region.last());

                terms.map_or((Stag(self.mr.stag()), offset), |terms| {
                    (Stag(terms.stag), terms.base.wrapping_add(offset))
                })
            }
            MrMemory::Window(window) => window.name(offset),
        }
    }

    /// Calls `f` with the memory of the region, and the place in it of the byte `at` bytes from the
    /// start of the range. Process context or softirq; `f` must not sleep.
    ///
    /// Fails with `InvalidStag` if the region was invalidated meanwhile, `Bounds` if `f` fails.
    fn copy<R>(
        &self,
        at: u32,
        f: impl FnOnce(LentMemory<'_>, u64) -> Result<R>,
    ) -> Result<R, Denied> {
        let at = self.offset.checked_add(at.into()).ok_or(Denied::Wrap)?;

        match &self.mr.memory {
            MrMemory::User(region) => region.copy(&self.mr.copies, |memory| f(memory, at)),
            MrMemory::Kernel => registrations(&self.mr)?
                .copy(self.generation, |list| f(LentMemory::List(list), at))
                .map_err(denied),
            MrMemory::Window(window) => window.copy(self.generation, |memory, first| {
                f(memory, first.checked_add(at).ok_or(EINVAL)?)
            }),
        }
    }

    /// Copies `from` to the range, `at` bytes from its start. Process context or softirq. Fails as
    /// [`Self::copy`] does, with `Bounds` outside of the region.
    fn write(&self, at: u32, from: Fragment<'_>) -> Result<(), Denied> {
        self.copy(at, |memory, at| memory.write(at, from))
    }

    /// Copies `len` bytes from the range, `at` bytes from its start, to `to`. Process context or
    /// softirq.
    ///
    /// Fails with `InvalidStag` if the region was invalidated meanwhile, `Bounds` outside of the
    /// region.
    pub(crate) fn read(&self, at: u32, len: usize, to: &mut Room<'_>) -> Result<(), Denied> {
        self.copy(at, |memory, at| memory.read(at, len, to))
    }

    /// Whether the range begins at a multiple of 8 in memory that has atomic operations. Process
    /// context or softirq. Fails with `InvalidStag` if the region was invalidated meanwhile.
    fn is_word(&self) -> Result<bool, Denied> {
        self.copy(0, |memory, at| Ok(memory.is_word(at)))
    }

    /// Replaces the 8 bytes at the start of the range by the result of `f`, atomically: see
    /// [`Umem::update`](rdma::umem::Umem::update). Process context or softirq. Returns the original
    /// value, or `None` if others have changed it with each try. Fails as [`Self::copy`] does,
    /// with `Bounds` outside of the region.
    fn update(&self, f: impl Fn(u64) -> u64) -> Result<Option<u64>, Denied> {
        self.copy(0, |memory, at| memory.update(at, f))
    }
}

/// Returns the registrations of a kernel user.
fn registrations(mr: &MrObject) -> Result<&Arc<KernelRegion>, Denied> {
    mr.registrations().ok_or(Denied::InvalidStag)
}

/// Where received data goes.
pub(crate) enum Sink<'a> {
    /// A range of a region.
    Region(&'a Target),
    /// Memory that a kernel user has lent for a WR.
    Memory(Memory<'a>),
}

impl Sink<'_> {
    /// Copies `from` to the sink, `at` bytes from its start. Process context or softirq.
    ///
    /// Fails with `InvalidStag` if the region was invalidated meanwhile, `Bounds` if it does not
    /// fit.
    pub(crate) fn write(&self, at: u32, from: Fragment<'_>) -> Result<(), Denied> {
        match self {
            Self::Region(target) => target.write(at, from),
            // CAST: A 32-bit number fits.
            Self::Memory(memory) => memory.write(at as usize, from).map_err(|_| Denied::Bounds),
        }
    }

    /// Returns STag and address of the byte `at` bytes from the start of the sink, for traces.
    /// Process context or softirq.
    pub(crate) fn at(&self, at: u32) -> (Stag, u64) {
        match self {
            Self::Region(target) => target.name(at),
            Self::Memory(memory) => (Stag(LOCAL_DMA_LKEY), memory.addr().wrapping_add(at.into())),
        }
    }
}
