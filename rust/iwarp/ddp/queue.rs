// SPDX-License-Identifier: GPL-2.0

//! The order of messages and segments on one untagged queue (RFC 5041 §4.3, §5.2, §7.1).

use crate::error::DdpUntagged;

/// What the next segment of a queue must be.
///
/// The layer below is ordered, and a sender is expected to send the segments of a message by
/// increasing offset (RFC 5041 §5.3). So a segment must begin where the one before it ended: a
/// message that is delivered has no holes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Queue {
    msn: u32,
    mo: u32,
    open: bool,
}

impl Queue {
    /// A queue on which no message has come: the first MSN is 1.
    pub const fn new() -> Self {
        Self::starting_at(1)
    }

    /// A queue whose next message has this MSN.
    pub const fn starting_at(msn: u32) -> Self {
        Self {
            msn,
            mo: 0,
            open: false,
        }
    }

    /// Whether a message has begun and not ended.
    pub const fn open(&self) -> bool {
        self.open
    }

    /// Checks a segment with `len` octets of payload.
    ///
    /// An empty segment that is not its message's last is refused, though the RFC does not say
    /// so: it carries nothing, and without it offset 0 means the start of a message.
    ///
    /// # Errors
    ///
    /// The MSN is not the next, the offset is not the next, or the message passes 2^32-1 octets.
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

    /// Moves past a segment that [`Queue::check`] accepted.
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
