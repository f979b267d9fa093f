// SPDX-License-Identifier: GPL-2.0

//! The words that the kernel shares, as the process has them.

use kernel::{
    race::RaceCheck,
    sites::{self, Kind},
    sync::atomic::Atomic,
};
use loom::sync::atomic;
pub use loom::sync::atomic::Ordering;
use std::sync::Arc;

/// A word. It has the size of a word, as libriw counts octets with it.
pub struct AtomicU64(Option<Box<Word>>);

struct Word {
    cell: Arc<atomic::AtomicU64>,
    /// For a word of an entry.
    check: Option<Arc<RaceCheck>>,
}

const _: () = assert!(size_of::<AtomicU64>() == size_of::<u64>());

impl AtomicU64 {
    /// A word that no code accesses. loom has no atomics outside of an execution, and libriw has a static one, for a
    /// ring without a header.
    pub const fn new(_value: u64) -> Self {
        Self(None)
    }

    /// Maps a word of the kernel. With `check`, relaxed accesses take turns with those of the kernel.
    pub fn map(word: &Atomic<u64>, check: Option<Arc<RaceCheck>>) -> Self {
        Self(Some(Box::new(Word {
            cell: word.cell().clone(),
            check,
        })))
    }

    fn word(&self) -> &Word {
        self.0.as_ref().expect("a ring without a header")
    }

    #[track_caller]
    pub fn load(&self, order: Ordering) -> u64 {
        let word = self.word();

        if let (Some(check), Ordering::Relaxed) = (&word.check, order) {
            check.read();
        }
        word.cell.load(sites::ordering(order))
    }

    #[track_caller]
    pub fn store(&self, value: u64, order: Ordering) {
        let word = self.word();

        if let (Some(check), Ordering::Relaxed) = (&word.check, order) {
            check.write();
        }
        word.cell.store(value, sites::ordering(order));
    }

    pub fn fetch_or(&self, value: u64, order: Ordering) -> u64 {
        self.word().cell.fetch_or(value, order)
    }
}

#[track_caller]
pub fn fence(order: Ordering) {
    if sites::orders(Kind::Barrier) {
        atomic::fence(order);
    }
}
