// SPDX-License-Identifier: GPL-2.0

//! Marker positions (RFC 5044 §4.3). Sender and receiver count alike.

use crate::types::{count, low16, size};
use crate::wire::mpa::{MARKER_GAP as GAP, MARKER_LEN};

/// A position in a stream, relative to its markers and to the current FPDU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cadence {
    enabled: bool,
    /// Octets until the next marker.
    until: u32,
    /// Octets since the start of the FPDU, markers included; 0 between FPDUs.
    since: u32,
}

impl Cadence {
    /// Creates the position at the start of the stream. With markers, one is due at once.
    pub const fn new(enabled: bool) -> Self {
        Self {
            enabled,
            until: 0,
            since: 0,
        }
    }

    /// Returns whether the stream has markers.
    #[inline]
    pub const fn enabled(&self) -> bool {
        self.enabled
    }

    /// Returns the octets of the FPDU before the next marker; 0 if one is due now.
    #[inline]
    pub const fn room(&self) -> u32 {
        if self.enabled {
            self.until
        } else {
            u32::MAX
        }
    }

    /// Advances past `n` octets of the FPDU, at most [`Cadence::room`].
    #[inline]
    pub fn pass(&mut self, n: usize) {
        let n = count(n);
        self.until = self.until.saturating_sub(n);
        self.since = self.since.saturating_add(n);
    }

    /// Returns the FPDUPTR of the marker that is due now: octets since the start of the FPDU, or 0
    /// between FPDUs. Modulo 2^16, so a larger FPDU has wrong pointers.
    #[inline]
    pub const fn pointer(&self) -> u16 {
        low16(self.since)
    }

    /// Advances past a marker.
    #[inline]
    pub fn pass_marker(&mut self) {
        self.until = GAP;
        if self.since != 0 {
            self.since = self.since.saturating_add(count(MARKER_LEN));
        }
    }

    /// Ends the FPDU.
    #[inline]
    pub fn end_fpdu(&mut self) {
        self.since = 0;
    }

    // The receiver has a complete FPDU and computes positions in it. Below, `at` counts the octets
    // of the FPDU that begins here, without markers.

    /// Returns the number of markers before octet `at`.
    #[inline]
    fn markers_before(&self, at: usize) -> usize {
        // Few streams have markers: inline only this.
        if !self.enabled {
            return 0;
        }
        match at.checked_sub(size(self.until)) {
            Some(past) => past.div_euclid(size(GAP)).saturating_add(1),
            None => 0,
        }
    }

    /// Returns the position of octet `at` in the stream.
    #[inline]
    pub fn position(&self, at: usize) -> usize {
        at.saturating_add(self.markers_before(at).saturating_mul(MARKER_LEN))
    }

    /// Returns the end of the first `n` octets in the stream; `n` is not 0.
    #[inline]
    pub fn end(&self, n: usize) -> usize {
        self.position(n.saturating_sub(1)).saturating_add(1)
    }

    /// Returns the number of octets from `at` on that no marker interrupts.
    #[inline]
    pub fn run(&self, at: usize) -> usize {
        let until = size(self.until);
        match at.checked_sub(until) {
            _ if !self.enabled => usize::MAX,
            None => until.saturating_sub(at),
            Some(past) => size(GAP).saturating_sub(past.rem_euclid(size(GAP))),
        }
    }

    /// Yields the position and FPDUPTR of each marker in the first `octets` octets of the stream.
    pub fn markers(&self, octets: usize) -> impl Iterator<Item = (usize, u16)> {
        let start = self.position(0);
        let first = if self.enabled {
            size(self.until)
        } else {
            octets
        };
        (first..octets)
            .step_by(size(GAP).saturating_add(MARKER_LEN))
            // A marker in front of the FPDU has FPDUPTR 0.
            .map(move |at| (at, low16(count(at.saturating_sub(start)))))
    }

    /// Advances past an FPDU of `n` octets and its markers; `n` is not 0.
    pub fn pass_fpdu(&mut self, n: usize) {
        if self.enabled {
            let gaps = self
                .markers_before(n.saturating_sub(1))
                .saturating_mul(size(GAP));
            self.until = count(size(self.until).saturating_add(gaps).saturating_sub(n));
        }
    }
}
