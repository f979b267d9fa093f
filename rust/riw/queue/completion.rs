// SPDX-License-Identifier: GPL-2.0

//! Completion queues.

use crate::{
    abi,
    limits::{self, Quota},
    queue::ring::Ring,
    Riw,
};
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

/// A completion queue as the verbs have it.
pub(crate) type CqObject = rdma::cq::Cq<Riw>;

/// The driver's part of a completion queue.
#[pin_data]
pub(crate) struct Cq {
    ring: Ring<{ abi::CQE_WORDS }>,
    #[pin]
    producer: BhSpinLock<Producer>,
    /// Gives the number back when the queue goes.
    _quota: Quota,
}

struct Producer {
    /// Counts the completions; the next one's place.
    put: u32,
    /// The process did not keep up, and a completion was lost: nothing is added any more.
    overflowed: bool,
}

/// What the consumer is to be told after completions were added. To be told by `tell`, when no
/// lock is held.
#[derive(Clone, Copy, Default)]
#[must_use]
pub(crate) struct News {
    /// There are completions that the process wants to know of.
    notify: bool,
    /// The queue has just overflowed.
    error: bool,
    /// A completion could not be added.
    pub(crate) lost: bool,
}

impl News {
    /// Of both.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            notify: self.notify || other.notify,
            error: self.error || other.error,
            lost: self.lost || other.lost,
        }
    }

    /// Tells the consumer of `cq`. Any context; the caller holds no lock that a consumer could
    /// want, for it may call verbs from its handler.
    pub(crate) fn tell(self, cq: &CqObject) {
        if self.notify {
            cq.notify();
        }
        if self.error {
            cq.error();
        }
    }
}

impl Cq {
    /// Makes a queue of at least `attr.cqe` entries. May sleep.
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
        let quota = dev.limits.cq.take()?;
        // The control word is behind the last entry.
        let mut ring = Ring::new(attr.cqe, 1)?;

        attr.cqe = ring.len();
        udata.respond(&abi::CqResponse {
            cq_id: dev.next_cq_id(),
            num_cqe: ring.len(),
            cq_key: ring.offer(udata.ucontext())?,
        })?;

        Ok(Self::of(ring, quota))
    }

    /// A queue of the entries of `ring`, behind which is the control word.
    fn of(ring: Ring<{ abi::CQE_WORDS }>, quota: Quota) -> impl PinInit<Self> {
        pin_init!(Self {
            ring,
            producer <- new_bh_spinlock!(
                Producer { put: 0, overflowed: false },
                "riw::Cq::producer"
            ),
            _quota: quota,
        })
    }

    /// Adds a completion. One that is not a success is always solicited. Process context or
    /// softirq.
    pub(crate) fn add(&self, cqe: &abi::Cqe, solicited: bool) -> News {
        {
            let mut producer = self.producer.lock();

            if producer.overflowed || self.ring.is_valid(producer.put) {
                let error = !producer.overflowed;

                producer.overflowed = true;
                return News {
                    error,
                    lost: true,
                    notify: false,
                };
            }
            self.ring.publish(producer.put, &cqe.words());
            producer.put = producer.put.wrapping_add(1);
        }

        News {
            notify: self.take_wish(solicited || cqe.status != abi::Status::Success),
            ..News::default()
        }
    }

    fn control(&self) -> Option<&Atomic<u64>> {
        self.ring.extra(0)
    }

    /// Asks for an event, in the name of the process. Returns whether a completion waits already.
    pub(crate) fn arm(&self, solicited_only: bool) -> bool {
        let flags = if solicited_only {
            abi::NOTIFY_SOLICITED
        } else {
            abi::NOTIFY_SOLICITED | abi::NOTIFY_NEXT
        };

        if let Some(control) = self.control() {
            control.store(control_word(flags), ordering::Relaxed);
        }
        // Between the arming and the look for what came before it: pairs with `take_wish`.
        barrier::smp_mb(ordering::Full);
        let put = self.producer.lock().put;
        self.ring.is_valid(put.wrapping_sub(1))
    }

    /// Whether the process wants an event for a completion, of whose kind there are two; takes the
    /// wish away if so.
    fn take_wish(&self, solicited: bool) -> bool {
        let Some(control) = self.control() else {
            return false;
        };
        // The completion is visible before the wish is looked for: either this sees the wish, or
        // the process, which looks again after it has written the wish, sees the completion.
        barrier::smp_mb(ordering::Full);
        let mut word = control.load(ordering::Relaxed);

        // Of several producers one takes it. The process may change it meanwhile, but if it does so
        // again and again it is awake.
        for _ in 0..4 {
            let wish = control_flags(word);

            if wish & abi::NOTIFY_NEXT == 0 && !(solicited && wish & abi::NOTIFY_SOLICITED != 0) {
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

/// The flags of a control word, which has them in its first four bytes.
fn control_flags(word: u64) -> u32 {
    let [a, b, c, d, ..] = word.to_ne_bytes();
    u32::from_ne_bytes([a, b, c, d])
}

/// The control word of some flags.
fn control_word(flags: u32) -> u64 {
    let [a, b, c, d] = flags.to_ne_bytes();
    u64::from_ne_bytes([a, b, c, d, 0, 0, 0, 0])
}
