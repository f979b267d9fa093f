// SPDX-License-Identifier: GPL-2.0

//! A wakeup of one thread by another. If it never comes, loom reports a deadlock.

use loom::sync::{Condvar, Mutex};

pub(crate) struct Bell {
    rung: Mutex<bool>,
    changed: Condvar,
}

impl Bell {
    pub(crate) fn new() -> Self {
        Self {
            rung: Mutex::new(false),
            changed: Condvar::new(),
        }
    }

    pub(crate) fn ring(&self) {
        *self.rung.lock().unwrap() = true;
        self.changed.notify_one();
    }

    /// Waits until it has rung since the last wait.
    pub(crate) fn wait(&self) {
        let mut rung = self.rung.lock().unwrap();

        while !*rung {
            rung = self.changed.wait(rung).unwrap();
        }
        *rung = false;
    }
}
