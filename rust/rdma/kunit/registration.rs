// SPDX-License-Identifier: GPL-2.0

//! The registrations of a region, and what ends them.

use super::{Grant, Invalidated, KernelRegion, PostedMapping, Unregistered};
use crate::wr::{
    kunit::{post, queue},
    Ends, PostedQueue, WrId,
};
use kernel::{
    prelude::*,
    sync::{
        atomic::{ordering, Atomic},
        Arc,
    },
    time::{Delta, Instant, Monotonic},
};
use kernel_ext::kunit::{wait_until, Workers};

const PD: usize = 1;
const STAG: u32 = 0x1207;
/// Time that a copy waits for the end of the stream, at most, and then for what must not follow.
const MAX_COPY: Delta = Delta::from_secs(10);
const GRACE: Delta = Delta::from_millis(5);

/// A region, and the send queue of a queue pair.
struct User {
    region: Arc<KernelRegion>,
    queue: Arc<PostedQueue>,
    grant: Arc<Grant>,
}

impl User {
    fn new() -> Result<Self> {
        let queue = queue(false)?;

        Ok(Self {
            region: KernelRegion::new(PD, 4)?,
            grant: Grant::new(queue.clone(), PD)?,
            queue,
        })
    }

    /// Posts a WR that registers what is mapped.
    fn post(&self) -> Result<(PostedMapping, WrId)> {
        let id = post(&self.queue, Ends::Nothing)?;

        Ok((PostedMapping::take(&self.region, &id, (STAG, 0, 0))?, id))
    }

    /// Registers what is mapped, and completes the WR.
    fn register(&self) -> Result<Result<(), Unregistered>> {
        let (mapping, id) = self.post()?;

        assert!(mapping.is_of(&id));
        Ok(self.region.register(mapping, self.grant.clone()))
    }

    fn is_registered(&self) -> bool {
        let current = self.region.current.lock();

        current.in_force().is_some()
    }

    fn generation(&self) -> u64 {
        self.region.generation.load(ordering::Relaxed)
    }

    /// Posts a WR that invalidates, and executes it.
    fn invalidate(&self, stag: u32) -> Result<Result<(), Unregistered>> {
        let mut id = post(&self.queue, Ends::Stag(stag))?;
        let ended = self.region.invalidate_local(stag, &id);

        id.note_executed();
        Ok(ended)
    }
}

#[kunit_tests(rdma_registration)]
mod tests {
    use super::*;

    /// One registration is in force at a time, until its STag is invalidated.
    #[test]
    fn a_registration_ends_by_its_stag() -> Result {
        let user = User::new()?;
        let region = &user.region;

        assert_eq!(user.register()?, Ok(()));
        assert!(user.is_registered());
        assert_eq!(region.copy(user.generation(), |_| Ok(())), Ok(()));
        assert_eq!(region.map(|_| 0), Ok(0));
        assert_eq!(user.register()?, Err(Unregistered::Stag));
        assert_eq!(user.invalidate(STAG + 1)?, Err(Unregistered::Stag));
        assert!(user.is_registered());
        assert_eq!(user.invalidate(STAG)?, Ok(()));
        assert!(!user.is_registered());
        let old = user.generation();
        assert_eq!(region.copy(old, |_| Ok(())), Err(Unregistered::Stag));
        assert_eq!(user.register()?, Ok(()));
        assert_eq!(region.copy(old, |_| Ok(())), Err(Unregistered::Stag));
        assert_eq!(region.copy(user.generation(), |_| Ok(())), Ok(()));
        Ok(())
    }

    /// A WR that invalidates comes after those that register, if it was posted after them.
    #[test]
    fn a_wr_registers_before_a_later_one_invalidates() -> Result {
        let user = User::new()?;
        let (mapping, id) = user.post()?;

        assert_eq!(user.invalidate(STAG)?, Ok(()));
        let registered = user.region.register(mapping, user.grant.clone());
        assert_eq!(registered, Err(Unregistered::Stag));
        drop(id);
        // One that was posted later registers.
        let invalidates = post(&user.queue, Ends::Stag(STAG))?;
        let (mapping, id) = user.post()?;
        assert_eq!(user.region.invalidate_local(STAG, &invalidates), Ok(()));
        let registered = user.region.register(mapping, user.grant.clone());
        assert_eq!(registered, Ok(()));
        drop(id);
        // So does one of another queue: these have no order.
        let other = queue(false)?;
        assert_eq!(user.invalidate(STAG)?, Ok(()));
        let (mapping, id) = user.post()?;
        let foreign = post(&other, Ends::Stag(STAG))?;
        assert_eq!(user.region.invalidate_local(STAG, &foreign), Ok(()));
        let registered = user.region.register(mapping, user.grant.clone());
        assert_eq!(registered, Ok(()));
        drop(id);
        for (queue, id) in [(&user.queue, invalidates), (&other, foreign)] {
            queue.close();
            drop(id);
        }
        Ok(())
    }

    /// A receive tells of an invalidation only until the consumer registers again.
    #[test]
    fn a_proof_of_invalidation_ages() -> Result {
        let (user, other) = (User::new()?, User::new()?);

        assert_eq!(user.register()?, Ok(()));
        let ended = || Invalidated {
            region: user.region.clone(),
            generation: user.generation(),
        };
        let first = ended();
        assert_eq!(first.holds(&user.grant), Some(STAG));
        assert_eq!(first.holds(&other.grant), None);
        assert_eq!(user.invalidate(STAG)?, Ok(()));
        assert_eq!(first.holds(&user.grant), Some(STAG));
        assert_eq!(user.register()?, Ok(()));
        assert_eq!(first.holds(&user.grant), None);
        // Another region may get its STag.
        let last = ended();
        assert_eq!(last.holds(&user.grant), Some(STAG));
        user.region.close();
        assert_eq!(last.holds(&user.grant), None);
        Ok(())
    }

    /// A copy that fails leaves the registration in force.
    #[test]
    fn a_copy_may_fail() -> Result {
        let user = User::new()?;

        assert_eq!(user.register()?, Ok(()));
        let copied = user
            .region
            .copy(user.generation(), |_| Err::<(), _>(EINVAL));
        assert_eq!(copied, Err(Unregistered::Bounds));
        assert!(user.is_registered());
        Ok(())
    }

    /// A deregistered region is never registered again, also by a WR that was posted before.
    #[test]
    fn a_closed_region_is_not_registered() -> Result {
        let user = User::new()?;

        assert_eq!(user.register()?, Ok(()));
        let generation = user.generation();
        assert_eq!(user.region.map(|_| 0), Ok(0));
        let (mapping, id) = user.post()?;
        user.region.close();
        assert!(!user.is_registered());
        let copied = user.region.copy(generation, |_| Ok(()));
        assert_eq!(copied, Err(Unregistered::Stag));
        let registered = user.region.register(mapping, user.grant.clone());
        assert_eq!(registered, Err(Unregistered::Stag));
        drop(id);
        Ok(())
    }

    /// A mapping that is not registered is there again. A region has two lists.
    #[test]
    fn a_mapping_returns_to_its_region() -> Result {
        let user = User::new()?;
        let first = user.post()?;

        assert!(user.post().is_err());
        assert_eq!(user.region.map(|_| 0), Ok(0));
        let second = user.post()?;
        assert_eq!(user.region.map(|_| 0), Err(EBUSY));
        // Other memory was mapped since: this list is free, and not to be registered.
        drop(first);
        assert!(user.post().is_err());
        drop(second);
        drop(user.post()?);
        assert_eq!(user.region.map(|_| 0), Ok(0));
        assert_eq!(user.region.map(|_| -5), Ok(-5));
        Ok(())
    }

    /// Only the WR that was posted for it registers a mapping.
    #[test]
    fn a_mapping_is_of_its_wr() -> Result {
        let (user, other) = (User::new()?, User::new()?);
        let (mapping, id) = user.post()?;
        let (foreign, foreign_id) = other.post()?;

        assert!(mapping.is_of(&id));
        assert!(!mapping.is_of(&foreign_id));
        assert!(!foreign.is_of(&id));
        drop(id);
        // It has the place of the first one.
        let later = post(&user.queue, Ends::Nothing)?;
        assert!(!mapping.is_of(&later));
        Ok(())
    }

    /// The registrations of a queue pair end with its stream, and no copy is in progress then.
    #[test]
    fn the_end_of_a_stream_waits_for_copies() -> Result {
        let user = User::new()?;
        let (copying, early, copied) = (flag()?, flag()?, flag()?);
        let workers = Workers::new(2)?;

        assert_eq!(user.register()?, Ok(()));
        let generation = user.generation();
        let (region, grant) = (user.region.clone(), user.grant.clone());
        let (begun, ended, done) = (copying.clone(), early.clone(), copied.clone());
        workers.add(move || {
            let copy = region.copy(generation, |_| {
                begun.store(true, ordering::Relaxed);
                // Softirqs are off.
                spin_until(MAX_COPY, || !grant.is_in_force());
                ended.store(spin_until(GRACE, || grant.has_ended()), ordering::Relaxed);
                Ok(())
            });
            done.store(copy.is_ok(), ordering::Relaxed);
        })?;
        let grant = user.grant.clone();
        workers.add(move || {
            wait_until(|| copying.load(ordering::Relaxed));
            grant.revoke();
        })?;

        drop(workers);
        assert!(copied.load(ordering::Relaxed));
        assert!(!early.load(ordering::Relaxed));
        assert!(user.grant.has_ended());
        assert!(!user.is_registered());
        let again = user.region.copy(generation, |_| Ok(()));
        assert_eq!(again, Err(Unregistered::Stag));
        // Nor does it register anything any more.
        assert_eq!(user.region.map(|_| 0), Ok(0));
        assert_eq!(user.register()?, Ok(()));
        assert!(!user.is_registered());
        Ok(())
    }

    /// Spins until a condition is true. Returns whether it is; false after `time`.
    fn spin_until(time: Delta, condition: impl Fn() -> bool) -> bool {
        let start = Instant::<Monotonic>::now();

        while !condition() {
            if start.elapsed() > time {
                return false;
            }
            core::hint::spin_loop();
        }
        true
    }

    fn flag() -> Result<Arc<Atomic<bool>>> {
        Ok(Arc::new(Atomic::new(false), GFP_KERNEL)?)
    }
}
