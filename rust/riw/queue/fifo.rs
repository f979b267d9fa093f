// SPDX-License-Identifier: GPL-2.0

//! A queue of a fixed size, which needs no memory when it is used.

use kernel::prelude::*;

/// First in, first out. Entries are counted from the queue's beginning, modulo 2^32.
pub(crate) struct Fifo<T> {
    slots: KVVec<Option<T>>,
    /// The number of the oldest entry.
    head: u32,
    len: u32,
}

impl<T> Fifo<T> {
    /// Without room.
    pub(crate) const fn empty() -> Self {
        Self {
            slots: KVVec::new(),
            head: 0,
            len: 0,
        }
    }

    /// With room for `size` entries, rounded up to a power of two. May sleep.
    pub(crate) fn new(size: u32) -> Result<Self> {
        let size = size.checked_next_power_of_two().ok_or(EINVAL)?.try_into()?;
        let mut slots = KVVec::with_capacity(size, GFP_KERNEL_ACCOUNT)?;

        for _ in 0..size {
            slots.push(None, GFP_KERNEL_ACCOUNT)?;
        }
        Ok(Self {
            slots,
            head: 0,
            len: 0,
        })
    }

    /// How many entries there are.
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether there is room for none.
    pub(crate) fn is_full(&self) -> bool {
        // CAST: A 32-bit number fits.
        self.len as usize >= self.slots.len()
    }

    fn slot(&mut self, number: u32) -> Option<&mut Option<T>> {
        // CAST: A 32-bit number fits.
        let mask = self.slots.len().wrapping_sub(1);
        self.slots.get_mut(number as usize & mask)
    }

    /// Adds an entry and returns its number, or gives it back if there is no room.
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

    /// The oldest entry.
    pub(crate) fn front(&mut self) -> Option<&mut T> {
        self.get(self.head)
    }

    /// The number of the entry that is `at` behind the oldest.
    pub(crate) fn number(&self, at: u32) -> u32 {
        self.head.wrapping_add(at)
    }

    /// Entry `number`, if it is still there.
    pub(crate) fn get(&mut self, number: u32) -> Option<&mut T> {
        if number.wrapping_sub(self.head) >= self.len {
            return None;
        }
        self.slot(number)?.as_mut()
    }

    /// Takes the oldest entry out.
    pub(crate) fn pop(&mut self) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        let entry = self.slot(self.head)?.take();
        self.head = self.head.wrapping_add(1);
        self.len = self.len.wrapping_sub(1);
        entry
    }

    /// Takes all entries out.
    pub(crate) fn clear(&mut self) {
        while self.pop().is_some() {}
    }
}
