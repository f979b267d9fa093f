// SPDX-License-Identifier: GPL-2.0

//! Delayed items: their timers race with callers that queue the item and with its end.

use super::{comes_true, Crowd};
use crate::workqueue::{cancel_delayed_work, impl_has_queue, mod_delayed_work, Flags, Queue};
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
struct Traces {
    runs: Atomic<u32>,
    drops: Atomic<u32>,
}

/// An item that rearms its timer at each run, as the items of a connection do.
#[pin_data(PinnedDrop)]
struct Item {
    queue: Arc<Queue>,
    /// The delay of the timer, by the number of earlier runs.
    pause: fn(u32) -> Jiffies,
    traces: Arc<Traces>,
    /// Whether the item has ended: it does not rearm its timer any more.
    #[pin]
    over: Mutex<bool>,
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
impl_has_queue! {
    impl HasQueue for Item { self.queue }
}

impl Item {
    fn new(queue: &Arc<Queue>, pause: fn(u32) -> Jiffies) -> Result<Arc<Self>> {
        let traces = Traces {
            runs: Atomic::new(0),
            drops: Atomic::new(0),
        };
        let traces = Arc::new(traces, GFP_KERNEL)?;

        Arc::pin_init(
            pin_init!(Self {
                queue: queue.clone(),
                pause,
                traces,
                over <- new_mutex!(false, "kernel_ext::kunit::Item::over"),
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
        let mut over = self.over.lock();

        *over = true;
        cancel_delayed_work::<Self, 1>(self);
    }
}

impl WorkItem<0> for Item {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let over = this.over.lock();
        let run = this.traces.runs.fetch_add(1, ordering::Relaxed);

        if !*over {
            mod_delayed_work::<Self, 1>(&this, (this.pause)(run));
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
        self.traces.drops.fetch_add(1, ordering::Relaxed);
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
    fn what_has_ended_is_gone() -> Result {
        for round in 0..40 {
            let queue = queue()?;
            // A delay of 0 queues the next run at once, others start the timer. CAST: 0 to 2.
            let item = Item::new(&queue, |run| (run % 3) as Jiffies)?;
            let traces = item.traces.clone();
            let crowd = Crowd::new(2)?;

            for _ in 0..2 {
                let item = item.clone();
                crowd.add(move || {
                    for _ in 0..1000 {
                        item.kick();
                    }
                })?;
            }
            // End it while it is busy, at another moment in each round.
            let ran = comes_true(|| traces.runs.load(ordering::Relaxed) > round % 8);
            item.end();
            drop(crowd);
            drop(item);
            queue.drain();

            assert!(ran);
            assert_eq!(traces.drops.load(ordering::Relaxed), 1);
        }
        Ok(())
    }

    /// No wakeup is lost: a queued item runs at once, although its timer is set for later.
    #[test]
    fn a_kick_is_followed_by_a_run() -> Result {
        let queue = queue()?;
        let item = Item::new(&queue, |_| msecs_to_jiffies(3_600_000))?;
        let lost = Arc::new(Atomic::new(0u32), GFP_KERNEL)?;
        let crowd = Crowd::new(2)?;

        for _ in 0..2 {
            let item = item.clone();
            let lost = lost.clone();
            crowd.add(move || {
                for _ in 0..20_000 {
                    let before = item.traces.runs.load(ordering::Relaxed);
                    item.kick();
                    if !comes_true(|| item.traces.runs.load(ordering::Relaxed) != before) {
                        lost.fetch_add(1, ordering::Relaxed);
                        break;
                    }
                }
            })?;
        }
        drop(crowd);
        item.end();
        queue.drain();
        assert_eq!(lost.load(ordering::Relaxed), 0);
        Ok(())
    }

    /// The delay set last holds, whether it is the longer or the shorter one.
    #[test]
    fn a_timer_has_one_time() -> Result {
        let queue = queue()?;
        // An hour, then no delay, then an hour.
        let item = Item::new(&queue, |run| match run {
            1 => 0,
            _ => msecs_to_jiffies(3_600_000),
        })?;
        let runs = || item.traces.runs.load(ordering::Relaxed);

        item.kick();
        assert!(comes_true(|| runs() == 1));
        item.kick();
        // The second run, and the third by its timer.
        assert!(comes_true(|| runs() == 3));
        item.end();
        queue.drain();
        assert_eq!(runs(), 3);
        Ok(())
    }
}
