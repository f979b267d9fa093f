// SPDX-License-Identifier: GPL-2.0

//! Rings of requests and completions, shared with user space.

use crate::{abi, Riw};
use kernel::{
    prelude::*,
    sync::{
        atomic::{ordering, Atomic},
        Arc,
    },
};
use rdma::{
    shared::SharedMem,
    ucontext::{Mapping, Ucontext},
};

#[cfg(CONFIG_KUNIT = "y")]
#[path = "../kunit/ring.rs"]
mod kunit;

/// A ring of entries of `W` words. Which entry is next is its user's business.
///
/// The second word of an entry holds the flag [`abi::VALID`], which its producer sets last and its
/// consumer clears. User space can write anything at any time: an entry is copied before it is
/// looked at, and no more is inferred from it than its contents.
pub(crate) struct Ring<const W: usize> {
    mem: Arc<SharedMem>,
    /// Entries, a power of two.
    len: u32,
    /// Words behind the last entry.
    extra: usize,
    mapping: Option<Mapping<Riw>>,
}

impl<const W: usize> Ring<W> {
    /// A ring of at least `len` entries with `extra` words behind them, empty. May sleep.
    pub(crate) fn new(len: u32, extra: usize) -> Result<Self> {
        let len = len.checked_next_power_of_two().ok_or(EINVAL)?;
        let words = usize::try_from(len)?.checked_mul(W).ok_or(EINVAL)?;
        let mem = SharedMem::new(words.checked_add(extra).ok_or(EINVAL)?)?;

        Ok(Self {
            mem: Arc::new(mem, GFP_KERNEL)?,
            len,
            extra,
            mapping: None,
        })
    }

    /// Offers the ring to a process for mapping, and returns the offset to map. May sleep.
    pub(crate) fn offer(&mut self, to: &Ucontext<Riw>) -> Result<u64> {
        let mapping = to.offer(&self.mem, abi::INVALID_KEY)?;
        let key = mapping.key();

        self.mapping = Some(mapping);
        Ok(key)
    }

    /// Entries.
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// Where entry `index` begins, in words.
    fn at(&self, index: u32) -> usize {
        // No overflow and in bounds, as checked when the ring was made.
        // CAST: A 32-bit number fits.
        ((index & self.len.wrapping_sub(1)) as usize).wrapping_mul(W)
    }

    /// The second word of entry `index`.
    fn control(&self, index: u32) -> Option<&Atomic<u64>> {
        self.mem.words().get(self.at(index).wrapping_add(1))
    }

    /// One of the words behind the entries.
    pub(crate) fn extra(&self, index: usize) -> Option<&Atomic<u64>> {
        // CAST: A 32-bit number fits.
        let end = (self.len as usize).wrapping_mul(W);
        self.mem
            .words()
            .get(end..end.wrapping_add(self.extra))?
            .get(index)
    }

    /// Whether entry `index` is marked valid.
    pub(crate) fn is_valid(&self, index: u32) -> bool {
        self.control(index)
            .is_some_and(|word| abi::flags(word.load(ordering::Acquire)) & abi::VALID != 0)
    }

    /// A copy of entry `index`, if it is marked valid.
    pub(crate) fn copy(&self, index: u32) -> Option<[u64; W]> {
        // What was written before the flag is read after it.
        let control = self.control(index)?.load(ordering::Acquire);
        if abi::flags(control) & abi::VALID == 0 {
            return None;
        }

        let mut copy = [0; W];
        self.mem.load(self.at(index), &mut copy)?;
        // The control word is used as it was when the flag was seen in it.
        *copy.get_mut(1)? = control;
        Some(copy)
    }

    /// Gives entry `index` back to its producer.
    pub(crate) fn release(&self, index: u32) {
        if let Some(control) = self.control(index) {
            control.store(0, ordering::Release);
        }
    }

    /// Writes entry `index`, whose second word has the flag, and which is seen last.
    pub(crate) fn publish(&self, index: u32, words: &[u64; W]) {
        let at = self.at(index);
        let [first, flagged, rest @ ..] = words.as_slice() else {
            return;
        };

        // An entry of the ring is there, as is its control word.
        let _ = self.mem.store(at, &[*first]);
        let _ = self.mem.store(at.wrapping_add(2), rest);
        if let Some(control) = self.control(index) {
            control.store(*flagged, ordering::Release);
        }
    }
}
