// SPDX-License-Identifier: GPL-2.0

//! Regions of memory of kernel users: fast registration.
//!
//! A consumer maps memory (`ib_map_mr_sg()`), posts a WR that registers it under an STag of its
//! choice (`IB_WR_REG_MR`), and later invalidates that registration. It may map memory while the
//! registration before is in force, so a region has two page lists.
//!
//! A registration serves only the queue pair that has executed the WR. It ends with the stream of
//! that queue pair, before the consumer learns of the end: the consumer may free the memory then.

use super::{
    details::MrDetails,
    grant::{Grant, Grantor},
    rights::{KNOWN_ACCESS, REMOTE_RIGHTS, RIGHTS},
    MrMemory,
};
use crate::{driver::Riw, limits};
use iwarp::{Access, Denied, Region, Stag};
use kernel::{
    ffi::c_int,
    new_spinlock_irq,
    page::PAGE_SIZE,
    prelude::*,
    sync::{Arc, SpinLockIrq},
};
use kernel_ext::sync::{new_bh_spinlock, BhSpinLock};
use rdma::{mr::MrTable, page_list::PageList};

// A list may be freed with a spin lock held, so it must not be vmalloc memory.
const _: () = assert!(limits::MAX_MR_BLOCKS as usize * size_of::<usize>() <= PAGE_SIZE);

/// The memory of a kernel user's region.
#[pin_data]
pub(super) struct KernelRegion {
    /// A number that its device never reuses.
    id: u64,
    /// The upper 24 bits of its STags. A later region may have the same.
    index: u32,
    /// Held while data is copied to or from the memory: an invalidation waits for a copy.
    #[pin]
    current: BhSpinLock<RegistrationState>,
    /// Consumers map and post in any context, so the lock disables interrupts. Taken under
    /// `current`.
    #[pin]
    lists: SpinLockIrq<Lists>,
}

struct RegistrationState {
    /// The last registration, until it is invalidated or replaced.
    registration: Option<Registration>,
    /// Counts registrations.
    generation: u32,
}

struct Registration {
    mapped: Mapped,
    stag: Stag,
    /// The address of the first byte, as work requests and the wire name it.
    base: u64,
    access: Access,
    /// The queue pair that registered it. Other peers of the protection domain have no business
    /// with it (RFC 5040 §8.1.1).
    grant: Grant,
}

/// The page lists that are not registered.
struct Lists {
    /// The memory that the consumer has mapped last, unless a WR has taken it.
    mapped: Option<Mapped>,
    free: Option<PageList>,
    /// Counts mappings.
    generation: u32,
}

/// A page list with memory that a consumer has mapped.
struct Mapped {
    list: PageList,
    /// Counts mappings: whether the consumer has mapped other memory since.
    generation: u32,
}

/// Memory to be registered, by a WR that is posted. Returns to its region if it is dropped.
pub(crate) struct Mapping {
    /// `None` once it is registered.
    mapped: Option<Mapped>,
    /// The id of its region, which the consumer may have deregistered.
    region: u64,
    stag: Stag,
    base: u64,
    access: Access,
    mrs: Arc<MrTable<Riw>>,
}

impl RegistrationState {
    /// Returns the registration in force. Any context.
    fn in_force(&self) -> Option<&Registration> {
        self.registration
            .as_ref()
            .filter(|registration| registration.grant.is_in_force())
    }
}

impl Registration {
    /// Returns the region that an access is checked against, in protection domain `pd`. Any
    /// context.
    fn region(&self, pd: u64) -> Region {
        Region {
            stag: self.stag,
            pd,
            base: self.base,
            len: self.mapped.list.len(),
            access: self.access,
            valid: true,
        }
    }
}

impl Lists {
    /// Takes a list that is not used any more. Its memory can be registered again, unless the
    /// consumer has mapped other memory since.
    fn give_back(&mut self, mapped: Mapped) {
        match mapped.generation == self.generation {
            true => self.mapped = Some(mapped),
            false => self.free = Some(mapped.list),
        }
    }
}

impl KernelRegion {
    /// Creates a region of at most `max` blocks that is not registered. `id`: a number that the
    /// device never reuses. Process context; may sleep. Fails with `ENOMEM` without memory.
    pub(super) fn new(max: u32, stag: Stag, id: u64) -> Result<impl PinInit<Self>> {
        let lists = Lists {
            mapped: Some(Mapped {
                list: PageList::new(max)?,
                generation: 0,
            }),
            free: Some(PageList::new(max)?),
            generation: 0,
        };
        let current = RegistrationState {
            registration: None,
            generation: 0,
        };

        Ok(pin_init!(Self {
            id,
            index: stag.0 >> 8,
            current <- new_bh_spinlock!(current, "riw::KernelRegion::current"),
            lists <- new_spinlock_irq!(lists, "riw::KernelRegion::lists"),
        }))
    }

    /// Maps memory, to be registered next. Any context. Fails with `EBUSY` if both lists are in
    /// use.
    pub(super) fn map(&self, fill: impl FnOnce(&mut PageList) -> c_int) -> Result<c_int> {
        let mut lists = self.lists.lock();
        let list = match lists.mapped.take() {
            Some(mapped) => Some(mapped.list),
            None => lists.free.take(),
        };
        let mut list = list.ok_or(EBUSY)?;
        let mapped = fill(&mut list);

        lists.generation = lists.generation.wrapping_add(1);
        lists.mapped = Some(Mapped {
            list,
            generation: lists.generation,
        });
        Ok(mapped)
    }

    /// Takes the memory that was mapped last. Any context. Fails as
    /// [`Mr::take_mapping`](super::Mr::take_mapping) does.
    pub(super) fn take_mapping(
        &self,
        mrs: &Arc<MrTable<Riw>>,
        stag: Stag,
        base: u64,
        access: u32,
    ) -> Result<Mapping> {
        if stag.0 >> 8 != self.index || access & !KNOWN_ACCESS != 0 {
            return Err(EINVAL);
        }
        let mut lists = self.lists.lock();
        let len = lists.mapped.as_ref().ok_or(EINVAL)?.list.len();

        base.checked_add(len).ok_or(EINVAL)?;
        Ok(Mapping {
            mapped: lists.mapped.take(),
            region: self.id,
            stag,
            base,
            access: Access::from_bits(access & RIGHTS),
            mrs: mrs.clone(),
        })
    }

    /// Registers a mapping for the queue pair `grantor`. Process context or softirq. Fails with
    /// `InvalidStag` if a registration is in force, or the mapping is of an earlier region with
    /// this index.
    pub(super) fn register(
        &self,
        mut mapping: Mapping,
        grantor: &Arc<Grantor>,
    ) -> Result<(), Denied> {
        let mut current = self.current.lock();

        if mapping.region != self.id || current.in_force().is_some() {
            return Err(Denied::InvalidStag);
        }
        let mapped = mapping.mapped.take().ok_or(Denied::InvalidStag)?;
        let ended = current.registration.replace(Registration {
            mapped,
            stag: mapping.stag,
            base: mapping.base,
            access: mapping.access,
            grant: grantor.grant(),
        });

        if let Some(ended) = ended {
            self.lists.lock().give_back(ended.mapped);
        }
        current.generation = current.generation.wrapping_add(1);
        Ok(())
    }

    /// Invalidates the registration for its consumer, whichever queue pair registered it. Process
    /// context or softirq. Fails with `InvalidStag` if it has another STag. There may be no
    /// registration: a peer can invalidate it, too.
    pub(super) fn invalidate_local(&self, stag: Stag) -> Result<(), Denied> {
        self.end_registration(|registration| match registration {
            Some(registration) if registration.stag != stag => Err(Denied::InvalidStag),
            _ => Ok(()),
        })
    }

    /// Invalidates the registration for the peer of the queue pair `grantor`. Process context or
    /// softirq. Fails with `InvalidStag` if there is none with this STag, `Rights` if another queue
    /// pair registered it or the peer has no right to it.
    pub(super) fn invalidate_remote(
        &self,
        stag: Stag,
        grantor: &Arc<Grantor>,
    ) -> Result<(), Denied> {
        self.end_registration(|registration| {
            let registration = registration.ok_or(Denied::InvalidStag)?;

            if registration.stag != stag {
                return Err(Denied::InvalidStag);
            }
            if !registration.grant.is_of(grantor) || registration.access.bits() & REMOTE_RIGHTS == 0
            {
                return Err(Denied::Rights);
            }
            Ok(())
        })
    }

    fn end_registration(
        &self,
        check: impl FnOnce(Option<&Registration>) -> Result<(), Denied>,
    ) -> Result<(), Denied> {
        let mut current = self.current.lock();

        check(current.in_force())?;
        if let Some(registration) = current.registration.take() {
            self.lists.lock().give_back(registration.mapped);
        }
        Ok(())
    }

    /// Calls `check` with the registration in force, in protection domain `pd`, for an access by
    /// the queue pair `grantor` or its peer. Process context or softirq; `check` must not sleep.
    /// Returns the offset that it returns, and the generation of the registration. Fails with
    /// `InvalidStag` if there is none, `PdMismatch` if another queue pair registered it.
    pub(super) fn check(
        &self,
        pd: u64,
        grantor: &Arc<Grantor>,
        check: impl FnOnce(&Region) -> Result<u64, Denied>,
    ) -> Result<(u64, u32), Denied> {
        let current = self.current.lock();
        let registration = current.in_force().ok_or(Denied::InvalidStag)?;
        let offset = check(&registration.region(pd))?;

        match registration.grant.is_of(grantor) {
            true => Ok((offset, current.generation)),
            false => Err(Denied::PdMismatch),
        }
    }

    /// Calls `f` with the memory of registration `generation`, unless that is not in force any
    /// more. Process context or softirq; `f` must not sleep. Fails with `InvalidStag`, or `Bounds`
    /// if `f` fails.
    pub(super) fn copy(
        &self,
        generation: u32,
        f: impl FnOnce(&PageList) -> Result,
    ) -> Result<(), Denied> {
        let current = self.current.lock();

        match current.in_force() {
            Some(registration) if current.generation == generation => {
                f(&registration.mapped.list).map_err(|_| Denied::Bounds)
            }
            _ => Err(Denied::InvalidStag),
        }
    }

    /// Returns STag and address of the byte `offset` bytes from the start of the registration.
    /// Process context or softirq.
    pub(super) fn name(&self, offset: u64) -> (Stag, u64) {
        match &self.current.lock().registration {
            Some(Registration { stag, base, .. }) => (*stag, base.wrapping_add(offset)),
            None => (Stag(self.index << 8), offset),
        }
    }

    /// Returns the details. Process context or softirq.
    pub(super) fn details(&self) -> MrDetails {
        let current = self.current.lock();
        let registration = current.in_force();

        MrDetails {
            access: registration.map_or(0, |registration| registration.access.bits()),
            pages: registration.map_or(0, |registration| registration.mapped.list.blocks()),
            valid: registration.is_some(),
        }
    }
}

impl Mapping {
    /// Returns the STag to be registered. Any context.
    pub(super) fn stag(&self) -> Stag {
        self.stag
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let Some(mapped) = self.mapped.take() else {
            return;
        };
        // The region may be gone, and another one may have its index.
        if let Some(mr) = self.mrs.get(self.stag.0) {
            match &mr.memory {
                MrMemory::Kernel(region) if region.id == self.region => {
                    region.lists.lock().give_back(mapped);
                }
                _ => {}
            }
        }
    }
}
