// SPDX-License-Identifier: GPL-2.0

//! Rings of siw's ABI, shared with user space: of WRs, and of CQEs.

use super::entry::WrEntry;
use crate::{abi::siw, driver::Riw};
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

/// A ring of entries of `W` words. Its user counts the entries and knows which is next.
///
/// The second word of an entry holds the flag [`siw::VALID`]. The producer sets it last, the
/// consumer clears it. User space may write anything at any time: copy an entry before validating
/// it, and infer nothing from it but its contents.
pub(crate) struct Ring<const W: usize> {
    mem: Arc<SharedMem>,
    /// Size in entries, a power of two.
    len: u32,
    /// Number of words after the last entry.
    extra: usize,
    mapping: Option<Mapping<Riw>>,
}

impl<const W: usize> Ring<W> {
    /// Creates an empty ring of at least `len` entries, with `extra` words after them. Process
    /// context; may sleep.
    ///
    /// Fails with `EINVAL` if the ring is too large, `ENOMEM` without memory.
    pub(crate) fn new(len: u32, extra: usize) -> Result<Self> {
        let len = len.checked_next_power_of_two().ok_or(EINVAL)?;
        let words = usize::try_from(len)?.checked_mul(W).ok_or(EINVAL)?;
        let mem = SharedMem::new(words.checked_add(extra).ok_or(EINVAL)?)?;

        Ok(Self {
            mem: Arc::new(mem, GFP_KERNEL_ACCOUNT)?,
            len,
            extra,
            mapping: None,
        })
    }

    /// Offers the ring to a process for mmap(). Returns the offset in bytes. Process context; may
    /// sleep. Fails as [`Ucontext::offer`] does.
    pub(crate) fn offer(&mut self, to: &Ucontext<Riw>) -> Result<u64> {
        let mapping = to.offer(&self.mem, siw::INVALID_KEY)?;
        let key = mapping.key();

        self.mapping = Some(mapping);
        Ok(key)
    }

    /// Returns the size in entries. Any context.
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// Returns the offset of entry `index`, in words.
    fn at(&self, index: u32) -> usize {
        // `new` has checked that this does not overflow and is in bounds.
        // CAST: A 32-bit number fits.
        ((index & self.len.wrapping_sub(1)) as usize).wrapping_mul(W)
    }

    /// Returns the second word of entry `index`.
    fn control(&self, index: u32) -> Option<&Atomic<u64>> {
        self.mem.words().get(self.at(index).wrapping_add(1))
    }

    /// Returns one of the words after the entries. Any context.
    pub(crate) fn extra(&self, index: usize) -> Option<&Atomic<u64>> {
        // CAST: A 32-bit number fits.
        let end = (self.len as usize).wrapping_mul(W);
        self.mem
            .words()
            .get(end..end.wrapping_add(self.extra))?
            .get(index)
    }

    /// Whether entry `index` is marked valid. Any context.
    pub(crate) fn is_valid(&self, index: u32) -> bool {
        self.control(index)
            .is_some_and(|word| siw::flags(word.load(ordering::Acquire)) & siw::VALID != 0)
    }

    /// Returns how many entries, from entry `first` on, are marked valid, or not marked, before the
    /// first one for which that is not so. Any context.
    ///
    /// It halves the range instead of reading every entry, as a ring may have millions. The count
    /// is right if the ring has one such boundary, which is so unless user space marks entries out
    /// of order.
    pub(crate) fn run(&self, first: u32, valid: bool) -> u32 {
        let (mut low, mut high) = (0, self.len);

        while low < high {
            let middle = low.midpoint(high);

            if self.is_valid(first.wrapping_add(middle)) == valid {
                low = middle.wrapping_add(1);
            } else {
                high = middle;
            }
        }
        low
    }

    /// Returns entry `index` and its control word, if that marks it valid. Any context. User space
    /// may change the word: use the one that this returns.
    pub(crate) fn valid_entry(&self, index: u32) -> Option<(WrEntry<'_>, u64)> {
        // Acquire: words that were written before the flag are read after it.
        let control = self.control(index)?.load(ordering::Acquire);

        (siw::flags(control) & siw::VALID != 0)
            .then(|| (WrEntry::new(&self.mem, self.at(index), W), control))
    }

    /// Returns entry `index` to its producer. Any context.
    pub(crate) fn release(&self, index: u32) {
        if let Some(control) = self.control(index) {
            control.store(0, ordering::Release);
        }
    }

    /// Writes entry `index`. `words` must contain the flag, which becomes visible last. Any
    /// context.
    pub(crate) fn publish(&self, index: u32, words: &[u64; W]) {
        let at = self.at(index);
        let [first, flagged, rest @ ..] = words.as_slice() else {
            return;
        };

        // The stores cannot fail: the entry is in bounds.
        let _ = self.mem.store(at, &[*first]);
        let _ = self.mem.store(at.wrapping_add(2), rest);
        if let Some(control) = self.control(index) {
            control.store(*flagged, ordering::Release);
        }
    }
}
