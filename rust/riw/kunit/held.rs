// SPDX-License-Identifier: GPL-2.0

//! The store of chunks that are ahead of a missing one.

use super::{Held, HeldChunks, SLOTS_MIN};
use kernel::prelude::*;
use kernel_ext::memcg::MemCgroup;
use net::RecvBuf;

/// Adds a chunk with this DDP-SSN, whose bytes are the number. `next` is the missing one.
fn insert(held: &mut HeldChunks, next: u16, number: u16) -> Result {
    let memcg = MemCgroup::none();
    let bytes = RecvBuf::copy_of(&number.to_be_bytes(), &memcg)?;
    let len = bytes.len();

    let chunk = Held {
        number,
        ppid: 0,
        bytes,
        len,
    };
    held.insert(next, chunk, &memcg)
}

/// Whether the chunk with this DDP-SSN is there. Takes it out.
fn has(held: &mut HeldChunks, number: u16) -> bool {
    held.remove(number)
        .is_some_and(|chunk| chunk.number == number && chunk.bytes.bytes() == number.to_be_bytes())
}

#[kunit_tests(riw_held)]
mod tests {
    use super::*;

    /// The farthest chunk may arrive first or last.
    #[test]
    fn chunks_of_any_distance_are_held() -> Result {
        for numbers in [[1, 15, 16, 500, 8191], [8191, 500, 16, 15, 1]] {
            let mut held = HeldChunks::new();

            for number in numbers {
                insert(&mut held, 0, number)?;
            }
            for number in [1, 15, 16, 500, 8191] {
                assert!(has(&mut held, number));
                assert!(!has(&mut held, number));
            }
        }
        Ok(())
    }

    /// The DDP-SSN after 65535 is 0.
    #[test]
    fn numbers_wrap_around() -> Result {
        let mut held = HeldChunks::new();

        for number in [65535, 0, 40] {
            insert(&mut held, 65530, number)?;
        }
        assert!(has(&mut held, 65535));
        insert(&mut held, 65535, 300)?;
        for number in [0, 40, 300] {
            assert!(has(&mut held, number));
        }
        Ok(())
    }

    /// As many chunks as fit, of which the first is always taken, never meet in a slot.
    #[test]
    fn a_full_store_moves_on() -> Result {
        let mut held = HeldChunks::new();
        let ahead = u16::try_from(SLOTS_MIN)?.saturating_sub(1);

        for number in 1..ahead {
            insert(&mut held, 0, number)?;
        }
        for next in 1..100_u16 {
            insert(
                &mut held,
                next,
                next.saturating_add(ahead).saturating_sub(1),
            )?;
            assert!(has(&mut held, next));
        }
        assert_eq!(held.slots.len(), SLOTS_MIN);
        Ok(())
    }

    /// A store that is empty again has no memory.
    #[test]
    fn an_empty_store_has_no_slots() -> Result {
        let mut held = HeldChunks::new();

        insert(&mut held, 0, 2)?;
        assert!(!has(&mut held, 3));
        assert!(!held.slots.is_empty());
        assert!(has(&mut held, 2));
        assert!(held.slots.is_empty());
        Ok(())
    }
}
