// SPDX-License-Identifier: GPL-2.0

//! Timers against those who kick them and those who take them down.

use super::{comes_true, Crowd};
use crate::workqueue::{cancel_delayed_work_sync, Flags, Queue};
use kernel::{
    impl_has_delayed_work, new_delayed_work,
    prelude::*,
    sync::{
        atomic::{ordering, Atomic},
        Arc,
    },
    time::{delay::fsleep, msecs_to_jiffies, Delta, Jiffies},
    workqueue::{DelayedWork, WorkItem},
};

/// What is left to see when an item has gone.
struct Traces {
    runs: Atomic<u32>,
    /// Runs after the item was taken down.
    late: Atomic<u32>,
    drops: Atomic<u32>,
}

/// An item that sets its timer again whenever it runs.
#[pin_data(PinnedDrop)]
struct Item {
    queue: Arc<Queue>,
    /// For how long, by the number of its runs.
    pause: fn(u32) -> Jiffies,
    traces: Arc<Traces>,
    down: Atomic<bool>,
    #[pin]
    work: DelayedWork<Item>,
}

impl_has_delayed_work! {
    impl HasDelayedWork<Item> for Item { self.work }
}

impl Item {
    fn new(pause: fn(u32) -> Jiffies) -> Result<Arc<Self>> {
        let queue = Arc::new(Queue::new(c"kunit_items", Flags::UNBOUND)?, GFP_KERNEL)?;
        let traces = Traces {
            runs: Atomic::new(0),
            late: Atomic::new(0),
            drops: Atomic::new(0),
        };
        let traces = Arc::new(traces, GFP_KERNEL)?;

        Arc::pin_init(
            pin_init!(Self {
                queue,
                pause,
                traces,
                down: Atomic::new(false),
                work <- new_delayed_work!("net::kunit::Item::work"),
            }),
            GFP_KERNEL,
        )
    }

    fn kick(self: &Arc<Self>) {
        self.queue.kick::<Self, 0>(self.clone());
    }
}

impl WorkItem for Item {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        if this.down.load(ordering::Acquire) {
            this.traces.late.fetch_add(1, ordering::Relaxed);
        }
        let run = this.traces.runs.fetch_add(1, ordering::Relaxed);
        // Somebody may have kicked it already.
        let _ = this
            .queue
            .enqueue_delayed::<Arc<Self>, 0>(this.clone(), (this.pause)(run));
    }
}

#[pinned_drop]
impl PinnedDrop for Item {
    fn drop(self: Pin<&mut Self>) {
        self.traces.drops.fetch_add(1, ordering::Relaxed);
    }
}

#[kunit_tests(net_workqueue)]
mod tests {
    use super::*;

    /// Longer than any delay of an item's own.
    const A_WHILE: Delta = Delta::from_millis(50);

    /// Whoever has kicked it meanwhile: what is cancelled has stopped for good, and everybody's
    /// reference is given back once.
    #[test]
    fn what_is_cancelled_is_gone() -> Result {
        for round in 0..40 {
            // Its next run is queued at once, or set off by its timer. CAST: 0 to 2.
            let item = Item::new(|run| (run % 3) as Jiffies)?;
            let queue = item.queue.clone();
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
            // Into the midst of it, at another moment in each round.
            let ran = comes_true(|| traces.runs.load(ordering::Relaxed) > round % 8);
            cancel_delayed_work_sync::<Item, 0>(&item);
            drop(crowd);
            cancel_delayed_work_sync::<Item, 0>(&item);
            item.down.store(true, ordering::Release);
            if round % 8 == 0 {
                fsleep(A_WHILE);
            }
            drop(item);
            drop(queue);

            assert!(ran);
            assert_eq!(traces.late.load(ordering::Relaxed), 0);
            assert_eq!(traces.drops.load(ordering::Relaxed), 1);
        }
        Ok(())
    }

    /// A kick is never lost: after it the item runs, whatever it was about at that moment.
    #[test]
    fn a_kick_is_followed_by_a_run() -> Result {
        let item = Item::new(|_| msecs_to_jiffies(3_600_000))?;
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
        cancel_delayed_work_sync::<Item, 0>(&item);
        assert_eq!(lost.load(ordering::Relaxed), 0);
        Ok(())
    }
}
