// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

//! Send queues, receive queues and SRQs: this side produces entries.

use super::memory::{Ring, WORD};
use core::sync::atomic::{fence, AtomicU64, Ordering};
use riw_abi::ring::{self, CONSUMER, PRODUCER, WAKE_AT};
use riw_abi::udata::RingMap;

/// The kernel has taken too few entries.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// A ring of WRs. Threads that post exclude each other.
///
/// An entry is added by [`Posts::begin`] and [`Posts::write`]. The kernel gets all added entries by
/// [`Posts::publish`].
pub(crate) struct Posts<M> {
    ring: Ring<M>,
    /// The count of entries that the kernel has got.
    pub(super) published: u32,
    /// The count of entries added.
    pub(super) added: u32,
    /// A value of the kernel's count.
    pub(super) taken: u32,
}

impl<M: AsRef<[AtomicU64]>> Posts<M> {
    /// Returns `None` if the memory does not have the layout that the kernel has reported.
    pub(crate) fn new(memory: M, map: &RingMap) -> Option<Self> {
        Some(Self {
            ring: Ring::new(memory, map.entries, map.stride)?,
            published: 0,
            added: 0,
            taken: 0,
        })
    }

    /// Returns the distance of entries in octets.
    pub(crate) fn stride(&self) -> usize {
        usize::try_from(self.ring.stride).unwrap_or(0)
    }

    /// Begins the next entry. Its words still are the words of an old entry: overwrite them.
    /// Errors: `Full`.
    #[inline]
    pub(crate) fn begin(&mut self) -> Result<(), Full> {
        if ring::room(self.added, self.taken, self.ring.entries) == 0 {
            // Acquire: the kernel has read an entry before it passes it
            // (selftests/litmus/ring_reuse.litmus).
            self.taken = ring::count(self.ring.header(CONSUMER).load(Ordering::Acquire));
            if ring::room(self.added, self.taken, self.ring.entries) == 0 {
                return Err(Full);
            }
        }
        self.added = self.added.wrapping_add(1);
        Ok(())
    }

    /// Writes words to the entry that has begun last, from an offset in octets. Words beyond the
    /// entry are left out.
    #[inline]
    pub(crate) fn write(&self, offset: usize, words: impl IntoIterator<Item = u64>) {
        let entry = self.ring.entry(self.added.wrapping_sub(1));

        for (to, word) in entry.iter().skip(offset / WORD).zip(words) {
            // Relaxed: `publish()` orders it.
            to.store(word, Ordering::Relaxed);
        }
    }

    /// Gives all added entries to the kernel. Returns whether the doorbell must ring.
    #[inline]
    pub(crate) fn publish(&mut self) -> bool {
        let old = self.published;

        if self.added == old {
            return false;
        }
        self.published = self.added;
        // Release: the entries before their count.
        self.ring
            .header(PRODUCER)
            .store(ring::word(self.added), Ordering::Release);
        // The count before the load: the kernel stores the latter and then looks at the count once
        // more (selftests/litmus/doorbell.litmus).
        fence(Ordering::SeqCst);
        let wake_at = ring::count(self.ring.header(WAKE_AT).load(Ordering::Relaxed));
        ring::must_ring(old, self.added, wake_at)
    }

    /// Withdraws the entries that were added since the last [`Posts::publish`].
    pub(crate) fn withdraw(&mut self) {
        self.added = self.published;
    }

    /// Withdraws the entry that has begun last, if it is not published.
    pub(crate) fn withdraw_last(&mut self) {
        if self.added != self.published {
            self.added = self.added.wrapping_sub(1);
        }
    }
}
