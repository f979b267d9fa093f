// SPDX-License-Identifier: GPL-2.0

//! Regions of memory of kernel users: fast registration.
//!
//! A consumer maps memory (`ib_map_mr_sg()`), posts a WR that registers it under an STag of its
//! choice (`IB_WR_REG_MR`), and later invalidates that registration. It may map memory while the
//! registration before is in force, so a region has two page lists.
//!
//! The consumer frees the memory when it learns that the registration has ended, and many consumers
//! learn that from a completion with an error. So this crate has the memory accessed only while the
//! registration is in force, and refuses a completion that tells of an end which has not come:
//!
//! - the completion of a WR that invalidates, whatever its status, or of a later one: [`WrId`]
//!   knows what the WR invalidates, and [`Registrar::invalidate`] ends it;
//! - the completion of a receive that reports an invalidation by the peer: [`Invalidated`] is the
//!   proof;
//! - a flushed completion of the queue pair that has registered the memory: see
//!   [`Registrar::revoke`]. When the consumer has moved the queue pair to ERROR, it takes any
//!   completion of a later WR for the end, so the crate revokes then, and when it destroys the
//!   queue pair.
//!
//! The deregistration ends the registration, too.
//!
//! [`Registrar::invalidate`]: super::Registrar::invalidate
//! [`Registrar::revoke`]: super::Registrar::revoke

use super::{
    grant::Grant,
    mapping::{Lists, Mapped, PostedMapping, Terms},
};
use crate::{page_list::PageList, wr::WrId};
use kernel::{
    ffi::c_int,
    new_spinlock_irq,
    prelude::*,
    sync::{
        atomic::{ordering, Atomic},
        Arc, SpinLockIrq,
    },
};
use kernel_ext::sync::{new_bh_spinlock, BhSpinLock};

#[cfg(CONFIG_KUNIT = "y")]
#[path = "../kunit/registration.rs"]
mod kunit;

/// Why the memory of a region cannot be used as requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unregistered {
    /// No registration with this STag is in force, or one is that must not be.
    Stag,
    /// Another protection domain has the region, or another queue pair has registered the memory.
    Owner,
    /// The registration does not grant the right.
    Rights,
    /// The memory does not contain the range.
    Bounds,
}

/// The peer has invalidated a registration. The completion of the receive tells the consumer, so it
/// can be neither copied nor changed.
///
/// ```compile_fail,E0382
/// fn report_twice(ended: rdma::mr::Invalidated) -> [rdma::wc::WcEx; 2] {
///     [
///         rdma::wc::WcEx::Invalidated(ended),
///         rdma::wc::WcEx::Invalidated(ended),
///     ]
/// }
/// ```
///
/// ```compile_fail,E0616
/// fn keep_for_ever(ended: &mut rdma::mr::Invalidated) {
///     ended.generation = u64::MAX;
/// }
/// ```
pub struct Invalidated {
    region: Arc<KernelRegion>,
    generation: u64,
}

impl Invalidated {
    /// Returns the STag of the registration, for traces. Any context.
    pub fn stag(&self) -> u32 {
        self.region.stag.load(ordering::Acquire)
    }

    /// Returns the STag, if a receive of the queue pair of `grant` can still tell of it: the
    /// consumer has not registered the region again.
    pub(crate) fn holds(&self, grant: &Arc<Grant>) -> Option<u32> {
        let stag = self.stag();
        let owner = self.region.owner.load(ordering::Acquire);

        // The generation last: if it has not changed, both are of the registration that was
        // invalidated. The consumer gets the completion after this.
        (owner == Arc::as_ptr(grant).addr()
            && self.region.generation.load(ordering::Relaxed) == self.generation)
            .then_some(stag)
    }
}

/// The memory of a kernel user's region.
#[pin_data]
pub struct KernelRegion {
    /// The address of the protection domain, only to be compared.
    pd: usize,
    /// Counts registrations. Changes under `current`, and may be read without it.
    generation: Atomic<u64>,
    /// The STag of the last registration, and the address of its [`Grant`], only to be compared.
    stag: Atomic<u32>,
    owner: Atomic<usize>,
    /// Held while data is copied to or from the memory: an invalidation waits for a copy.
    #[pin]
    current: BhSpinLock<RegistrationState>,
    /// Consumers map and post in any context, so the lock disables interrupts. Taken under
    /// `current`.
    #[pin]
    pub(super) lists: SpinLockIrq<Lists>,
}

struct RegistrationState {
    /// The last registration, until it is invalidated or replaced.
    registration: Option<LastRegistration>,
    /// The region is deregistered.
    closed: bool,
}

struct LastRegistration {
    mapped: Mapped,
    terms: Terms,
    grant: Arc<Grant>,
}

/// A registration in force.
pub struct InForce {
    /// The attributes that the consumer has posted.
    pub terms: Terms,
    /// For [`KernelRegion::copy`].
    pub generation: u64,
    /// The address of the right to it, only to be compared.
    grant: usize,
}

impl InForce {
    /// Whether it belongs to the right of a queue pair. Any context.
    pub(super) fn is_of(&self, grant: &Arc<Grant>) -> bool {
        Arc::as_ptr(grant).addr() == self.grant
    }
}

impl RegistrationState {
    /// Returns the registration in force.
    fn in_force(&self) -> Option<&LastRegistration> {
        self.registration
            .as_ref()
            .filter(|registration| registration.grant.is_in_force())
    }
}

impl KernelRegion {
    /// Creates a region of at most `max` blocks in the protection domain at `pd` that is not
    /// registered. Process context; may sleep. Fails with `ENOMEM` without memory.
    pub(super) fn new(pd: usize, max: u32) -> Result<Arc<Self>> {
        let lists = Lists::new(max)?;
        let current = RegistrationState {
            registration: None,
            closed: false,
        };

        Arc::pin_init(
            pin_init!(Self {
                pd,
                generation: Atomic::new(0),
                stag: Atomic::new(0),
                owner: Atomic::new(0),
                current <- new_bh_spinlock!(current, "rdma::KernelRegion::current"),
                lists <- new_spinlock_irq!(lists, "rdma::KernelRegion::lists"),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Whether it is in the protection domain at `pd`.
    pub(super) fn is_in(&self, pd: usize) -> bool {
        self.pd == pd
    }

    /// Maps memory, as [`Lists::map`] does.
    pub(super) fn map(&self, fill: impl FnOnce(&mut PageList) -> c_int) -> Result<c_int> {
        self.lists.lock().map(fill)
    }

    /// Begins another generation. The caller holds `current`.
    fn next_generation(&self) {
        let generation = self.generation.load(ordering::Relaxed).wrapping_add(1);

        self.generation.store(generation, ordering::Relaxed);
    }

    /// Registers a mapping, unless a WR that comes after it has invalidated the region already.
    /// Process context or softirq. Fails with `Stag`.
    pub(super) fn register(
        &self,
        mut mapping: PostedMapping,
        grant: Arc<Grant>,
    ) -> Result<(), Unregistered> {
        let mut current = self.current.lock();

        if current.closed || current.in_force().is_some() {
            return Err(Unregistered::Stag);
        }
        let mapped = mapping.take_mapped().ok_or(Unregistered::Stag)?;
        let owner = Arc::as_ptr(&grant).addr();
        let ended = current.registration.replace(LastRegistration {
            mapped,
            terms: *mapping.terms(),
            grant,
        });

        if let Some(ended) = ended {
            self.lists.lock().give_back(ended.mapped);
        }
        self.next_generation();
        // After the generation: see `Invalidated::holds`.
        self.stag.store(mapping.terms().stag, ordering::Release);
        self.owner.store(owner, ordering::Release);
        Ok(())
    }

    /// Invalidates the registration for its consumer, by the WR with `id`, whichever queue pair has
    /// registered it. WRs that were posted before do not register the region any more. Process
    /// context or softirq. Fails with `Stag` if it has another STag. There may be no registration:
    /// a peer can invalidate it, too.
    pub(super) fn invalidate_local(&self, stag: u32, id: &WrId) -> Result<(), Unregistered> {
        self.lists.lock().note_invalidation(id);
        self.end_registration(|registration| match registration {
            Some(registration) if registration.terms.stag != stag => Err(Unregistered::Stag),
            _ => Ok(()),
        })?;
        Ok(())
    }

    /// Invalidates the registration for the peer of a queue pair, as
    /// [`Registrar::invalidate_remote`] does.
    ///
    /// [`Registrar::invalidate_remote`]: super::Registrar::invalidate_remote
    pub(super) fn invalidate_remote(
        self: &Arc<Self>,
        stag: u32,
        grant: &Arc<Grant>,
        rights: u32,
    ) -> Result<Invalidated, Unregistered> {
        let generation = self.end_registration(|registration| {
            let registration = registration.ok_or(Unregistered::Stag)?;

            if registration.terms.stag != stag {
                return Err(Unregistered::Stag);
            }
            let is_own = Arc::ptr_eq(&registration.grant, grant);

            if !is_own || registration.terms.access & rights == 0 {
                return Err(Unregistered::Rights);
            }
            Ok(())
        })?;

        Ok(Invalidated {
            region: self.clone(),
            generation,
        })
    }

    /// Lets nobody register the region any more, and ends the registration: the region is
    /// deregistered. Process context.
    pub(super) fn close(&self) {
        {
            let mut current = self.current.lock();

            current.closed = true;
            // Another region may get its STag.
            self.next_generation();
        }
        let _ = self.end_registration(|_| Ok(()));
    }

    /// Ends the registration, if `check` succeeds for the one in force. Returns its generation.
    fn end_registration(
        &self,
        check: impl FnOnce(Option<&LastRegistration>) -> Result<(), Unregistered>,
    ) -> Result<u64, Unregistered> {
        let mut current = self.current.lock();

        check(current.in_force())?;
        if let Some(registration) = current.registration.take() {
            self.lists.lock().give_back(registration.mapped);
        }
        Ok(self.generation.load(ordering::Relaxed))
    }

    /// Returns the registration in force, for an access to be checked. Process context or softirq.
    pub fn in_force(&self) -> Option<InForce> {
        let current = self.current.lock();
        let registration = current.in_force()?;

        Some(InForce {
            terms: registration.terms,
            generation: self.generation.load(ordering::Relaxed),
            grant: Arc::as_ptr(&registration.grant).addr(),
        })
    }

    /// Calls `f` with the memory of registration `generation`, unless that is not in force any
    /// more. Process context or softirq; `f` must not sleep. Fails with `Stag`, or `Bounds` if `f`
    /// fails.
    ///
    /// The memory is lent for the call only:
    ///
    /// ```compile_fail,E0521
    /// use rdma::{mr::KernelRegion, page_list::PageList};
    ///
    /// fn keep<'a>(region: &KernelRegion, kept: &mut Option<&'a PageList>) {
    ///     let _ = region.copy(0, |list| {
    ///         *kept = Some(list);
    ///         Ok(())
    ///     });
    /// }
    /// ```
    pub fn copy<R>(
        &self,
        generation: u64,
        f: impl FnOnce(&PageList) -> Result<R>,
    ) -> Result<R, Unregistered> {
        let current = self.current.lock();
        let is_last = self.generation.load(ordering::Relaxed) == generation;

        match &current.registration {
            Some(registration) if is_last => {
                let copied = registration
                    .grant
                    .while_in_force(|| f(&registration.mapped.list));

                copied
                    .ok_or(Unregistered::Stag)?
                    .map_err(|_| Unregistered::Bounds)
            }
            _ => Err(Unregistered::Stag),
        }
    }

    /// Returns the last registration, unless it is invalidated, for traces. Process context or
    /// softirq.
    pub fn last(&self) -> Option<Terms> {
        let current = self.current.lock();

        Some(current.registration.as_ref()?.terms)
    }

    /// Returns the rights and the number of blocks of the registration in force. Process context or
    /// softirq.
    pub fn details(&self) -> Option<(u32, usize)> {
        let current = self.current.lock();
        let registration = current.in_force()?;

        Some((registration.terms.access, registration.mapped.list.blocks()))
    }
}
