// SPDX-License-Identifier: GPL-2.0

//! The store of the chunks that are ahead of a missing one.

use kernel::prelude::*;
use kernel_ext::memcg::MemCgroup;
use net::RecvBuf;

/// Slots of a store that holds its first chunk.
const SLOTS_MIN: usize = 16;
/// Bytes that the store needs for a chunk besides its buffer, about.
const SLOT_COST: u32 = 256;

/// A chunk that is ahead of a missing one.
pub(super) struct Held {
    /// Its DDP-SSN.
    pub(super) number: u16,
    pub(super) ppid: u32,
    /// The first [`HEAD_LEN`](iwarp::sctp::HEAD_LEN) bytes if the payload has been placed;
    /// otherwise all.
    pub(super) bytes: RecvBuf,
    /// The length of the chunk in bytes.
    pub(super) len: usize,
}

impl Held {
    /// Returns the bytes that count against the limit.
    pub(super) fn cost(&self) -> u32 {
        cost(self.bytes.len())
    }
}

/// Returns the bytes that a chunk of `len` bytes counts against the limit: a buffer of the kernel
/// has a power of two of bytes.
pub(super) fn cost(len: usize) -> u32 {
    len.checked_next_power_of_two()
        .and_then(|size| u32::try_from(size).ok())
        .unwrap_or(u32::MAX)
        .saturating_add(SLOT_COST)
}

/// Held chunks, by DDP-SSN.
///
/// A ring: the slot of a chunk is its DDP-SSN modulo the number of slots, a power of two. That
/// number grows with the distance of the farthest chunk, so no two chunks have the same slot. It is
/// at most the number of chunks that an [`iwarp::sctp::Window`] can hold.
pub(super) struct HeldChunks {
    slots: KVVec<Option<Held>>,
    count: usize,
}

impl HeldChunks {
    /// Creates an empty store, without memory. Any context.
    pub(super) const fn new() -> Self {
        Self {
            slots: KVVec::new(),
            count: 0,
        }
    }

    /// Adds a chunk. `next` is the DDP-SSN of the missing chunk: all held ones are ahead of it.
    /// Charges the slots to `memcg`. May sleep. `ENOMEM` without memory; then nothing has changed.
    pub(super) fn insert(&mut self, next: u16, held: Held, memcg: &MemCgroup) -> Result {
        let ahead = usize::from(held.number.wrapping_sub(next));

        if ahead >= self.slots.len() {
            self.grow(ahead, memcg)?;
        }
        let slot = self.slot(held.number).ok_or(ENOMEM)?;

        *slot = Some(held);
        self.count = self.count.saturating_add(1);
        Ok(())
    }

    /// Takes a chunk out. Frees the slots after the last one. May sleep.
    pub(super) fn remove(&mut self, number: u16) -> Option<Held> {
        let held = self.slot(number)?.take()?;

        self.count = self.count.saturating_sub(1);
        if self.count == 0 {
            self.slots = KVVec::new();
        }
        Some(held)
    }

    /// Returns the slot of a DDP-SSN; `None` without slots.
    fn slot(&mut self, number: u16) -> Option<&mut Option<Held>> {
        let mask = self.slots.len().checked_sub(1)?;

        self.slots.get_mut(usize::from(number) & mask)
    }

    /// Makes slots for a chunk that is `ahead` of the missing one. May sleep. `ENOMEM` without
    /// memory.
    fn grow(&mut self, ahead: usize, memcg: &MemCgroup) -> Result {
        let slots = ahead
            .saturating_add(1)
            .checked_next_power_of_two()
            .ok_or(ENOMEM)?
            .max(SLOTS_MIN);
        let mut larger = memcg.vec(slots)?;

        for _ in 0..slots {
            larger.push_within_capacity(None)?;
        }
        let smaller = core::mem::replace(&mut self.slots, larger);

        for held in smaller.into_iter().flatten() {
            if let Some(slot) = self.slot(held.number) {
                *slot = Some(held);
            }
        }
        Ok(())
    }
}

#[cfg(CONFIG_KUNIT = "y")]
#[path = "../../kunit/held.rs"]
mod kunit;
