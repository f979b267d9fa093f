// SPDX-License-Identifier: GPL-2.0

//! Delayed items: their timers race with callers that queue the item and with its end.

use super::{wait_until, Workers};
use crate::workqueue::{cancel_delayed_work, mod_delayed_work, Flags, HasQueue, Queue};
use kernel::{
    impl_has_delayed_work, impl_has_work, new_delayed_work, new_mutex, new_work,
    prelude::*,
    sync::{
        atomic::{ordering, Atomic},
        Arc, Mutex,
    },
    time::{msecs_to_jiffies, Jiffies},
    workqueue::{DelayedWork, Work, WorkItem},
};

/// Counters that outlive their item.
struct Counts {
    runs: Atomic<u32>,
    drops: Atomic<u32>,
}

/// An item that rearms its timer at each run, as the items of a connection do.
#[pin_data(PinnedDrop)]
struct Item {
    queue: Arc<Queue>,
    /// The delay of the timer, by the number of earlier runs.
    delay: fn(u32) -> Jiffies,
    counts: Arc<Counts>,
    /// Whether the item has ended: it does not rearm its timer any more.
    #[pin]
    ended: Mutex<bool>,
    #[pin]
    work: Work<Item, 0>,
    #[pin]
    timer: DelayedWork<Item, 1>,
}

impl_has_work! {
    impl HasWork<Item, 0> for Item { self.work }
}
impl_has_delayed_work! {
    impl HasDelayedWork<Item, 1> for Item { self.timer }
}

impl HasQueue for Item {
    fn queue(&self) -> &Queue {
        &self.queue
    }
}

impl Item {
    fn new(queue: &Arc<Queue>, delay: fn(u32) -> Jiffies) -> Result<Arc<Self>> {
        let counts = Counts {
            runs: Atomic::new(0),
            drops: Atomic::new(0),
        };
        let counts = Arc::new(counts, GFP_KERNEL)?;

        Arc::pin_init(
            pin_init!(Self {
                queue: queue.clone(),
                delay,
                counts,
                ended <- new_mutex!(false, "kernel_ext::kunit::Item::ended"),
                work <- new_work!("kernel_ext::kunit::Item::work"),
                timer <- new_delayed_work!("kernel_ext::kunit::Item::timer"),
            }),
            GFP_KERNEL,
        )
    }

    fn kick(self: &Arc<Self>) {
        self.queue.kick::<_, 0>(self);
    }

    fn end(self: &Arc<Self>) {
        let mut ended = self.ended.lock();

        *ended = true;
        cancel_delayed_work::<Self, 1>(self);
    }
}

impl WorkItem<0> for Item {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let ended = this.ended.lock();
        let run = this.counts.runs.fetch_add(1, ordering::Relaxed);

        if !*ended {
            mod_delayed_work::<Self, 1>(&this, (this.delay)(run));
        }
    }
}

impl WorkItem<1> for Item {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        this.kick();
    }
}

#[pinned_drop]
impl PinnedDrop for Item {
    fn drop(self: Pin<&mut Self>) {
        self.counts.drops.fetch_add(1, ordering::Relaxed);
    }
}

#[kunit_tests(kernel_ext_workqueue)]
mod tests {
    use super::*;

    fn queue() -> Result<Arc<Queue>> {
        Ok(Arc::new(
            Queue::new(c"kunit_items", Flags::UNBOUND)?,
            GFP_KERNEL,
        )?)
    }

    /// After its end and a drain of the queue, no reference to an item is left, and none was
    /// dropped twice, even if callers queued it meanwhile.
    #[test]
    fn an_ended_item_is_freed_once() -> Result {
        for round in 0..40 {
            let queue = queue()?;
            // A delay of 0 queues the next run at once, others start the timer. CAST: 0 to 2.
            let item = Item::new(&queue, |run| (run % 3) as Jiffies)?;
            let counts = item.counts.clone();
            let workers = Workers::new(2)?;

            for _ in 0..2 {
                let item = item.clone();
                workers.add(move || {
                    for _ in 0..1000 {
                        item.kick();
                    }
                })?;
            }
            // End it while it is busy, at another moment in each round.
            let ran = wait_until(|| counts.runs.load(ordering::Relaxed) > round % 8);
            item.end();
            drop(workers);
            drop(item);
            queue.drain();

            assert!(ran);
            assert_eq!(counts.drops.load(ordering::Relaxed), 1);
        }
        Ok(())
    }

    /// No wakeup is lost: a queued item runs at once, although its timer is set for later.
    #[test]
    fn a_kick_of_an_armed_item_runs_it_at_once() -> Result {
        let queue = queue()?;
        let item = Item::new(&queue, |_| msecs_to_jiffies(3_600_000))?;
        let lost = Arc::new(Atomic::new(0u32), GFP_KERNEL)?;
        let workers = Workers::new(2)?;

        for _ in 0..2 {
            let item = item.clone();
            let lost = lost.clone();
            workers.add(move || {
                for _ in 0..20_000 {
                    let before = item.counts.runs.load(ordering::Relaxed);
                    item.kick();
                    if !wait_until(|| item.counts.runs.load(ordering::Relaxed) != before) {
                        lost.fetch_add(1, ordering::Relaxed);
                        break;
                    }
                }
            })?;
        }
        drop(workers);
        item.end();
        queue.drain();
        assert_eq!(lost.load(ordering::Relaxed), 0);
        Ok(())
    }

    /// The delay set last holds, whether it is the longer or the shorter one.
    #[test]
    fn the_delay_set_last_holds() -> Result {
        let queue = queue()?;
        // An hour, then no delay, then an hour.
        let item = Item::new(&queue, |run| match run {
            1 => 0,
            _ => msecs_to_jiffies(3_600_000),
        })?;
        let runs = || item.counts.runs.load(ordering::Relaxed);

        item.kick();
        assert!(wait_until(|| runs() == 1));
        item.kick();
        // The second run, and the third by its timer.
        assert!(wait_until(|| runs() == 3));
        item.end();
        queue.drain();
        assert_eq!(runs(), 3);
        Ok(())
    }
}
