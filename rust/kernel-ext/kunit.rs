// SPDX-License-Identifier: GPL-2.0

//! Helpers for KUnit suites that run functions concurrently. Only built if KUnit is built in.

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

mod percpu;
mod ratelimit;
mod runner;
mod sync;
mod workqueue;

/// Time without progress after which a test reports a hang. A busy machine needs less.
const TIMEOUT: Delta = Delta::from_secs(60);

/// The number of polls or steps before a thread yields the CPU.
const STEPS_PER_YIELD: usize = 200;

/// Functions that run concurrently, each in its own worker. None starts before all workers run. The
/// drop waits for the functions to return. Process context, may sleep.
///
/// Use assertions only in the test's own thread, after the drop: KUnit does not see assertions of
/// other threads. A failed assertion ends its thread without dropping anything.
pub struct Workers {
    queue: Queue,
    /// The number of workers that do not run yet.
    not_running: Arc<Atomic<u32>>,
    /// Stops the functions of [`add_loop`](Self::add_loop).
    stop: Arc<Atomic<bool>>,
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.stop.store(true, ordering::Relaxed);
    }
}

impl Workers {
    /// Prepares to run exactly `count` functions. If fewer are added, they start after a timeout.
    /// May sleep. `ENOMEM` if there is no memory.
    pub fn new(count: u32) -> Result<Self> {
        Ok(Self {
            queue: Queue::new(c"kunit_workers", Flags::UNBOUND)?,
            not_running: Arc::new(Atomic::new(count), GFP_KERNEL)?,
            stop: Arc::new(Atomic::new(false), GFP_KERNEL)?,
        })
    }

    /// Adds a function. May sleep. `ENOMEM` if there is no memory.
    pub fn add(&self, function: impl FnMut() + Send + 'static) -> Result {
        self.add_boxed(KBox::new(function, GFP_KERNEL)?)
    }

    /// Adds a function that is called in a loop until the drop. May sleep. `ENOMEM` if there is no
    /// memory.
    pub fn add_loop(&self, mut step: impl FnMut() + Send + 'static) -> Result {
        let stop = self.stop.clone();

        self.add(move || {
            while !stop.load(ordering::Relaxed) {
                for _ in 0..STEPS_PER_YIELD {
                    step();
                }
                yield_cpu();
            }
        })
    }

    // Not `try_spawn`: its work items, one for each function type and crate, share a lock class but
    // not its name, which lockdep reports.
    fn add_boxed(&self, function: KBox<dyn FnMut() + Send>) -> Result {
        let worker = pin_init!(Worker {
            work <- new_work!("kernel_ext::kunit::Worker::work"),
            not_running: self.not_running.clone(),
            function,
        });

        self.queue.enqueue(KBox::pin_init(worker, GFP_KERNEL)?);
        Ok(())
    }
}

#[pin_data]
struct Worker {
    #[pin]
    work: Work<Worker>,
    not_running: Arc<Atomic<u32>>,
    function: KBox<dyn FnMut() + Send>,
}

impl_has_work! {
    impl HasWork<Self> for Worker { self.work }
}

impl WorkItem for Worker {
    type Pointer = Pin<KBox<Self>>;

    fn run(mut this: Pin<KBox<Self>>) {
        this.not_running.fetch_sub(1, ordering::Relaxed);
        wait_until(|| this.not_running.load(ordering::Relaxed) == 0);
        (this.as_mut().project().function)()
    }
}

/// Yields the CPU: not every kernel preempts a kernel thread. `schedule()` alone would go on with
/// this one until the next tick. Nothing relies on it for progress: [`wait_until`] has a time-out.
/// Process context, may sleep. Call it at least once in some thousand steps.
pub fn yield_cpu() {
    // SAFETY: `yield()` only needs process context, in which tests and workers run.
    unsafe { bindings::yield_() };
}

/// Polls until another thread has made `condition` true. Process context, may sleep. Returns false
/// if that takes more than 60 s.
pub fn wait_until(mut condition: impl FnMut() -> bool) -> bool {
    let begin = Instant::<Monotonic>::now();

    loop {
        for _ in 0..STEPS_PER_YIELD {
            if condition() {
                return true;
            }
            core::hint::spin_loop();
        }
        if begin.elapsed() > TIMEOUT {
            return false;
        }
        yield_cpu();
    }
}
