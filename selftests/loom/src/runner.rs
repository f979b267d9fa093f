// SPDX-License-Identifier: GPL-2.0

//! The right to transmit, with two threads that post and race for it.

#[path = "../../../rust/kernel-ext/runner.rs"]
mod right;

use crate::tap::Model;
use kernel::sync::atomic::{ordering, Atomic};
use loom::{cell::UnsafeCell, sync::Arc, thread};

pub(crate) const MODELS: &[Model] = &[Model {
    rule: "all posted work is sent, and runs do not overlap",
    run: post,
}];

/// A minimal queue pair: posted work is a bit.
struct Work {
    posted: [Atomic<u32>; 2],
    /// The work that has been sent. Only the holder of the right accesses it: loom reports any other access.
    sent: UnsafeCell<[bool; 2]>,
}

impl Work {
    fn new() -> Self {
        Self {
            posted: [Atomic::new(0), Atomic::new(0)],
            sent: UnsafeCell::new([false; 2]),
        }
    }

    /// A pass of the holder.
    fn pass(&self) {
        let posted = [0, 1].map(|which: usize| self.posted[which].load(ordering::Relaxed) != 0);

        // SAFETY: Only the holder of the right calls this. loom panics if that is not so.
        self.sent.with_mut(|sent| unsafe { *sent = posted });
    }
}

/// Requests a pass, and makes it if no run is active.
fn transmit(right: &right::Runner, work: &Work) {
    if right.want() {
        loop {
            work.pass();
            if right.done() {
                return;
            }
        }
    }
}

fn post() {
    let shared = Arc::new((right::Runner::new(), Work::new()));
    let threads = [0, 1].map(|which: usize| {
        let shared = shared.clone();

        thread::spawn(move || {
            let (right, work) = &*shared;

            work.posted[which].store(1, ordering::Relaxed);
            transmit(right, work);
        })
    });

    for thread in threads {
        thread.join().unwrap();
    }
    // SAFETY: The threads have ended.
    let sent = shared.1.sent.with(|sent| unsafe { *sent });

    assert_eq!(sent, [true, true]);
}
