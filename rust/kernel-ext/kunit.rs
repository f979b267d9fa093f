// SPDX-License-Identifier: GPL-2.0

//! Helpers for KUnit suites that run several functions at once. Only built if KUnit is built in.

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

mod sync;
mod workqueue;

/// Time without progress after which a test reports a hang: longer than any machine is busy.
const PATIENCE: Delta = Delta::from_secs(60);

/// The number of polls or steps before a thread yields the CPU.
const LOOKS: usize = 200;

/// A set of functions that run at once, each in its own worker. None starts before all workers run.
/// The drop waits for the functions to return. Process context, may sleep.
///
/// Use assertions only in the test's own thread, after the drop: KUnit does not see others. A
/// failed assertion ends its thread without dropping anything.
pub struct Crowd {
    queue: Queue,
    /// Workers that do not run yet.
    absent: Arc<Atomic<u32>>,
    /// Stops the functions of [`keep`](Self::keep).
    over: Arc<Atomic<bool>>,
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.over.store(true, ordering::Relaxed);
    }
}

impl Crowd {
    /// Makes a crowd for exactly `size` functions: fewer do not start until a time-out. May sleep.
    /// `ENOMEM` if there is no memory.
    pub fn new(size: u32) -> Result<Self> {
        Ok(Self {
            queue: Queue::new(c"kunit_crowd", Flags::UNBOUND)?,
            absent: Arc::new(Atomic::new(size), GFP_KERNEL)?,
            over: Arc::new(Atomic::new(false), GFP_KERNEL)?,
        })
    }

    /// Adds a function. May sleep. `ENOMEM` if there is no memory.
    pub fn add(&self, function: impl FnMut() + Send + 'static) -> Result {
        self.add_boxed(KBox::new(function, GFP_KERNEL)?)
    }

    /// Adds a function that is called again and again until the drop. May sleep. `ENOMEM` if there
    /// is no memory.
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

    // Not `try_spawn`: its work items, one for each function type and crate, share a lock class but
    // not its name, which lockdep reports.
    fn add_boxed(&self, function: KBox<dyn FnMut() + Send>) -> Result {
        let member = pin_init!(Member {
            work <- new_work!("kernel_ext::kunit::Member::work"),
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

/// Yields the CPU: not every kernel preempts a kernel thread. Process context, may sleep. Call it
/// at least once in some thousand steps.
pub fn let_others_run() {
    // SAFETY: `schedule()` only needs process context, in which tests and workers run.
    unsafe { bindings::schedule() };
}

/// Polls until `condition` holds, which another thread makes true. Process context, may sleep.
/// Returns false if it does not hold within `PATIENCE`.
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
