// SPDX-License-Identifier: GPL-2.0

//! How much one run receives, and one work item. Without a limit a peer could have 10^5 FPDUs
//! received at once, in a softirq with the socket locked: it leaves out a segment until the receive
//! buffer is full, or sends a message that waits for a receive WR. Over TLS, it could have 6,000
//! received with bottom halves off.

#[cfg(CONFIG_KUNIT = "y")]
#[path = "../kunit/budget.rs"]
mod kunit;

/// The cost of an FPDU besides its octets, for its headers, its look-ups and a completion: an
/// estimate, in octets that would be copied and summed in that time.
const FPDU_COST: usize = 512;
/// The cost of a run, after which a worker receives the rest: 8 FPDUs of 64 KiB, 266 of 1460 bytes,
/// or 986 of 20 bytes, the shortest. It must not be less than what TCP usually calls back for, 64
/// KiB of octets (`gro_max_size`), since a worker in place of the softirq slows a stream down. All
/// of them fit in one run unless messages are shorter than 64 bytes.
const RUN_COST: usize = 512 * 1024;

/// Milliseconds that a work item reads octets of a connection before others run. A read of TLS may
/// take thousands of records that have no octets, so neither octets nor reads bound that time.
pub(super) const READ_TIME: i64 = 1;

/// The budget that is left for a receive run.
pub(super) struct RunBudget(usize);

impl RunBudget {
    /// The budget of a run that begins.
    #[inline]
    pub(super) const fn new() -> Self {
        Self(RUN_COST)
    }

    /// Takes the cost of an FPDU that has been consumed.
    #[inline]
    pub(super) fn take(&mut self, octets: usize) {
        self.0 = self.0.saturating_sub(octets.saturating_add(FPDU_COST));
    }

    /// Whether the run must end.
    #[inline]
    pub(super) fn is_spent(&self) -> bool {
        self.0 == 0
    }
}
