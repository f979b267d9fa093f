// SPDX-License-Identifier: GPL-2.0

//! Rings of riw's own ABI, shared with user space. [`riw_abi::ring`] describes them.

use super::entry::{WrEntry, WORD};
use crate::driver::Riw;
use kernel::{
    prelude::*,
    sync::{
        atomic::{ordering, Atomic},
        barrier, Arc,
    },
};
use rdma::{
    shared::SharedMem,
    ucontext::{Mapping, Ucontext},
};
use riw_abi::{
    ring::{self, CONSUMER, HEADER, PRODUCER, WAKE_AT},
    udata::RingMap,
};

#[cfg(CONFIG_KUNIT = "y")]
#[path = "../kunit/counted.rs"]
mod kunit;

/// A ring of entries with two counts. Its user knows its own count.
///
/// User space may write anything at any time: the count of the other side decides nothing but how
/// many entries there are, and an entry is copied before it is validated.
pub(crate) struct CountedRing {
    mem: Arc<SharedMem>,
    /// Size in entries, a power of two.
    len: u32,
    /// The distance of two entries, in octets: a multiple of a word.
    stride: u32,
    mapping: Option<Mapping<Riw>>,
}

impl CountedRing {
    /// Creates an empty ring of at least `len` entries, `stride` octets apart. Process context; may
    /// sleep.
    ///
    /// Fails with `EINVAL` if the ring is too large, `ENOMEM` without memory.
    pub(crate) fn new(len: u32, stride: usize) -> Result<Self> {
        let len = len.checked_next_power_of_two().ok_or(EINVAL)?;
        let stride = stride.try_into()?;
        let octets = ring::len(len, stride).ok_or(EINVAL)?;
        let mem = SharedMem::new(octets.div_ceil(WORD))?;

        Ok(Self {
            mem: Arc::new(mem, GFP_KERNEL_ACCOUNT)?,
            len,
            stride,
            mapping: None,
        })
    }

    /// Creates a receive ring: the process rings no doorbell until [`Self::wake_at`] is called.
    /// Fails as [`Self::new`] does.
    pub(crate) fn for_receives(len: u32, stride: usize) -> Result<Self> {
        let ring = Self::new(len, stride)?;

        ring.store(WAKE_AT, ring::WAKE_NEVER, ordering::Relaxed);
        Ok(ring)
    }

    /// Offers the ring to a process for mmap(). Process context; may sleep. Fails as
    /// [`Ucontext::offer`] does.
    pub(crate) fn offer(&mut self, to: &Ucontext<Riw>) -> Result<RingMap> {
        let mapping = to.offer(&self.mem, 0)?;
        let map = RingMap {
            offset: mapping.key(),
            // CAST: A size fits.
            bytes: self.mem.bytes() as u64,
            entries: self.len,
            stride: self.stride,
        };

        self.mapping = Some(mapping);
        Ok(map)
    }

    /// Returns the size in entries. Any context.
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// Returns the word at `offset` octets.
    fn word(&self, offset: usize) -> Option<&Atomic<u64>> {
        self.mem.words().get(offset / WORD)
    }

    /// Returns one of the words of the header. Any context.
    pub(super) fn header(&self, offset: usize) -> Option<&Atomic<u64>> {
        self.word(offset).filter(|_| offset < HEADER)
    }

    /// Stores a count to the header.
    fn store<O: ordering::ReleaseOrRelaxed>(&self, offset: usize, count: u32, ordering: O) {
        if let Some(word) = self.header(offset) {
            word.store(ring::word(count), ordering);
        }
    }

    /// Returns how many entries the process has posted, from entry `next` on. Any context. Entries
    /// that were written before the count are read after it (`selftests/litmus/doorbell.litmus`).
    pub(crate) fn posted(&self, next: u32) -> u32 {
        let producer = self
            .header(PRODUCER)
            .map_or(0, |word| ring::count(word.load(ordering::Acquire)));

        ring::posted(producer, next, self.len)
    }

    /// Returns entry `next`, if it is posted. Any context.
    pub(crate) fn posted_entry(&self, next: u32) -> Option<WrEntry<'_>> {
        (self.posted(next) != 0).then(|| self.entry(next))
    }

    /// Returns entry `number`. Any context.
    pub(super) fn entry(&self, number: u32) -> WrEntry<'_> {
        let first = ring::offset(number, self.len, self.stride) / WORD;

        // CAST: A 32-bit number fits.
        WrEntry::new(&self.mem, first, self.stride as usize / WORD)
    }

    /// Returns entry `number`, the oldest one that is posted, to the process. Any context.
    pub(crate) fn release(&self, number: u32) {
        // Release: this side has read the entry (selftests/litmus/ring_reuse.litmus).
        self.store(CONSUMER, number.wrapping_add(1), ordering::Release);
    }

    /// Requests the doorbell when entry `next` is posted. Any context. Returns whether it is posted
    /// already: the doorbell may not ring then.
    pub(crate) fn wake_at(&self, next: u32) -> bool {
        self.store(WAKE_AT, next, ordering::Relaxed);
        // Store before the check for the entry. Pairs with the barrier of the process, between its
        // store of the count and its load of this word. Ordering: selftests/litmus/doorbell.litmus.
        barrier::smp_mb(ordering::Full);
        self.posted(next) != 0
    }

    /// Returns the count of entries that the process has taken, and read before
    /// (`selftests/litmus/ring_reuse.litmus`). Any context.
    pub(super) fn consumer(&self) -> u32 {
        self.header(CONSUMER)
            .map_or(0, |word| ring::count(word.load(ordering::Acquire)))
    }
}
