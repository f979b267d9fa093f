// SPDX-License-Identifier: GPL-2.0

//! Posted WRs: in a ring that a process writes to, or in a list of the WRs of a kernel user.

use super::{fifo::Fifo, ring::Ring};
use kernel::{new_spinlock_irq, prelude::*, sync::SpinLockIrq};

/// Posted WRs of type `T`, numbered in the order of posting, modulo 2^32. Their taker counts them
/// and knows the number of the next one. Only one taker at a time may call the methods that take it.
pub(crate) enum PostedWrs<T, const W: usize> {
    /// A process marks entries of `W` words.
    Ring(Ring<W>),
    /// A kernel user posts in any context, so the lock disables interrupts.
    List(Pin<KBox<SpinLockIrq<Fifo<T>>>>),
}

impl<T, const W: usize> PostedWrs<T, W> {
    /// Creates an empty list for at least `len` WRs, and one more: a consumer that drains the queue
    /// posts a WR for that, maybe when it has used its places (`ib_drain_qp()`). Process context; may
    /// sleep. Fails with `EINVAL` if it is too large, `ENOMEM` without memory.
    pub(crate) fn list(len: u32) -> Result<Self> {
        let list = Fifo::new(len.checked_add(1).ok_or(EINVAL)?)?;
        let list = new_spinlock_irq!(list, "riw::PostedWrs::List");

        Ok(Self::List(KBox::pin_init(list, GFP_KERNEL_ACCOUNT)?))
    }

    /// Returns the number of places. Any context.
    pub(crate) fn len(&self) -> u32 {
        match self {
            Self::Ring(ring) => ring.len(),
            Self::List(list) => list.lock().size(),
        }
    }

    /// Posts a WR of a kernel user. Any context. Fails with `ENOMEM` if the list is full,
    /// `EOPNOTSUPP` for the queue of a process.
    pub(crate) fn post(&self, wr: T) -> Result {
        match self {
            Self::Ring(_) => Err(EOPNOTSUPP),
            // Drop a WR that does not fit when the lock is free.
            Self::List(list) => {
                let pushed = list.lock().push(wr).map(drop);
                pushed.map_err(|_| ENOMEM)
            }
        }
    }

    /// Returns WR `next`, if it is posted; it stays in its place until [`Self::release`]. Any
    /// context.
    pub(super) fn peek(&self, next: u32) -> Option<T>
    where
        T: From<[u64; W]>,
    {
        match self {
            Self::Ring(ring) => ring.copy(next).map(T::from),
            Self::List(list) => list.lock().lend(),
        }
    }

    /// Takes the WR of [`Self::peek`] back, so that it can be peeked at again. Any context.
    pub(super) fn put_back(&self, wr: T) {
        match self {
            // The ring still has it.
            Self::Ring(_) => drop(wr),
            Self::List(list) => list.lock().put_back(wr),
        }
    }

    /// Returns the place of WR `next`, which [`Self::peek`] has returned, to the poster. Any context.
    pub(super) fn release(&self, next: u32) {
        match self {
            Self::Ring(ring) => ring.release(next),
            Self::List(list) => {
                let unpeeked = list.lock().pop();
                drop(unpeeked);
            }
        }
    }

    /// Whether WR `at` is posted; `next` is the number of the next one. Any context.
    pub(super) fn is_posted(&self, at: u32, next: u32) -> bool {
        match self {
            Self::Ring(ring) => ring.is_valid(at),
            Self::List(list) => at.wrapping_sub(next) < list.lock().len(),
        }
    }

    /// Returns the number of posted WRs; `next` is the number of the next one. Any context.
    pub(super) fn posted(&self, next: u32) -> u32 {
        match self {
            Self::Ring(ring) => ring.run(next, true),
            Self::List(list) => list.lock().len(),
        }
    }
}
