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
    /// Counts the WRs that have entered.
    entered: u64,
    /// A WR that must invalidate is gone, and has not: no WR is complete any more.
    broken: bool,
}

/// A place for a WR.
struct Place {
    /// The number of the WR that has it, or has had it last.
    number: u64,
    older: u32,
    newer: u32,
    call: Call,
    effect: Effect,
    /// When its call has returned. If it has not: [`PENDING`]; [`COMPLETED`] if the WR is done, so
    /// that it was posted; [`ABANDONED`] if it is gone, and its call has to refuse it.
    returned: u64,
}

/// Times that are still to come.
const PENDING: u64 = u64::MAX;
const COMPLETED: u64 = u64::MAX - 1;
const ABANDONED: u64 = u64::MAX - 2;

/// A call that posts WRs: when it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call(u64);

/// An effect of a WR that the consumer relies on when the WR is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Nothing.
    None,
    /// The registration with this STag has ended.
    Ends(u32),
    /// Nothing more: the WR was executed, maybe without success.
    Done,
}

/// A WR that has entered an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) place: u32,
    /// Counts the WRs of the queue.
    pub(super) number: u64,
}

impl Account {
    /// Opens an account for `size` WRs. Process context; may sleep. Fails with `ENOMEM` without
    /// memory.
    pub(super) fn new(size: u32) -> Result<Self> {
        let mut places = KVVec::with_capacity(size.try_into()?, GFP_KERNEL_ACCOUNT)?;

        for newer in 1..=size {
            places.push_within_capacity(Place {
                number: 0,
                older: NONE,
                newer: if newer == size { NONE } else { newer },
                call: Call(0),
                effect: Effect::None,
                returned: PENDING,
            })?;
        }
        Ok(Self {
            places,
            oldest: NONE,
            newest: NONE,
            free: if size == 0 { NONE } else { 0 },
            clock: 0,
            entered: 0,
            broken: false,
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
            } else {
                match core::mem::replace(&mut place.returned, now) {
                    COMPLETED => self.leave(this),
                    ABANDONED => self.abandon(this),
                    _ => {}
                }
            }
            at = older;
        }
    }

    /// Takes in a WR of a call. `None` if there is no place.
    pub(super) fn enter(&mut self, call: Call, effect: Effect) -> Option<Entry> {
        let (at, newest, number) = (self.free, self.newest, self.entered);
        let place = self.place(at)?;

        (place.call, place.returned) = (call, PENDING);
        (place.effect, place.number) = (effect, number);
        (place.older, self.free) = (newest, core::mem::replace(&mut place.newer, NONE));
        match self.place(newest) {
            Some(before) => before.newer = at,
            None => self.oldest = at,
        }
        self.newest = at;
        self.entered = number.wrapping_add(1);
        Some(Entry { place: at, number })
    }

    /// Notes that the WR at a place is done, and goes. Until its call returns, it keeps the place:
    /// the call must not say that it was not posted.
    pub(super) fn complete(&mut self, at: u32) {
        match self.place(at) {
            Some(place) if place.returned == PENDING => place.returned = COMPLETED,
            _ => self.leave(at),
        }
    }

    /// Notes that the WR at a place goes, and has not invalidated what it must. Unless its call
    /// says that it was not posted, it counts as one that is never done.
    fn abandon(&mut self, at: u32) {
        match self.place(at) {
            Some(place) if place.returned == PENDING => place.returned = ABANDONED,
            _ => {
                self.break_off();
                self.leave(at);
            }
        }
    }

    /// Notes that a WR counts as posted, and will never be done: so no other one is complete.
    pub(super) fn break_off(&mut self) {
        self.broken = true;
    }

    /// Whether a WR will never be done.
    pub(super) fn is_broken(&self) -> bool {
        self.broken
    }

    /// Lets the WR at a place go.
    pub(super) fn leave(&mut self, at: u32) {
        let free = self.free;
        let Some(place) = self.place(at) else {
            return;
        };
        let (older, newer) = (place.older, core::mem::replace(&mut place.newer, free));

        // Of no WR: `entered` does not wrap.
        place.number = u64::MAX;
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

    /// Whether the WR at a place can be complete: it has invalidated what it must, and all WRs that
    /// were posted before are done.
    pub(super) fn is_first(&self, at: u32) -> bool {
        let mut next = self.oldest;

        if self.broken || matches!(self.effect(at), Effect::Ends(_)) {
            return false;
        }
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

    /// Returns the number of the WR at a place, in the order of posting.
    pub(super) fn number(&self, at: u32) -> u64 {
        // CAST: A 32-bit number fits.
        (self.places.get(at as usize)).map_or(u64::MAX, |place| place.number)
    }

    /// Returns the effect that the WR at a place has still to have.
    pub(super) fn effect(&self, at: u32) -> Effect {
        // CAST: A 32-bit number fits.
        (self.places.get(at as usize)).map_or(Effect::None, |place| place.effect)
    }

    /// Notes that the WR at a place was executed: it cannot count as not posted any more.
    pub(super) fn note_executed(&mut self, at: u32) {
        if let Some(place) = self.place(at) {
            place.effect = Effect::Done;
        }
    }

    /// Notes that the WR at a place goes, without a completion.
    pub(super) fn give_up(&mut self, at: u32) {
        match self.effect(at) {
            Effect::None => self.leave(at),
            Effect::Ends(_) => self.abandon(at),
            Effect::Done => self.complete(at),
        }
    }

    /// Whether the call of a WR, which has not returned, may say that it was not posted: it is
    /// gone, and was not completed. Lets it go if it was abandoned.
    pub(super) fn may_refuse(&mut self, entry: Entry) -> bool {
        match self.place(entry.place) {
            Some(place) if place.number == entry.number => {
                let abandoned = place.returned == ABANDONED;

                if abandoned {
                    self.leave(entry.place);
                }
                abandoned
            }
            _ => true,
        }
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
