// SPDX-License-Identifier: GPL-2.0

//! Where markers are due (RFC 5044 §4.3). Sender and receiver count alike.

use crate::types::{count, low16, size};

/// Octets of a marker.
pub const MARKER_LEN: usize = 4;
/// Octets between two markers: they start every 512 octets.
const GAP: u32 = 508;

/// A position in a stream, relative to its markers and to the FPDU it is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cadence {
    enabled: bool,
    /// Octets until the next marker.
    until: u32,
    /// Octets since the start of the FPDU, markers in between included; 0 between FPDUs.
    since: u32,
}

impl Cadence {
    /// The start of the stream: a marker is due at once, if they are used at all.
    pub const fn new(enabled: bool) -> Self {
        Self {
            enabled,
            until: 0,
            since: 0,
        }
    }

    /// Octets of the FPDU that may pass before a marker is due; 0 when one is due now.
    #[inline]
    pub const fn room(&self) -> u32 {
        if self.enabled {
            self.until
        } else {
            u32::MAX
        }
    }

    /// `n` octets of the FPDU pass: at most [`Cadence::room`].
    #[inline]
    pub fn pass(&mut self, n: usize) {
        let n = count(n);
        self.until = self.until.saturating_sub(n);
        self.since = self.since.saturating_add(n);
    }

    /// The FPDUPTR of the marker that is due now: octets since the start of the FPDU, or 0
    /// between FPDUs. An FPDU of more than 2^16 octets cannot be pointed into; its pointers are
    /// taken modulo 2^16.
    #[inline]
    pub const fn pointer(&self) -> u16 {
        low16(self.since)
    }

    /// A marker passes.
    #[inline]
    pub fn pass_marker(&mut self) {
        self.until = GAP;
        if self.since != 0 {
            self.since = self.since.saturating_add(count(MARKER_LEN));
        }
    }

    /// The FPDU ends here.
    #[inline]
    pub fn end_fpdu(&mut self) {
        self.since = 0;
    }

    // The receiver has an FPDU whole, and finds its way in it by arithmetic. In what follows `at`
    // counts the octets of the FPDU that begins here, without markers.

    /// Markers before octet `at`.
    fn markers_before(&self, at: usize) -> usize {
        match at.checked_sub(size(self.until)) {
            Some(past) if self.enabled => past.div_euclid(size(GAP)).saturating_add(1),
            _ => 0,
        }
    }

    /// The place of octet `at` in the stream.
    #[inline]
    pub fn position(&self, at: usize) -> usize {
        at.saturating_add(self.markers_before(at).saturating_mul(MARKER_LEN))
    }

    /// Where the first `n` octets end in the stream; `n` is not 0.
    #[inline]
    pub fn end(&self, n: usize) -> usize {
        self.position(n.saturating_sub(1)).saturating_add(1)
    }

    /// Octets from `at` on that no marker interrupts.
    #[inline]
    pub fn run(&self, at: usize) -> usize {
        let until = size(self.until);
        match at.checked_sub(until) {
            _ if !self.enabled => usize::MAX,
            None => until.saturating_sub(at),
            Some(past) => size(GAP).saturating_sub(past.rem_euclid(size(GAP))),
        }
    }

    /// The markers in the first `octets` octets of the stream: where each is, and its FPDUPTR.
    pub fn markers(&self, octets: usize) -> impl Iterator<Item = (usize, u16)> {
        let start = self.position(0);
        let first = if self.enabled {
            size(self.until)
        } else {
            octets
        };
        (first..octets)
            .step_by(size(GAP).saturating_add(MARKER_LEN))
            // In front of the FPDU it is 0.
            .map(move |at| (at, low16(count(at.saturating_sub(start)))))
    }

    /// An FPDU of `n` octets, not 0, passes with its markers.
    pub fn pass_fpdu(&mut self, n: usize) {
        if self.enabled {
            let gaps = self
                .markers_before(n.saturating_sub(1))
                .saturating_mul(size(GAP));
            self.until = count(size(self.until).saturating_add(gaps).saturating_sub(n));
        }
    }
}
