// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

//! The memory of a ring: a header and entries.

use core::sync::atomic::AtomicU64;
use riw_abi::ring::{self, HEADER, LINE};

/// Octets of a word.
pub(super) const WORD: usize = size_of::<AtomicU64>();

/// Memory that the kernel shares, as a header and entries. The memory is at least as long as the
/// numbers of entries and the stride say.
pub(super) struct Ring<M> {
    memory: M,
    pub(super) entries: u32,
    pub(super) stride: u32,
}

impl<M: AsRef<[AtomicU64]>> Ring<M> {
    /// Returns `None` if the memory is too short, or the kernel does not keep to the rules: entries
    /// are a power of two, and at multiples of [`LINE`].
    pub(super) fn new(memory: M, entries: u32, stride: u32) -> Option<Self> {
        let needed = ring::len(entries, stride)?;
        let there = memory.as_ref().len().checked_mul(WORD)?;
        let lines = usize::try_from(stride).ok()?;

        (entries.is_power_of_two() && lines != 0 && lines % LINE == 0 && needed <= there).then_some(
            Self {
                memory,
                entries,
                stride,
            },
        )
    }

    /// Returns the word of the header at an offset in octets.
    pub(super) fn header(&self, offset: usize) -> &AtomicU64 {
        // A ring has a header, so the second is never used.
        static NONE: AtomicU64 = AtomicU64::new(0);

        debug_assert!(offset < HEADER);
        self.memory.as_ref().get(offset / WORD).unwrap_or(&NONE)
    }

    /// Returns the words of an entry.
    pub(super) fn entry(&self, number: u32) -> &[AtomicU64] {
        let begin = ring::offset(number, self.entries, self.stride) / WORD;
        let words = usize::try_from(self.stride).unwrap_or(0) / WORD;

        // It is in the memory: see `new()`.
        self.memory
            .as_ref()
            .get(begin..begin.saturating_add(words))
            .unwrap_or(&[])
    }
}
