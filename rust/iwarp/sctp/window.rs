// SPDX-License-Identifier: GPL-2.0

//! The order of received chunks (RFC 5043 §6.1, §10).

use crate::error::Sctp;

/// DDP-SSNs from this distance on are behind, not ahead: fewer than 32768 chunks are in flight (RFC
/// 5043 §10).
const AHEAD_MAX: u16 = 0x8000;

/// Judges the DDP-SSNs of a session's received chunks, and tracks which chunks are held until those
/// before them have come. The embedder keeps the held chunks, by DDP-SSN.
///
/// A chunk can be at most `WORDS` * 64 - 1 ahead of the next one. `WORDS` is a power of two up to
/// 512, which the compiler checks. 512 takes all that RFC 5043 allows. Less suffices if the
/// receiving SCTP bounds the disorder: Linux discards a chunk that is 4096 or more TSNs ahead.
///
/// ```
/// use iwarp::sctp::{Arrival, Window};
/// use iwarp::Sctp;
///
/// let mut window = Window::<1>::new(4096);
/// assert_eq!(window.arrive(0, 20), Ok(Arrival::Next));
/// // Chunk 1 is missing.
/// assert_eq!(window.arrive(2, 1000), Ok(Arrival::Held));
/// assert_eq!(window.due(), None);
/// assert_eq!(window.arrive(2, 1000), Err(Sctp::Duplicate));
///
/// assert_eq!(window.arrive(1, 1000), Ok(Arrival::Next));
/// assert_eq!(window.due(), Some(2));
/// window.take(1000);
/// assert_eq!(window.next(), 3);
/// ```
pub struct Window<const WORDS: usize> {
    /// The DDP-SSN of the next chunk.
    next: u16,
    /// Octets of the held chunks.
    octets: u32,
    /// Maximum of `octets`.
    budget: u32,
    /// Bit n, modulo the number of bits: the chunk with DDP-SSN n is held.
    held: [u64; WORDS],
}

/// A chunk that may be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// It is the next one: handle it now.
    Next,
    /// It is ahead: keep it until [`Window::due`] names it.
    Held,
}

impl<const WORDS: usize> Window<WORDS> {
    const BITS: usize = {
        assert!(WORDS.is_power_of_two() && WORDS <= 512);
        WORDS.saturating_mul(64)
    };

    /// Creates the window of a new session, in which the held chunks take at most `budget` octets.
    pub const fn new(budget: u32) -> Self {
        Self {
            next: 0,
            octets: 0,
            budget,
            held: [0; WORDS],
        }
    }

    /// Begins a new session, in which no chunks may be held yet.
    pub fn reset(&mut self) {
        self.next = 0;
        self.octets = 0;
        self.budget = 0;
        self.held.fill(0);
    }

    /// Sets the octets that the held chunks may take. Chunks that are held stay.
    ///
    /// A responder needs none until it has accepted: the initiator sends only one chunk before.
    pub fn set_budget(&mut self, budget: u32) {
        self.budget = budget;
    }

    /// Judges a chunk. `octets` is the memory that it takes if it is held. If the chunk is
    /// [`Arrival::Next`], the window moves past it.
    ///
    /// # Errors
    ///
    /// The chunk is a duplicate, too far ahead, or too much to hold. The session ends.
    pub fn arrive(&mut self, ssn: u16, octets: u32) -> Result<Arrival, Sctp> {
        let ahead = ssn.wrapping_sub(self.next);
        if ahead >= AHEAD_MAX {
            return Err(Sctp::Duplicate);
        }
        if usize::from(ahead) >= Self::BITS {
            return Err(Sctp::TooFar);
        }
        let (word, bit) = Self::place(ssn);
        let word = self.held.get_mut(word).ok_or(Sctp::TooFar)?;
        if *word & bit != 0 {
            return Err(Sctp::Duplicate);
        }
        if ahead == 0 {
            self.next = ssn.wrapping_add(1);
            return Ok(Arrival::Next);
        }
        let octets = self.octets.saturating_add(octets);
        if octets > self.budget {
            return Err(Sctp::TooManyHeld);
        }
        self.octets = octets;
        *word |= bit;
        Ok(Arrival::Held)
    }

    /// Returns the DDP-SSN of the next chunk. Held chunks are ahead of it, or due.
    pub fn next(&self) -> u16 {
        self.next
    }

    /// Returns the DDP-SSN of the held chunk that is next, if it is the next one's turn. The
    /// embedder takes it out of its store and calls [`Window::take`].
    pub fn due(&self) -> Option<u16> {
        let (word, bit) = Self::place(self.next);
        (self.held.get(word)? & bit != 0).then_some(self.next)
    }

    /// Moves past the held chunk that is due, which took `octets`. Does nothing if none is due.
    pub fn take(&mut self, octets: u32) {
        let (word, bit) = Self::place(self.next);
        match self.held.get_mut(word) {
            Some(word) if *word & bit != 0 => *word &= !bit,
            _ => return,
        }
        self.octets = self.octets.saturating_sub(octets);
        self.next = self.next.wrapping_add(1);
    }

    /// Gives back `octets` of the memory that a held chunk takes: part of it need not be kept any
    /// more.
    pub fn shrink(&mut self, octets: u32) {
        self.octets = self.octets.saturating_sub(octets);
    }

    /// Returns whether a chunk is held, so that one before it is missing or due.
    pub fn is_holding(&self) -> bool {
        self.held.iter().any(|word| *word != 0)
    }

    /// Returns the word and the bit of a DDP-SSN. The shift is modulo 64.
    fn place(ssn: u16) -> (usize, u64) {
        let at = usize::from(ssn) & Self::BITS.saturating_sub(1);
        (at >> 6, 1_u64.wrapping_shl(u32::from(ssn)))
    }
}
