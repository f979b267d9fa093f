// SPDX-License-Identifier: GPL-2.0

//! Entries of rings that are shared with user space.

use kernel::{prelude::*, sync::atomic::ordering};
use rdma::shared::SharedMem;

/// Octets of a word.
pub(super) const WORD: usize = size_of::<u64>();

/// An entry of a ring, which user space may change at any time. Load each word only once.
pub(crate) struct WrEntry<'a> {
    mem: &'a SharedMem,
    first: usize,
    words: usize,
}

impl<'a> WrEntry<'a> {
    /// Returns the entry of `words` words in `mem`, from word `first` on. Any context.
    pub(super) fn new(mem: &'a SharedMem, first: usize, words: usize) -> Self {
        Self { mem, first, words }
    }

    /// Returns the size in octets. Any context.
    pub(crate) fn octets(&self) -> usize {
        self.words.wrapping_mul(WORD)
    }

    /// Copies words from `offset` octets on. Any context. Returns `None`, with nothing copied, if
    /// they exceed the entry.
    #[inline]
    pub(crate) fn load(&self, offset: usize, to: &mut [u64]) -> Option<()> {
        let at = self.at(offset, to.len())?;

        self.mem.load(at, to)
    }

    /// Stores words from `offset` octets on. Any context. Returns `None`, with nothing stored, if
    /// they exceed the entry.
    #[inline]
    pub(crate) fn store(&self, offset: usize, words: &[u64]) -> Option<()> {
        let at = self.at(offset, words.len())?;

        self.mem.store(at, words)
    }

    /// Stores word `number`, after all earlier stores. Any context.
    #[inline]
    pub(crate) fn store_release(&self, number: usize, word: u64) -> Option<()> {
        let at = self.at(number.checked_mul(WORD)?, 1)?;

        self.mem.words().get(at)?.store(word, ordering::Release);
        Some(())
    }

    /// Returns where `count` words from `offset` octets on are in the memory; `None` if they exceed
    /// the entry.
    #[inline]
    fn at(&self, offset: usize, count: usize) -> Option<usize> {
        let word = offset / WORD;

        (word.checked_add(count)? <= self.words).then_some(self.first.wrapping_add(word))
    }
}
