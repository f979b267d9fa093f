// SPDX-License-Identifier: GPL-2.0

//! Where markers are due (RFC 5044 §4.3). Sender and receiver count alike.

use crate::types::{count, low16};

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
}
