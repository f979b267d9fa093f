// SPDX-License-Identifier: GPL-2.0

//! Checks for races. A load in loom returns a value that has been stored before, so loom never delays a load behind
//! a later store. But it knows which access happens before which.

use loom::cell::UnsafeCell;

/// Stands for a word that its two sides access in turns: an access of one that does not happen before the next
/// access of the other is a race, which loom reports, unless both are reads.
pub struct RaceCheck(UnsafeCell<()>);

// SAFETY: The cell has no content, and loom runs one thread at a time.
unsafe impl Sync for RaceCheck {}

impl RaceCheck {
    #[expect(clippy::new_without_default)]
    pub fn new() -> Self {
        Self(UnsafeCell::new(()))
    }

    #[track_caller]
    pub fn read(&self) {
        self.0.with(|_| ());
    }

    #[track_caller]
    pub fn write(&self) {
        self.0.with_mut(|_| ());
    }
}
