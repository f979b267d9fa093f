// SPDX-License-Identifier: GPL-2.0

//! The queue pairs in ERROR whose receive queues are looked at from time to time.
//!
//! With siw's ABI a process rings no doorbell for receive WRs, and may wait for the flush of one
//! that it posts in ERROR. One work item of the device serves all such queue pairs: a timer for
//! each would let a process keep the CPUs busy by queue pairs that it leaves alone.

use super::Qp;
use kernel::{
    impl_has_delayed_work, new_delayed_work,
    prelude::*,
    rbtree::{RBTree, RBTreeNodeReservation},
    sync::Arc,
    time::msecs_to_jiffies,
    workqueue::{DelayedWork, WorkItem},
};
use kernel_ext::{
    sync::{new_bh_spinlock, BhSpinLock},
    time::Ktime,
    workqueue::{cancel_delayed_work, mod_delayed_work, HasQueue, Queue},
};

/// The unit of time in milliseconds. Queue pairs that are due in the same unit are served together.
const TICK_MS: u64 = 20;
/// Maximum queue pairs in a run of the work item.
const BATCH: usize = 64;

/// The queue pairs of a device that wait for the sweep, in the order in which they are due.
#[pin_data]
pub(crate) struct FlushSweep {
    queue: Arc<Queue>,
    start: Ktime,
    /// The work item is armed and canceled with the lock held. It is armed if the tree is not
    /// empty.
    #[pin]
    waiting: BhSpinLock<RBTree<Turn, Arc<Qp>>>,
    #[pin]
    work: DelayedWork<FlushSweep>,
}

/// When a queue pair is due: a count of [`TICK_MS`]; and its number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Turn(u64, u32);

/// The memory of a place among those that wait. A queue pair has it from the beginning, so that
/// waiting cannot fail.
pub(super) struct FreePlace(RBTreeNodeReservation<Turn, Arc<Qp>>);

/// The place of a queue pair.
pub(super) enum SweepPlace {
    /// It does not wait.
    Free(FreePlace),
    Waiting(Turn),
    /// The sweep is serving the queue pair, or the queue pair never waits.
    Away,
}

impl_has_delayed_work! {
    impl HasDelayedWork<FlushSweep> for FlushSweep { self.work }
}

impl HasQueue for FlushSweep {
    fn queue(&self) -> &Queue {
        &self.queue
    }
}

impl FreePlace {
    /// Allocates a place, charged to the calling process. Process context; may sleep. Fails with
    /// `ENOMEM` without memory.
    pub(super) fn new() -> Result<Self> {
        Ok(Self(RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?))
    }
}

impl SweepPlace {
    /// Takes the place from the queue pair, out of `sweep` if it waits there. Process context; the
    /// queue pair has another reference. Returns `None` if the sweep has the place.
    pub(super) fn take(&mut self, sweep: &Arc<FlushSweep>) -> Option<FreePlace> {
        match core::mem::replace(self, Self::Away) {
            Self::Free(place) => Some(place),
            Self::Waiting(turn) => sweep.leave(turn),
            Self::Away => None,
        }
    }
}

impl FlushSweep {
    /// Creates a sweep for which nothing waits, whose work item runs on `queue`. Process context;
    /// may sleep. Fails with `ENOMEM` without memory.
    pub(crate) fn new(queue: Arc<Queue>) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                queue,
                start: Ktime::now(),
                waiting <- new_bh_spinlock!(RBTree::new(), "riw::FlushSweep::waiting"),
                work <- new_delayed_work!("riw::FlushSweep::work"),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns the time in ticks.
    fn now(&self) -> u64 {
        let ms = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(0);

        ms / TICK_MS
    }

    /// Lets a queue pair wait for `ms` milliseconds, up to a tick more or less. Process context.
    pub(super) fn join(self: &Arc<Self>, place: FreePlace, qp: &Arc<Qp>, ms: u32) -> Turn {
        let ticks = u64::from(ms).div_ceil(TICK_MS);
        let turn = Turn(self.now().saturating_add(ticks), qp.number);
        let node = place.0.into_node(turn, qp.clone());
        let mut waiting = self.waiting.lock();

        // Numbers are unique, so nothing is replaced.
        let _ = waiting.insert(node);
        if waiting
            .cursor_front()
            .is_some_and(|first| *first.current().0 == turn)
        {
            self.arm(&waiting);
        }
        turn
    }

    /// Takes a queue pair out, which has a reference besides that of the sweep. Process context.
    /// Returns `None` if the sweep is serving it.
    fn leave(self: &Arc<Self>, turn: Turn) -> Option<FreePlace> {
        let node = {
            let mut waiting = self.waiting.lock();
            let node = waiting.remove_node(&turn);

            if waiting.is_empty() {
                cancel_delayed_work::<Self, 0>(self);
            }
            node
        };

        node.map(|node| FreePlace(node.into_reservation()))
    }

    /// Arms the work item for the first queue pair.
    fn arm(self: &Arc<Self>, waiting: &RBTree<Turn, Arc<Qp>>) {
        if let Some(first) = waiting.cursor_front() {
            let Turn(tick, _) = *first.current().0;
            let ticks = tick.saturating_sub(self.now());
            let ms = ticks.saturating_mul(TICK_MS).try_into();
            let later = match ticks {
                // The rest of those that are due: after other work.
                0 => 0,
                // One more jiffy: the current one has begun already.
                _ => msecs_to_jiffies(ms.unwrap_or(u32::MAX)).saturating_add(1),
            };

            mod_delayed_work::<Self, 0>(self, later);
        }
    }

    /// Takes the first queue pair out, if it is due.
    fn next_due(&self) -> Option<(Arc<Qp>, FreePlace)> {
        let (qp, node) = {
            let mut waiting = self.waiting.lock();
            let first = waiting.cursor_front_mut()?;
            let (Turn(tick, _), qp) = first.current();

            if *tick > self.now() {
                return None;
            }
            let qp = qp.clone();
            (qp, first.remove_current().1)
        };

        Some((qp, FreePlace(node.into_reservation())))
    }
}

impl WorkItem for FlushSweep {
    type Pointer = Arc<Self>;

    /// Serves the queue pairs that are due.
    fn run(this: Arc<Self>) {
        for _ in 0..BATCH {
            let Some((qp, place)) = this.next_due() else {
                break;
            };
            qp.flush_posted(place);
        }
        this.arm(&this.waiting.lock());
    }
}
