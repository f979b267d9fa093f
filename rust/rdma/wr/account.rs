// SPDX-License-Identifier: GPL-2.0

//! Which WRs of a queue the driver has.

use kernel::prelude::*;

#[cfg(CONFIG_KUNIT = "y")]
#[path = "../kunit/account.rs"]
mod kunit;

/// No place.
const NONE: u32 = u32::MAX;

/// The WRs of a queue that the driver has.
///
/// A WR is before another one if it entered earlier and the same call posted both, or if its call
/// had returned when the other call began: calls that overlap may be executed in either order. So
/// each WR has the times of its call, by a clock that counts begins and ends of calls.
pub(super) struct Account {
    /// A place for each WR. Those in use are linked in the order of their entry, the others from
    /// `free` on.
    places: KVVec<Place>,
    oldest: u32,
    newest: u32,
    free: u32,
    clock: u64,
}

/// A place for a WR.
struct Place {
    /// Counts the WRs that have had it.
    uses: u32,
    older: u32,
    newer: u32,
    call: Call,
    /// When its call has returned; [`PENDING`] if it has not, [`COMPLETED`] if it has not, but the
    /// consumer has the completion.
    returned: u64,
}

/// Times that are still to come.
const PENDING: u64 = u64::MAX;
const COMPLETED: u64 = u64::MAX - 1;

/// A call that posts WRs: when it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call(u64);

/// A WR that has entered an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) place: u32,
    uses: u32,
}

impl Account {
    /// Opens an account for `size` WRs. Process context; may sleep. Fails with `ENOMEM` without
    /// memory.
    pub(super) fn new(size: u32) -> Result<Self> {
        let mut places = KVVec::with_capacity(size.try_into()?, GFP_KERNEL_ACCOUNT)?;

        for newer in 1..=size {
            places.push_within_capacity(Place {
                uses: 0,
                older: NONE,
                newer: if newer == size { NONE } else { newer },
                call: Call(0),
                returned: PENDING,
            })?;
        }
        Ok(Self {
            places,
            oldest: NONE,
            newest: NONE,
            free: if size == 0 { NONE } else { 0 },
            clock: 0,
        })
    }

    fn place(&mut self, at: u32) -> Option<&mut Place> {
        // CAST: A 32-bit number fits.
        self.places.get_mut(at as usize)
    }

    fn tick(&mut self) -> u64 {
        self.clock = self.clock.wrapping_add(1);
        self.clock
    }

    /// Begins a call that posts WRs.
    pub(super) fn begin(&mut self) -> Call {
        Call(self.tick())
    }

    /// Ends a call: WRs of calls that begin from now on come after its WRs.
    pub(super) fn end(&mut self, call: Call) {
        let (now, mut at) = (self.tick(), self.newest);

        // Calls that began earlier may have WRs behind those of this one, but no WR has entered
        // before its call began.
        while let Some(place) = self.place(at) {
            let (this, older) = (at, place.older);

            if place.call != call {
                if place.returned < call.0 {
                    break;
                }
            } else if place.returned == COMPLETED {
                self.leave(this);
            } else {
                place.returned = now;
            }
            at = older;
        }
    }

    /// Takes in a WR of a call. `None` if there is no place.
    pub(super) fn enter(&mut self, call: Call) -> Option<Entry> {
        let (at, newest) = (self.free, self.newest);
        let place = self.place(at)?;
        let entry = Entry {
            place: at,
            uses: place.uses,
        };

        (place.call, place.returned) = (call, PENDING);
        (place.older, self.free) = (newest, core::mem::replace(&mut place.newer, NONE));
        match self.place(newest) {
            Some(before) => before.newer = at,
            None => self.oldest = at,
        }
        self.newest = at;
        Some(entry)
    }

    /// Notes that the consumer gets the completion of the WR at a place, which goes. Until its call
    /// returns, it keeps the place: the call must not say that it was not posted.
    pub(super) fn complete(&mut self, at: u32) {
        match self.place(at) {
            Some(place) if place.returned == PENDING => place.returned = COMPLETED,
            _ => self.leave(at),
        }
    }

    /// Lets the WR at a place go.
    pub(super) fn leave(&mut self, at: u32) {
        let free = self.free;
        let Some(place) = self.place(at) else {
            return;
        };
        let (older, newer) = (place.older, core::mem::replace(&mut place.newer, free));

        place.uses = place.uses.wrapping_add(1);
        self.free = at;
        match self.place(older) {
            Some(before) => before.newer = newer,
            None => self.oldest = newer,
        }
        match self.place(newer) {
            Some(behind) => behind.older = older,
            None => self.newest = older,
        }
    }

    /// Whether no WR is here that was posted before the one at a place.
    pub(super) fn is_first(&self, at: u32) -> bool {
        let mut next = self.oldest;

        while next != at {
            // CAST: A 32-bit number fits.
            let (Some(place), Some(own)) =
                (self.places.get(next as usize), self.places.get(at as usize))
            else {
                return false;
            };
            let before = place.call == own.call || place.returned < own.call.0;

            if before && place.returned != COMPLETED {
                return false;
            }
            next = place.newer;
        }
        true
    }

    /// Whether a WR, whose call has not returned, has left without a completion.
    pub(super) fn has_left(&self, entry: Entry) -> bool {
        // CAST: A 32-bit number fits.
        (self.places.get(entry.place as usize)).is_none_or(|place| place.uses != entry.uses)
    }

    /// Closes the account, in which no WR is. Returns its memory.
    pub(super) fn close(&mut self) -> impl Sized {
        self.free = NONE;
        core::mem::take(&mut self.places)
    }

    /// Whether no WR is here.
    pub(super) fn is_empty(&self) -> bool {
        self.oldest == NONE
    }
}
