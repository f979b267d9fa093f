// SPDX-License-Identifier: GPL-2.0

//! The order of messages and segments on one untagged queue (RFC 5041 §4.3, §5.2, §7.1).

use crate::error::DdpUntagged;

/// Tracks the next segment expected on a queue.
///
/// The lower layer keeps order, and a sender is expected to send the segments of a message by
/// increasing offset (RFC 5041 §5.3). So a segment must begin at the end of the one before it, and
/// a delivered message has no holes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Queue {
    msn: u32,
    mo: u32,
    open: bool,
}

impl Queue {
    /// Creates a queue that has received no message: the first MSN is 1.
    pub const fn new() -> Self {
        Self::starting_at(1)
    }

    /// Creates a queue whose next message has this MSN.
    pub const fn starting_at(msn: u32) -> Self {
        Self {
            msn,
            mo: 0,
            open: false,
        }
    }

    /// Returns whether a message is incomplete.
    pub const fn open(&self) -> bool {
        self.open
    }

    /// Checks a segment with `len` octets of payload.
    ///
    /// An empty segment that is not the last of its message is refused. The RFC does not require
    /// this, but such a segment carries nothing, and without it offset 0 always means the start of
    /// a message.
    ///
    /// # Errors
    ///
    /// Not the next MSN, not the next offset, or a message of more than 2^32-1 octets.
    pub const fn check(&self, msn: u32, mo: u32, len: u32, last: bool) -> Result<(), DdpUntagged> {
        if msn != self.msn {
            return Err(DdpUntagged::InvalidMsnRange);
        }
        if mo != self.mo || (len == 0 && !last) {
            return Err(DdpUntagged::InvalidMo);
        }
        if mo.checked_add(len).is_none() {
            return Err(DdpUntagged::TooLong);
        }
        Ok(())
    }

    /// Advances past a segment that [`Queue::check`] accepted.
    pub fn advance(&mut self, len: u32, last: bool) {
        if last {
            self.msn = self.msn.wrapping_add(1);
            self.mo = 0;
        } else {
            self.mo = self.mo.wrapping_add(len);
        }
        self.open = !last;
    }
}

impl Default for Queue {
    fn default() -> Self {
        Self::new()
    }
}
