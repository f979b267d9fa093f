// SPDX-License-Identifier: GPL-2.0

//! Rings whose other side is a process on another CPU: an honest process, and a hostile one that
//! writes any word at any time.

// A counter overflow in a test should panic.
#![allow(clippy::arithmetic_side_effects)]

use super::Ring;
use crate::abi::siw;
use kernel::{
    prelude::*,
    sync::{atomic::ordering, Arc},
};
use kernel_ext::kunit::{wait_until, yield_cpu, Workers};

const WORDS: usize = siw::RQE_WORDS;

/// A control word with the flag [`VALID`](siw::VALID).
fn control(number: u32) -> u64 {
    let [a, b] = siw::VALID.to_ne_bytes();
    let [e, f, g, h] = number.to_ne_bytes();

    u64::from_ne_bytes([a, b, 0, 0, e, f, g, h])
}

/// WrEntry `number` of an honest process.
fn entry(number: u32) -> [u64; WORDS] {
    let mut words = [0; WORDS];

    for (word, at) in words.iter_mut().zip(0u64..) {
        *word = u64::from(number) << 8 | at;
    }
    let [_, word, ..] = &mut words;

    *word = control(number);
    words
}

impl<const W: usize> Ring<W> {
    /// Returns a copy of entry `index`, if it is marked valid, with the checked control word.
    pub(crate) fn copy(&self, index: u32) -> Option<[u64; W]> {
        let (entry, control) = self.valid_entry(index)?;
        let mut words = [0; W];

        entry.load(0, &mut words)?;
        *words.get_mut(1)? = control;
        Some(words)
    }
}

#[kunit_tests(riw_ring)]
mod tests {
    use super::*;

    /// Small, so that slots are reused at once.
    const LEN: u32 = 4;
    const ENTRIES: u32 = 100_000;
    const COPIES: u32 = 1_000_000;
    /// Copies before the thread yields.
    const AT_ONCE: u32 = 1000;

    /// `run` counts the entries up to the first one of the other kind, from any entry on, around
    /// the end of the ring, and for a ring that is full or empty.
    #[test]
    fn a_run_ends_at_the_boundary() -> Result {
        let ring = Ring::<WORDS>::new(8, 0)?;

        for first in 0..16 {
            for used in 0..=8 {
                for number in first..first + used {
                    ring.publish(number, &entry(number));
                }
                assert_eq!(ring.run(first, true), used);
                // Behind them are the free entries.
                assert_eq!(ring.run(first + used, false), 8 - used);
                for number in first..first + used {
                    ring.release(number);
                }
            }
        }
        Ok(())
    }

    /// A copy contains all words that were written before the flag.
    #[test]
    fn a_copy_is_a_whole_entry() -> Result {
        let ring = Arc::new(Ring::<WORDS>::new(LEN, 0)?, GFP_KERNEL)?;
        let workers = Workers::new(1)?;
        let mut torn = 0u32;
        let mut came = 0;

        let process = ring.clone();
        workers.add(move || {
            for number in 0..ENTRIES {
                if !wait_until(|| !process.is_valid(number)) {
                    return;
                }
                process.publish(number, &entry(number));
            }
        })?;
        for number in 0..ENTRIES {
            let mut copy = None;
            if !wait_until(|| {
                copy = ring.copy(number);
                copy.is_some()
            }) {
                break;
            }
            ring.release(number);
            came += 1;
            torn += u32::from(copy != Some(entry(number)));
        }
        drop(workers);
        assert_eq!(came, ENTRIES);
        assert_eq!(torn, 0);
        Ok(())
    }

    /// The control word of a copy is the checked one, whatever the process writes meanwhile.
    #[test]
    fn the_control_word_is_read_once() -> Result {
        let valid = control(7);

        let ring = Arc::new(Ring::<WORDS>::new(1, 0)?, GFP_KERNEL)?;
        let workers = Workers::new(1)?;
        let mut copies = 0u32;
        let mut wrong = 0u32;

        let process = ring.clone();
        let mut step = 0;
        workers.add_loop(move || {
            // In turns of three: on a single CPU, the ring has either word when the process yields.
            step = (step + 1) % 3;
            if let Some(control) = process.control(0) {
                let word = if step == 0 { !valid } else { valid };

                control.store(word, ordering::Relaxed);
            }
        })?;
        // Wait until the process has started.
        let began = wait_until(|| ring.is_valid(0));
        for _ in 0..COPIES / AT_ONCE {
            for _ in 0..AT_ONCE {
                if let Some([_, control, ..]) = ring.copy(0) {
                    copies += 1;
                    wrong += u32::from(control != valid);
                }
            }
            yield_cpu();
        }
        drop(workers);
        assert!(began);
        // Both outcomes occurred; otherwise the test has tested nothing.
        assert!(copies > 0 && copies < COPIES);
        assert_eq!(wrong, 0);
        Ok(())
    }

    /// Every entry number maps into the ring, and none beyond it.
    #[test]
    fn entries_stay_within_the_ring() -> Result {
        let ring = Ring::<WORDS>::new(5, 1)?;
        let extra = ring.extra(0).map(core::ptr::from_ref);

        assert_eq!(ring.len(), 8);
        for number in [0, 7, 8, u32::MAX] {
            let words = ring
                .mem
                .words()
                .get(ring.at(number)..)
                .and_then(|rest| rest.get(..WORDS))
                .map(<[_]>::as_ptr_range);
            assert!(words.is_some());
            assert!(words.map(|words| words.end) <= extra);
        }
        assert!(extra.is_some());
        assert!(ring.extra(1).is_none());
        assert!(Ring::<WORDS>::new(u32::MAX, 0).is_err());
        assert!(Ring::<WORDS>::new(1, usize::MAX).is_err());
        Ok(())
    }
}
