// SPDX-License-Identifier: GPL-2.0

//! A queue of fixed size, which does not allocate in use.

use kernel::prelude::*;
use kernel_ext::memcg::MemCgroup;

#[cfg(CONFIG_KUNIT = "y")]
#[path = "../kunit/fifo.rs"]
mod kunit;

/// A FIFO. Entries are numbered from the first one pushed, modulo 2^32.
pub(crate) struct Fifo<T> {
    slots: KVVec<Option<T>>,
    /// The number of the oldest entry.
    head: u32,
    len: u32,
}

impl<T> Fifo<T> {
    /// Creates a queue of size 0. Any context.
    pub(crate) const fn empty() -> Self {
        Self {
            slots: KVVec::new(),
            head: 0,
            len: 0,
        }
    }

    /// Creates a queue as [`Self::charged_to`] does, charged to the calling process.
    pub(crate) fn new(size: u32) -> Result<Self> {
        Self::charged_to(&MemCgroup::none(), size)
    }

    /// Creates a queue for `size` entries, rounded up to a power of two. Process context; may
    /// sleep.
    ///
    /// Fails with `EINVAL` if the size is too large, `ENOMEM` without memory.
    pub(crate) fn charged_to(memcg: &MemCgroup, size: u32) -> Result<Self> {
        let size = size.checked_next_power_of_two().ok_or(EINVAL)?.try_into()?;
        let mut slots = memcg.vec(size)?;

        for _ in 0..size {
            slots.push_within_capacity(None)?;
        }
        Ok(Self {
            slots,
            head: 0,
            len: 0,
        })
    }

    /// Returns the number of entries. Any context.
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// Returns the number of entries that fit. Any context.
    pub(crate) fn size(&self) -> u32 {
        // CAST: `new` was called with a 32-bit size.
        self.slots.len() as u32
    }

    /// Whether the queue is empty. Any context.
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether the queue is full. Any context.
    pub(crate) fn is_full(&self) -> bool {
        // CAST: A 32-bit number fits.
        self.len as usize >= self.slots.len()
    }

    fn slot(&mut self, number: u32) -> Option<&mut Option<T>> {
        // CAST: A 32-bit number fits.
        let mask = self.slots.len().wrapping_sub(1);
        self.slots.get_mut(number as usize & mask)
    }

    /// Pushes an entry and returns its number, or returns the entry if the queue is full. Any
    /// context.
    pub(crate) fn push(&mut self, entry: T) -> Result<u32, T> {
        if self.is_full() {
            return Err(entry);
        }
        let number = self.head.wrapping_add(self.len);
        match self.slot(number) {
            Some(slot) => *slot = Some(entry),
            None => return Err(entry),
        }
        self.len = self.len.wrapping_add(1);
        Ok(number)
    }

    /// Returns the oldest entry. Any context.
    pub(crate) fn front(&mut self) -> Option<&mut T> {
        self.get(self.head)
    }

    /// Returns the number of the entry that is `at` entries behind the oldest. Any context.
    pub(crate) fn number(&self, at: u32) -> u32 {
        self.head.wrapping_add(at)
    }

    /// Returns entry `number`, if it is in the queue. Any context.
    pub(crate) fn get(&mut self, number: u32) -> Option<&mut T> {
        if number.wrapping_sub(self.head) >= self.len {
            return None;
        }
        self.slot(number)?.as_mut()
    }

    /// Takes the oldest entry out of its slot, which stays in use until [`Self::pop`]. Any context.
    pub(crate) fn lend(&mut self) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        self.slot(self.head)?.take()
    }

    /// Takes back the entry that [`Self::lend`] returned. Any context.
    pub(crate) fn put_back(&mut self, entry: T) {
        if let Some(slot @ None) = self.slot(self.head) {
            *slot = Some(entry);
        }
    }

    /// Keeps only the entries for which `keep` is true. Any context that `keep` allows.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        for _ in 0..self.len {
            if let Some(entry) = self.pop().filter(|entry| keep(entry)) {
                // It fits: `pop` has made room.
                let _ = self.push(entry);
            }
        }
    }

    /// Removes the oldest entry. Any context. Returns it, unless it is lent.
    pub(crate) fn pop(&mut self) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        let entry = self.slot(self.head)?.take();
        self.head = self.head.wrapping_add(1);
        self.len = self.len.wrapping_sub(1);
        entry
    }

    /// Removes all entries. Any context.
    pub(crate) fn clear(&mut self) {
        while !self.is_empty() {
            self.pop();
        }
    }
}
