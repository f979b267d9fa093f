// SPDX-License-Identifier: GPL-2.0

//! A queue of fixed size.

// A counter overflow in a test should panic.
#![allow(clippy::arithmetic_side_effects)]

use super::Fifo;
use kernel::prelude::*;

/// Returns a queue of size 4 with `entries`, whose slots have all been used before.
fn queue(entries: &[u32]) -> Result<Fifo<u32>> {
    let mut queue = Fifo::new(3)?;

    for round in 0..6 {
        queue.push(round).map_err(|_| ENOSPC)?;
        queue.pop();
    }
    for entry in entries {
        queue.push(*entry).map_err(|_| ENOSPC)?;
    }
    Ok(queue)
}

#[kunit_tests(riw_fifo)]
mod tests {
    use super::*;

    /// The size is rounded up to a power of two; a full queue returns the entry.
    #[test]
    fn a_full_queue_refuses_entries() -> Result {
        let mut queue = queue(&[1, 2, 3, 4])?;

        assert_eq!(queue.size(), 4);
        assert!(queue.is_full());
        assert_eq!(queue.push(5), Err(5));
        assert_eq!(queue.pop(), Some(1));
        assert!(queue.push(5).is_ok());
        assert_eq!(queue.len(), 4);
        Ok(())
    }

    /// A lent entry keeps its slot: it can be put back, and no other entry gets its place.
    #[test]
    fn a_lent_entry_keeps_its_slot() -> Result {
        let mut queue = queue(&[1, 2, 3, 4])?;

        assert_eq!(queue.lend(), Some(1));
        assert_eq!(queue.lend(), None);
        assert_eq!(queue.push(5), Err(5));
        assert_eq!(queue.len(), 4);
        queue.put_back(1);
        assert_eq!(queue.lend(), Some(1));
        assert_eq!(queue.pop(), None);
        assert_eq!(queue.len(), 3);
        assert_eq!(queue.pop(), Some(2));
        Ok(())
    }

    /// The entries that are kept stay in order.
    #[test]
    fn retain_keeps_the_order() -> Result {
        let mut queue = queue(&[1, 2, 3, 4])?;

        queue.retain(|entry| entry % 2 == 0);
        assert_eq!(queue.len(), 2);
        assert_eq!(queue.pop(), Some(2));
        assert_eq!(queue.pop(), Some(4));
        assert_eq!(queue.pop(), None);
        Ok(())
    }

    /// Entries are found by number until they are removed.
    #[test]
    fn entries_have_numbers() -> Result {
        let mut queue = queue(&[])?;
        let number = queue.push(7).map_err(|_| ENOSPC)?;

        assert_eq!(queue.get(number).copied(), Some(7));
        assert!(queue.get(number.wrapping_add(1)).is_none());
        queue.clear();
        assert!(queue.get(number).is_none());
        assert!(queue.is_empty());
        Ok(())
    }
}
