// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

//! Completion queues: this side consumes entries.

use super::memory::Ring;
use core::sync::atomic::{fence, AtomicU64, Ordering};
use riw_abi::cqe::Cqe;
use riw_abi::ring::{self, ARM, ARM_NEXT, ARM_SOLICITED, CONSUMER};
use riw_abi::udata::RingMap;

/// A ring of completions. Threads that poll exclude each other.
pub(crate) struct Completions<M> {
    ring: Ring<M>,
    /// The count of entries taken.
    pub(super) taken: u32,
    /// The count that the kernel knows of.
    pub(super) released: u32,
}

impl<M: AsRef<[AtomicU64]>> Completions<M> {
    /// Returns `None` if the memory does not have the layout that the kernel has reported.
    pub(crate) fn new(memory: M, map: &RingMap) -> Option<Self> {
        let fits = usize::try_from(map.stride).is_ok_and(|stride| stride >= Cqe::STRIDE);

        fits.then_some(Self {
            ring: Ring::new(memory, map.entries, map.stride)?,
            taken: 0,
            released: 0,
        })
    }

    /// Takes the next completion, if there is one. Its entry is the kernel's again after
    /// [`Completions::release`].
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Cqe> {
        let entry: &[AtomicU64; Cqe::WORDS] = self.ring.entry(self.taken).first_chunk()?;
        let [_, control, ..] = entry;
        const { assert!(Cqe::CONTROL == 1) };
        // Acquire: the kernel stores this word last (selftests/litmus/cq_arm.litmus).
        let control = control.load(Ordering::Acquire);

        if !Cqe::is_new(control, self.taken, self.ring.entries) {
            return None;
        }
        let mut words = [0; Cqe::WORDS];
        for (to, word) in words.iter_mut().zip(entry) {
            *to = word.load(Ordering::Relaxed);
        }
        // The copy of the control word that was checked.
        let [_, at, ..] = &mut words;
        *at = control;
        self.taken = self.taken.wrapping_add(1);
        Some(Cqe::from_words(words))
    }

    /// Gives the entries of all taken completions back to the kernel.
    #[inline]
    pub(crate) fn release(&mut self) {
        if self.released != self.taken {
            self.released = self.taken;
            // Release: this side has read the entries before the kernel writes them again
            // (selftests/litmus/ring_reuse.litmus).
            self.ring
                .header(CONSUMER)
                .store(ring::word(self.taken), Ordering::Release);
        }
    }
}

/// The word of a ring of completions that arms it. Threads that arm exclude neither each other nor
/// threads that poll.
pub(crate) struct Arming<M> {
    ring: Ring<M>,
}

impl<M: AsRef<[AtomicU64]>> Arming<M> {
    /// Returns `None` if the memory does not have the layout that the kernel has reported.
    pub(crate) fn new(memory: M, map: &RingMap) -> Option<Self> {
        Some(Self {
            ring: Ring::new(memory, map.entries, map.stride)?,
        })
    }

    /// Arms the queue for an event. The consumer polls once more before it waits.
    pub(crate) fn arm(&self, solicited_only: bool) {
        let bit = if solicited_only {
            ARM_SOLICITED
        } else {
            ARM_NEXT
        };

        self.ring.header(ARM).fetch_or(bit, Ordering::Relaxed);
        // The bit before the loads of the next poll: the kernel stores a completion and then looks
        // at the bit (selftests/litmus/cq_arm.litmus).
        fence(Ordering::SeqCst);
    }
}
