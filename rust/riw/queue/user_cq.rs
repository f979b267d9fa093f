// SPDX-License-Identifier: GPL-2.0

//! Completion queues of processes: a ring that the process polls.

use crate::{
    abi::{self, Provider},
    driver::Riw,
    queue::{
        arming::disarm,
        completion::{Arm, Completion, FillLevel, PendingNotify},
        counted::CountedRing,
        cq_ring::{CqRing, SiwCqRing},
    },
};
use kernel::{
    prelude::*,
    sync::{atomic::ordering, barrier, Arc},
    time::{ClockSource, Monotonic},
};
use kernel_ext::sync::{new_bh_spinlock, BhSpinLock};
use rdma::ContextUdata;
use riw_abi::{cqe::Cqe, udata::CreateCqResponse};

#[cfg(CONFIG_KUNIT = "y")]
#[path = "../kunit/completion.rs"]
mod kunit;

/// Completions that [`UserCq::replace`] may copy with the lock held.
const MAX_LOCKED_COPIES: u32 = 64;

/// The completions for a process.
#[pin_data]
pub(super) struct UserCq {
    provider: Provider,
    /// Completions have the time at which they were added.
    timestamps: bool,
    #[pin]
    producer: BhSpinLock<Producer>,
}

struct Producer {
    /// Dropped in process context only.
    ring: Arc<CqRing>,
    /// Counts completions: the ring entry of the next one.
    put: u32,
    /// How many the process has taken: see [`CqRing::is_full`].
    taken: u32,
    /// A completion was lost, because the process did not keep up. No more are added.
    overflowed: bool,
}

impl UserCq {
    /// Creates a queue of at least `len` entries, offers it to a process for mmap(), and responds
    /// to the process. `number` names the queue. With `timestamps` completions have the time.
    /// Process context; may sleep. Fails as [`CountedRing::new`], [`CountedRing::offer`] and
    /// [`rdma::Udata::respond`] do.
    pub(super) fn offer(
        provider: Provider,
        len: u32,
        number: u32,
        timestamps: bool,
        udata: &ContextUdata<'_, Riw>,
    ) -> Result<impl PinInit<Self>> {
        let context = udata.ucontext();
        let ring = match provider {
            Provider::Siw => {
                // The control word follows the last entry.
                let mut ring = SiwCqRing::new(len, 1)?;

                udata.respond(&abi::siw::CqResponse {
                    cq_id: number,
                    num_cqe: ring.len(),
                    cq_key: ring.offer(context)?,
                })?;
                CqRing::Siw(ring)
            }
            Provider::Own => {
                let mut ring = CountedRing::new(len, Cqe::STRIDE)?;

                udata.respond(&CreateCqResponse {
                    comp_mask: 0,
                    ring: ring.offer(context)?,
                })?;
                CqRing::Own(ring)
            }
        };

        Ok(Self::of(
            provider,
            timestamps,
            Arc::new(ring, GFP_KERNEL_ACCOUNT)?,
        ))
    }

    /// Creates a queue on `ring`.
    fn of(provider: Provider, timestamps: bool, ring: Arc<CqRing>) -> impl PinInit<Self> {
        let producer = Producer {
            ring,
            put: 0,
            taken: 0,
            overflowed: false,
        };

        pin_init!(Self {
            provider,
            timestamps,
            producer <- new_bh_spinlock!(producer, "riw::UserCq::producer"),
        })
    }

    /// Returns the size in entries. Process context or softirq.
    pub(super) fn len(&self) -> u32 {
        self.producer.lock().ring.len()
    }

    /// Whether a completion can carry Immediate Data. libsiw's CQE has no room. Any context.
    pub(super) fn carries_immediate(&self) -> bool {
        self.provider == Provider::Own
    }

    /// Makes a ring of at least `len` entries, offers it to the process and responds to it, and
    /// moves the completions that the process has not taken to it. Process context; may sleep.
    /// Returns the new size.
    ///
    /// Fails with `EOPNOTSUPP` for siw's ABI, `EINVAL` if the completions do not fit, `EBUSY` if
    /// another thread resizes the queue, and as [`Self::offer`] does. The ring stays as it was
    /// then.
    pub(super) fn resize(&self, len: u32, udata: &ContextUdata<'_, Riw>) -> Result<u32> {
        if self.provider != Provider::Own {
            return Err(EOPNOTSUPP);
        }
        abi::check_request(self.provider, udata)?;
        let mut ring = CountedRing::new(len, Cqe::STRIDE)?;
        let len = ring.len();

        udata.respond(&CreateCqResponse {
            comp_mask: 0,
            ring: ring.offer(udata.ucontext())?,
        })?;
        self.replace(Arc::new(CqRing::Own(ring), GFP_KERNEL_ACCOUNT)?)?;
        Ok(len)
    }

    /// Replaces the ring by an empty one. Process context; may sleep. Fails as [`Self::resize`]
    /// does.
    ///
    /// Ordering: `selftests/litmus/cq_replace.litmus`.
    fn replace(&self, new: Arc<CqRing>) -> Result {
        let (old, mut put) = {
            let producer = self.producer.lock();

            (producer.ring.clone(), producer.put)
        };
        let first = put.wrapping_sub(old.used(put));
        let mut copied = 0;

        // There may be millions of completions. Nobody changes them: the process waits for this
        // call, and producers only add some. If the process does not keep to the rules, it gets
        // some twice.
        loop {
            let pending = put.wrapping_sub(first);

            if pending > new.len() {
                return Err(EINVAL);
            }
            while copied < pending {
                old.copy_to(first.wrapping_add(copied), &new, copied);
                copied = copied.wrapping_add(1);
            }
            let mut producer = self.producer.lock();

            if !Arc::ptr_eq(&producer.ring, &old) {
                return Err(EBUSY);
            }
            put = producer.put;
            if put.wrapping_sub(first).wrapping_sub(copied) <= MAX_LOCKED_COPIES {
                return producer.switch(&new, first, copied);
            }
        }
    }

    /// Adds a completion. Calls `trace` before the consumer can see it. Process context or softirq.
    pub(super) fn add(
        &self,
        completion: &Completion,
        solicited: bool,
        trace: impl FnOnce(&Completion),
    ) -> PendingNotify {
        // Ordering: selftests/litmus/cq_replace.litmus.
        let mut guard = self.producer.lock();
        let producer = &mut *guard;
        let ring = &producer.ring;

        if producer.overflowed || ring.is_full(producer.put, &mut producer.taken) {
            return PendingNotify {
                overflow: !core::mem::replace(&mut producer.overflowed, true),
                lost: true,
                event: false,
            };
        }
        trace(completion);
        // With the lock held: the times of a queue do not decrease.
        let timestamp = match self.timestamps {
            true => now(),
            false => 0,
        };

        ring.publish(producer.put, completion, timestamp);
        producer.put = producer.put.wrapping_add(1);
        let is_met = |word| {
            let arm = ring.armed(word);

            arm.is_some_and(|arm| arm.is_met(completion, solicited))
        };

        PendingNotify {
            event: ring
                .control()
                .is_some_and(|control| disarm(control, is_met)),
            ..PendingNotify::default()
        }
    }

    /// Returns how full the queue is. Process context or softirq.
    pub(super) fn fill_level(&self) -> FillLevel {
        let producer = self.producer.lock();
        let ring = &producer.ring;

        FillLevel {
            used: ring.used(producer.put),
            overflowed: producer.overflowed,
            armed: ring.arm_state(),
        }
    }

    /// Arms the queue, as the process does by its control word. Process context or softirq. Returns
    /// whether there is a completion already.
    pub(super) fn arm(&self, arm: Arm) -> bool {
        let producer = self.producer.lock();

        producer.ring.arm(arm);
        // Arm before the check for earlier completions. Pairs with `disarm`.
        barrier::smp_mb(ordering::Full);
        producer.ring.has_last(producer.put)
    }
}

impl Producer {
    /// Makes `new` the ring, to which `copied` completions from `first` on are copied already.
    /// Process context. Fails with `EINVAL` if the others do not fit.
    ///
    /// Ordering: `selftests/litmus/cq_replace.litmus`.
    fn switch(&mut self, new: &Arc<CqRing>, first: u32, copied: u32) -> Result {
        let pending = self.put.wrapping_sub(first);

        if pending > new.len() {
            return Err(EINVAL);
        }
        for at in copied..pending {
            self.ring.copy_to(first.wrapping_add(at), new, at);
        }
        if let Some(arm) = self.ring.arm_state() {
            new.arm(arm);
        }
        self.ring = new.clone();
        self.put = pending;
        self.taken = 0;
        Ok(())
    }
}

/// Returns the time in nanoseconds of `CLOCK_MONOTONIC`, which is not negative. Any context.
fn now() -> u64 {
    Monotonic::ktime_get().unsigned_abs()
}
