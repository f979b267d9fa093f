// SPDX-License-Identifier: GPL-2.0

//! Completion queues.

use crate::{
    abi,
    counters::Counter,
    limits::{self, ObjectCharge},
    queue::{
        ring::Ring,
        wr::{WcOpcode, WcStatus},
    },
    Riw,
};
use iwarp::Stag;
use kernel::{
    prelude::*,
    sync::{
        atomic::{ordering, Atomic},
        barrier,
    },
};
use kernel_ext::sync::{new_bh_spinlock, BhSpinLock};
use rdma::{cq::CqInitAttr, Device, Udata};

#[cfg(CONFIG_KUNIT = "y")]
#[path = "../kunit/completion.rs"]
mod kunit;

/// The verbs object of a completion queue.
pub(crate) type CqObject = rdma::cq::Cq<Riw>;

/// The driver's part of a completion queue.
#[pin_data]
pub(crate) struct Cq {
    ring: Ring<{ abi::CQE_WORDS }>,
    #[pin]
    producer: BhSpinLock<Producer>,
    _charge: ObjectCharge,
}

struct Producer {
    /// Counts completions: the ring entry of the next one.
    put: u32,
    /// A completion was lost, because the process did not keep up. No more are added.
    overflowed: bool,
}

/// A completion.
pub(crate) struct Completion {
    /// The `wr_id` of the consumer.
    pub(crate) id: u64,
    pub(crate) opcode: WcOpcode,
    pub(crate) status: WcStatus,
    /// Length of the message in bytes.
    pub(crate) bytes: u32,
    /// The STag that a received message invalidated.
    pub(crate) invalidated: Option<Stag>,
    /// The number of the queue pair.
    pub(crate) qp: u32,
}

/// The notifications that added completions call for. They wait for [`Self::notify_cq`], as a
/// consumer is never notified under a lock.
#[derive(Clone, Copy, Default)]
#[must_use]
pub(crate) struct PendingNotify {
    /// The queue was armed for such a completion.
    event: bool,
    /// The queue has just overflowed.
    overflow: bool,
    /// A completion could not be added.
    pub(crate) lost: bool,
}

impl PendingNotify {
    /// Combines the notifications of two completions of one queue.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            event: self.event || other.event,
            overflow: self.overflow || other.overflow,
            lost: self.lost || other.lost,
        }
    }

    /// Notifies the consumer of `cq`. Any context; the caller must hold no lock that a verb takes,
    /// as the consumer may call verbs from its handler.
    pub(crate) fn notify_cq(self, cq: &CqObject) {
        if self.event {
            trace::cq_notify(cq);
            cq.notify();
        }
        if self.overflow {
            cq.device().counters().inc(Counter::CqOverflows);
            cq.error();
        }
    }
}

impl Cq {
    /// Creates a queue of at least `attr.cqe` entries. Process context; may sleep.
    ///
    /// Fails with `EOPNOTSUPP` for a kernel user, `EINVAL` for a size or flags that riw does not
    /// support, `ENOMEM` above the limit of queues or without memory.
    pub(crate) fn new(
        dev: &Device<Riw>,
        attr: &mut CqInitAttr,
        udata: Option<Udata<'_, Riw>>,
    ) -> Result<impl PinInit<Self>> {
        let udata = udata.ok_or(EOPNOTSUPP)?;

        let () = udata.request()?;
        if attr.cqe == 0 || attr.cqe > limits::MAX_CQE || attr.flags != 0 {
            return Err(EINVAL);
        }
        let charge = dev.limits.cq.charge()?;
        // The control word follows the last entry.
        let mut ring = Ring::new(attr.cqe, 1)?;

        attr.cqe = ring.len();
        udata.respond(&abi::CqResponse {
            cq_id: dev.next_cq_id(),
            num_cqe: ring.len(),
            cq_key: ring.offer(udata.ucontext())?,
        })?;

        Ok(Self::of(ring, charge))
    }

    /// Creates a queue on `ring`, which has the control word after its entries.
    fn of(ring: Ring<{ abi::CQE_WORDS }>, charge: ObjectCharge) -> impl PinInit<Self> {
        pin_init!(Self {
            ring,
            producer <- new_bh_spinlock!(
                Producer { put: 0, overflowed: false },
                "riw::Cq::producer"
            ),
            _charge: charge,
        })
    }

    /// Adds a completion. Calls `trace` before the consumer can see it. An unsuccessful one always
    /// counts as solicited. Process context or softirq.
    fn add(&self, completion: &Completion, solicited: bool, trace: impl FnOnce()) -> PendingNotify {
        {
            let mut producer = self.producer.lock();

            if producer.overflowed || self.ring.is_valid(producer.put) {
                let overflow = !producer.overflowed;

                producer.overflowed = true;
                return PendingNotify {
                    overflow,
                    lost: true,
                    event: false,
                };
            }
            trace();
            self.ring
                .publish(producer.put, &abi::Cqe::from(completion).words());
            producer.put = producer.put.wrapping_add(1);
        }

        PendingNotify {
            event: self.disarm(solicited || completion.status != WcStatus::Success),
            ..PendingNotify::default()
        }
    }

    /// Returns the number of completions that the process has not polled, and whether one was
    /// lost. Process context or softirq.
    pub(super) fn fill_level(&self) -> (u32, bool) {
        let (put, overflowed) = {
            let producer = self.producer.lock();

            (producer.put, producer.overflowed)
        };

        // From the next entry on, the free entries come first, and then the oldest completion.
        let free = self.ring.run(put, false);
        (self.ring.len().saturating_sub(free), overflowed)
    }

    /// Returns the flags by which the process has armed the queue. Any context.
    pub(super) fn armed(&self) -> u32 {
        self.control()
            .map_or(0, |control| control_flags(control.load(ordering::Relaxed)))
    }

    fn control(&self) -> Option<&Atomic<u64>> {
        self.ring.extra(0)
    }

    /// Arms the queue, as the process does by its control word. Any context. Returns whether there
    /// is a completion already.
    pub(crate) fn arm(&self, solicited_only: bool) -> bool {
        let flags = if solicited_only {
            abi::NOTIFY_SOLICITED
        } else {
            abi::NOTIFY_SOLICITED | abi::NOTIFY_NEXT
        };

        if let Some(control) = self.control() {
            control.store(control_word(flags), ordering::Relaxed);
        }
        // Arm before the check for earlier completions. Pairs with `disarm`.
        barrier::smp_mb(ordering::Full);
        let put = self.producer.lock().put;
        self.ring.is_valid(put.wrapping_sub(1))
    }

    /// Disarms the queue if it is armed for a completion of this kind. Returns whether it was.
    fn disarm(&self, solicited: bool) -> bool {
        let Some(control) = self.control() else {
            return false;
        };
        // Publish the completion before the check: either this sees the process's arming, or the
        // process, which polls again after it has armed, sees the completion.
        barrier::smp_mb(ordering::Full);
        let mut word = control.load(ordering::Relaxed);

        // One of several producers disarms. A consumer that keeps re-arming meanwhile is running; a
        // spurious wakeup is harmless.
        for _ in 0..4 {
            let armed = control_flags(word);

            if armed & abi::NOTIFY_NEXT == 0 && !(solicited && armed & abi::NOTIFY_SOLICITED != 0) {
                return false;
            }
            match control.cmpxchg(word, 0, ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        true
    }
}

/// Adds a completion to `cq`. An unsuccessful one always counts as solicited. Process context or
/// softirq.
pub(crate) fn add_completion(
    cq: &CqObject,
    completion: &Completion,
    solicited: bool,
) -> PendingNotify {
    cq.add(completion, solicited, || {
        trace::wr_complete(
            cq,
            completion.qp,
            completion.id,
            // CAST: Their values are those of the ABI.
            completion.opcode as u8,
            completion.status as u16,
            completion.bytes,
        );
    })
}

impl From<&Completion> for abi::Cqe {
    fn from(completion: &Completion) -> Self {
        Self {
            id: completion.id,
            // CAST: Their values are those of the ABI.
            opcode: completion.opcode as u8,
            status: completion.status as u16,
            bytes: completion.bytes,
            invalidated: completion.invalidated.map(|stag| stag.0),
            qp: completion.qp,
        }
    }
}

/// Returns the flags of a control word, which are its first four bytes.
fn control_flags(word: u64) -> u32 {
    let [a, b, c, d, ..] = word.to_ne_bytes();
    u32::from_ne_bytes([a, b, c, d])
}

/// Returns the control word with `flags`.
fn control_word(flags: u32) -> u64 {
    let [a, b, c, d] = flags.to_ne_bytes();
    u64::from_ne_bytes([a, b, c, d, 0, 0, 0, 0])
}
