// SPDX-License-Identifier: GPL-2.0

//! Posted WRs: in a ring that a process writes to, of either ABI, or in a list of the WRs of a
//! kernel user.

use super::{
    counted::CountedRing,
    entry::WrEntry,
    fifo::Fifo,
    kernel_wr::PostedSend,
    ring::Ring,
    wr::{Buffers, Posted, RecvWr, SendData, SendWr},
};
use kernel::{
    new_spinlock_irq,
    prelude::*,
    sync::{atomic::ordering, barrier, SpinLockIrq},
};

/// A WR of a queue, without its data. The data are decoded in place: the taker keeps one
/// [`Self::Data`] for all WRs, and a WR overwrites only the part that it uses.
pub(crate) trait Wr: Sized {
    /// Where the data of a WR go.
    type Data;
    /// A WR as the list of a kernel user keeps it.
    type Posted;

    /// Decodes an entry of siw's ABI with this control word. Any context.
    fn of_siw(entry: &WrEntry<'_>, control: u64, data: &mut Self::Data) -> Self;

    /// Decodes an entry of riw's own ABI. Any context.
    fn of_own(entry: &WrEntry<'_>, data: &mut Self::Data) -> Self;

    /// Takes a WR of a kernel user apart. Any context.
    fn of_kernel(posted: Self::Posted, data: &mut Self::Data) -> Self;
}

impl Wr for SendWr {
    type Data = SendData;
    type Posted = PostedSend;

    fn of_siw(entry: &WrEntry<'_>, control: u64, data: &mut SendData) -> Self {
        Self::of_siw(entry, control, data)
    }

    fn of_own(entry: &WrEntry<'_>, data: &mut SendData) -> Self {
        Self::of_own(entry, data)
    }

    fn of_kernel(posted: PostedSend, data: &mut SendData) -> Self {
        posted.take(data)
    }
}

impl Wr for RecvWr {
    type Data = Buffers;
    type Posted = Posted;

    fn of_siw(entry: &WrEntry<'_>, control: u64, buffers: &mut Buffers) -> Self {
        Self::of_siw(entry, control, buffers)
    }

    fn of_own(entry: &WrEntry<'_>, buffers: &mut Buffers) -> Self {
        Self::of_own(entry, buffers)
    }

    fn of_kernel(posted: Posted, buffers: &mut Buffers) -> Self {
        Self::of_kernel(posted, buffers)
    }
}

/// Posted WRs of type `T`, numbered in the order of posting, modulo 2^32. Their taker counts them
/// and knows the number of the next one. Only one taker at a time may call the methods that take
/// it.
pub(crate) enum PostedWrs<T: Wr, const W: usize> {
    /// A process marks entries of `W` words: siw's ABI.
    Ring(Ring<W>),
    /// A process counts entries: riw's own ABI.
    Counted(CountedRing),
    /// A kernel user posts in any context, so the lock disables interrupts.
    List(Pin<KBox<SpinLockIrq<Fifo<T::Posted>>>>),
}

impl<T: Wr, const W: usize> PostedWrs<T, W> {
    /// Creates an empty list for at least `len` WRs, and one more: a consumer that drains the queue
    /// posts a WR for that, maybe when it has used its places (`ib_drain_qp()`). Process context;
    /// may sleep. Fails with `EINVAL` if it is too large, `ENOMEM` without memory.
    pub(crate) fn list(len: u32) -> Result<Self> {
        let list = Fifo::new(len.checked_add(1).ok_or(EINVAL)?)?;
        let list = new_spinlock_irq!(list, "riw::PostedWrs::List");

        Ok(Self::List(KBox::pin_init(list, GFP_KERNEL_ACCOUNT)?))
    }

    /// Returns the number of places. Any context.
    pub(crate) fn len(&self) -> u32 {
        match self {
            Self::Ring(ring) => ring.len(),
            Self::Counted(ring) => ring.len(),
            Self::List(list) => list.lock().size(),
        }
    }

    /// Posts a WR of a kernel user. Any context. Fails with `ENOMEM` if the list is full,
    /// `EOPNOTSUPP` for the queue of a process.
    pub(crate) fn post(&self, wr: T::Posted) -> Result {
        match self {
            Self::Ring(_) | Self::Counted(_) => Err(EOPNOTSUPP),
            // Drop a WR that does not fit when the lock is free.
            Self::List(list) => {
                let pushed = list.lock().push(wr).map(drop);
                pushed.map_err(|_| ENOMEM)
            }
        }
    }

    /// Returns WR `next`, if it is posted, and stores its data in `data`. The WR stays in its place
    /// until [`Self::release`]. Any context.
    pub(super) fn peek(&self, next: u32, data: &mut T::Data) -> Option<T> {
        match self {
            Self::Ring(ring) => {
                let (entry, control) = ring.valid_entry(next)?;

                Some(T::of_siw(&entry, control, data))
            }
            Self::Counted(ring) => Some(T::of_own(&ring.posted_entry(next)?, data)),
            Self::List(list) => {
                let posted = list.lock().lend()?;

                Some(T::of_kernel(posted, data))
            }
        }
    }

    /// As [`Self::peek`], for a queue with a doorbell. If there is no WR, the doorbell will
    /// ring for it. Any context.
    pub(super) fn peek_or_idle(&self, next: u32, data: &mut T::Data) -> Option<T> {
        match self {
            // The process stores a WR, and then checks whether riw took the WR before it. The taker
            // released that one, and the load below checks for the new one. Full barriers on both
            // sides: at least one of the two sees the other's store.
            Self::Ring(_) => barrier::smp_mb(ordering::Full),
            Self::Counted(ring) => {
                if ring.posted(next) == 0 && !ring.wake_at(next) {
                    return None;
                }
            }
            Self::List(_) => {}
        }
        self.peek(next, data)
    }

    /// Requests a doorbell for WR `next`. Any context. Returns whether the WR is posted already;
    /// the poster rings otherwise. `None` if the queue has no such doorbell: the caller must poll
    /// it.
    pub(super) fn wake_at(&self, next: u32) -> Option<bool> {
        match self {
            Self::Ring(_) => None,
            Self::Counted(ring) => Some(ring.wake_at(next)),
            // A kernel user posts by a call.
            Self::List(list) => Some(!list.lock().is_empty()),
        }
    }

    /// Returns the place of WR `next`, which [`Self::peek`] has returned, to the poster. Any
    /// context.
    pub(super) fn release(&self, next: u32) {
        match self {
            Self::Ring(ring) => ring.release(next),
            Self::Counted(ring) => ring.release(next),
            Self::List(list) => {
                let unpeeked = list.lock().pop();
                drop(unpeeked);
            }
        }
    }

    /// As [`Self::release`], for a taker that looks for WRs by itself. With siw's ABI, the process
    /// rings the doorbell unless the WR before is still in its place: so this keeps WR `next`
    /// there, and returns the place of the one before it, if it was `kept`. Returns whether it
    /// keeps WR `next`. Any context.
    pub(super) fn release_late(&self, next: u32, kept: bool) -> bool {
        match self {
            Self::Ring(ring) => {
                if kept {
                    ring.release(next.wrapping_sub(1));
                }
                true
            }
            Self::Counted(_) | Self::List(_) => {
                self.release(next);
                false
            }
        }
    }

    /// Whether WR `at` is posted; `next` is the number of the next one. Any context.
    pub(super) fn is_posted(&self, at: u32, next: u32) -> bool {
        match self {
            Self::Ring(ring) => ring.is_valid(at),
            Self::Counted(ring) => at.wrapping_sub(next) < ring.posted(next),
            Self::List(list) => at.wrapping_sub(next) < list.lock().len(),
        }
    }

    /// Returns the number of posted WRs; `next` is the number of the next one. Any context.
    pub(super) fn posted(&self, next: u32) -> u32 {
        match self {
            Self::Ring(ring) => ring.run(next, true),
            Self::Counted(ring) => ring.posted(next),
            Self::List(list) => list.lock().len(),
        }
    }
}

impl<const W: usize> PostedWrs<SendWr, W> {
    /// Takes the WR of [`Self::peek`] back with its data, so that it can be peeked at again. Any
    /// context.
    pub(super) fn put_back(&self, wr: SendWr, data: &mut SendData) {
        match self {
            // The ring still has it.
            Self::Ring(_) | Self::Counted(_) => drop(wr),
            Self::List(list) => {
                let posted = PostedSend::put_back(wr, data);

                list.lock().put_back(posted);
            }
        }
    }
}
