// SPDX-License-Identifier: GPL-2.0

//! Completion queues of processes: a ring that the process polls.

use crate::{
    abi,
    queue::{
        completion::{Arm, Completion, FillLevel, PendingNotify},
        ring::Ring,
    },
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
use rdma::ucontext::Ucontext;

#[cfg(CONFIG_KUNIT = "y")]
#[path = "../kunit/completion.rs"]
mod kunit;

/// The completions for a process.
#[pin_data]
pub(super) struct UserCq {
    ring: Ring<{ abi::CQE_WORDS }>,
    #[pin]
    producer: BhSpinLock<Producer>,
}

struct Producer {
    /// Counts completions: the ring entry of the next one.
    put: u32,
    /// A completion was lost, because the process did not keep up. No more are added.
    overflowed: bool,
}

impl UserCq {
    /// Creates a queue of at least `len` entries, and offers it to a process for mmap(). Process
    /// context; may sleep. Returns the offset in bytes, too. Fails as [`Ring::new`] and [`Ring::offer`]
    /// do.
    pub(super) fn offer(len: u32, to: &Ucontext<Riw>) -> Result<(impl PinInit<Self>, u64)> {
        // The control word follows the last entry.
        let mut ring = Ring::new(len, 1)?;
        let key = ring.offer(to)?;

        Ok((Self::of(ring), key))
    }

    /// Creates a queue on `ring`, which has the control word after its entries.
    fn of(ring: Ring<{ abi::CQE_WORDS }>) -> impl PinInit<Self> {
        pin_init!(Self {
            ring,
            producer <- new_bh_spinlock!(
                Producer { put: 0, overflowed: false },
                "riw::UserCq::producer"
            ),
        })
    }

    /// Returns the size in entries. Any context.
    pub(super) fn len(&self) -> u32 {
        self.ring.len()
    }

    /// Adds a completion. Calls `trace` before the consumer can see it. Process context or softirq.
    pub(super) fn add(
        &self,
        completion: &Completion,
        solicited: bool,
        trace: impl FnOnce(&Completion),
    ) -> PendingNotify {
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
            trace(completion);
            self.ring
                .publish(producer.put, &abi::Cqe::from(completion).words());
            producer.put = producer.put.wrapping_add(1);
        }

        PendingNotify {
            event: self.disarm(|arm| arm.is_met(completion, solicited)),
            ..PendingNotify::default()
        }
    }

    /// Returns how full the queue is. Process context or softirq.
    pub(super) fn fill_level(&self) -> FillLevel {
        let (put, overflowed) = {
            let producer = self.producer.lock();

            (producer.put, producer.overflowed)
        };

        // From the next entry on, the free entries come first, and then the oldest completion.
        let free = self.ring.run(put, false);
        FillLevel {
            used: self.ring.len().saturating_sub(free),
            overflowed,
            armed: self
                .control()
                .and_then(|control| armed(control.load(ordering::Relaxed))),
        }
    }

    fn control(&self) -> Option<&Atomic<u64>> {
        self.ring.extra(0)
    }

    /// Arms the queue, as the process does by its control word. Process context or softirq. Returns
    /// whether there is a completion already.
    pub(super) fn arm(&self, arm: Arm) -> bool {
        let flags = match arm {
            Arm::Solicited => abi::NOTIFY_SOLICITED,
            Arm::Next => abi::NOTIFY_SOLICITED | abi::NOTIFY_NEXT,
        };

        if let Some(control) = self.control() {
            control.store(control_word(flags), ordering::Relaxed);
        }
        // Arm before the check for earlier completions. Pairs with `disarm`.
        barrier::smp_mb(ordering::Full);
        let put = self.producer.lock().put;
        self.ring.is_valid(put.wrapping_sub(1))
    }

    /// Disarms the queue if it is armed and `is_met` says so. Returns whether it was.
    fn disarm(&self, is_met: impl Fn(Arm) -> bool) -> bool {
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
            if !armed(word).is_some_and(&is_met) {
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

impl From<&Completion> for abi::Cqe {
    fn from(completion: &Completion) -> Self {
        Self {
            id: completion.id.number(),
            opcode: abi::wc_opcode(completion.opcode),
            status: abi::wc_status(completion.status),
            bytes: completion.bytes,
            invalidated: completion.invalidated.map(|stag| stag.0),
            qp: completion.qp,
        }
    }
}

/// Returns how a control word arms the queue. Its first four bytes have the flags.
fn armed(word: u64) -> Option<Arm> {
    let [a, b, c, d, ..] = word.to_ne_bytes();
    let flags = u32::from_ne_bytes([a, b, c, d]);

    if flags & abi::NOTIFY_NEXT != 0 {
        Some(Arm::Next)
    } else if flags & abi::NOTIFY_SOLICITED != 0 {
        Some(Arm::Solicited)
    } else {
        None
    }
}

/// Returns the control word with `flags`.
fn control_word(flags: u32) -> u64 {
    let [a, b, c, d] = flags.to_ne_bytes();
    u64::from_ne_bytes([a, b, c, d, 0, 0, 0, 0])
}
