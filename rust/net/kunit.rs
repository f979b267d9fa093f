// SPDX-License-Identifier: GPL-2.0

//! What suites of KUnit share that need several things to happen at once. Only in kernels that
//! have KUnit.

use crate::workqueue::{Flags, Queue};
use kernel::{
    bindings, impl_has_work, new_work,
    prelude::*,
    sync::{
        atomic::{ordering, Atomic},
        Arc,
    },
    time::{Delta, Instant, Monotonic},
    workqueue::{Work, WorkItem},
};

mod sendbuf;
mod sync;
mod workqueue;

/// How long nothing may move before a test calls it a hang: longer than any machine is busy.
const PATIENCE: Delta = Delta::from_secs(60);

/// How often something is looked at, or done, before others have their turn.
const LOOKS: usize = 200;

/// Functions that run at once, each in a worker of its own, from the moment at which all are there.
/// Dropping it waits for their end.
///
/// Assertions are for the test's own thread, after that: KUnit hears of no others, and one that
/// fails ends its thread without dropping anything.
pub struct Crowd {
    queue: Queue,
    /// Those who are not there yet.
    absent: Arc<Atomic<u32>>,
    /// Who goes on until the end has come to it.
    over: Arc<Atomic<bool>>,
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.over.store(true, ordering::Relaxed);
    }
}

impl Crowd {
    /// For `size` functions. May sleep.
    pub fn new(size: u32) -> Result<Self> {
        Ok(Self {
            queue: Queue::new(c"kunit_crowd", Flags::UNBOUND)?,
            absent: Arc::new(Atomic::new(size), GFP_KERNEL)?,
            over: Arc::new(Atomic::new(false), GFP_KERNEL)?,
        })
    }

    /// Has one more function run. May sleep.
    pub fn add(&self, function: impl FnMut() + Send + 'static) -> Result {
        self.add_boxed(KBox::new(function, GFP_KERNEL)?)
    }

    /// Has one more function run, again and again until this is dropped. May sleep.
    pub fn keep(&self, mut step: impl FnMut() + Send + 'static) -> Result {
        let over = self.over.clone();

        self.add(move || {
            while !over.load(ordering::Relaxed) {
                for _ in 0..LOOKS {
                    step();
                }
                let_others_run();
            }
        })
    }

    // `try_spawn` has a work item for each type of function and crate, all of one lock class, but
    // not of one name, which lockdep does not like.
    fn add_boxed(&self, function: KBox<dyn FnMut() + Send>) -> Result {
        let member = pin_init!(Member {
            work <- new_work!("net::kunit::Member::work"),
            absent: self.absent.clone(),
            function,
        });

        self.queue.enqueue(KBox::pin_init(member, GFP_KERNEL)?);
        Ok(())
    }
}

#[pin_data]
struct Member {
    #[pin]
    work: Work<Member>,
    absent: Arc<Atomic<u32>>,
    function: KBox<dyn FnMut() + Send>,
}

impl_has_work! {
    impl HasWork<Self> for Member { self.work }
}

impl WorkItem for Member {
    type Pointer = Pin<KBox<Self>>;

    fn run(mut this: Pin<KBox<Self>>) {
        this.absent.fetch_sub(1, ordering::Relaxed);
        comes_true(|| this.absent.load(ordering::Relaxed) == 0);
        (this.as_mut().project().function)()
    }
}

/// Lets others have the CPU, which not every kernel takes away from a thread of its own. To be
/// called at least once in some thousand steps.
pub fn let_others_run() {
    // SAFETY: No requirements but process context, in which all of this runs.
    unsafe { bindings::schedule() };
}

/// Looks until `condition` holds, which another thread makes true. Returns false if it never does.
pub fn comes_true(mut condition: impl FnMut() -> bool) -> bool {
    let begin = Instant::<Monotonic>::now();

    loop {
        for _ in 0..LOOKS {
            if condition() {
                return true;
            }
            core::hint::spin_loop();
        }
        if begin.elapsed() > PATIENCE {
            return false;
        }
        let_others_run();
    }
}
