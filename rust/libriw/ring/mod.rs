// SPDX-License-Identifier: GPL-2.0

//! This side of the rings that [`riw_abi::ring`] describes.
//!
//! Nothing here knows of libibverbs, or calls the kernel. No function panics, whatever is in the memory.

#![forbid(unsafe_code)]

mod complete;
mod post;
mod receive;
mod send;

#[cfg(test)]
mod tests;

pub(crate) use complete::{Arming, Completions};
pub(crate) use receive::ReceiveQueue;
pub(crate) use send::{Payload, Refused, SendQueue};

use post::{Full, Posts};

use core::sync::atomic::AtomicU64;
use riw_abi::ring::{self, HEADER, LINE};

/// Octets of a word.
const WORD: usize = size_of::<AtomicU64>();

/// Memory that the kernel shares, as a header and entries. The memory is at least as long as the numbers
/// of entries and the stride say.
struct Ring<M> {
    memory: M,
    entries: u32,
    stride: u32,
}

impl<M: AsRef<[AtomicU64]>> Ring<M> {
    /// Returns `None` if the memory is too short, or the kernel does not keep to the rules: entries are
    /// a power of two, and at multiples of [`LINE`].
    fn new(memory: M, entries: u32, stride: u32) -> Option<Self> {
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
    fn header(&self, offset: usize) -> &AtomicU64 {
        // A ring has a header, so the second is never used.
        static NONE: AtomicU64 = AtomicU64::new(0);

        debug_assert!(offset < HEADER);
        self.memory.as_ref().get(offset / WORD).unwrap_or(&NONE)
    }

    /// Returns the words of an entry.
    fn entry(&self, number: u32) -> &[AtomicU64] {
        let begin = ring::offset(number, self.entries, self.stride) / WORD;
        let words = usize::try_from(self.stride).unwrap_or(0) / WORD;

        // It is in the memory: see `new()`.
        self.memory
            .as_ref()
            .get(begin..begin.saturating_add(words))
            .unwrap_or(&[])
    }
}
