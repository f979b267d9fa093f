// SPDX-License-Identifier: GPL-2.0

//! Coalescing: several small messages share one send.
//!
//! A process that streams small messages rings the doorbell for each message. A send for each
//! message is the largest part of its cost. So a message may wait for the next messages, until the
//! batch is large enough or a timer expires (`qp/push.rs`).
//!
//! Waiting must not delay other traffic:
//!
//! - Messages wait only if the process spends at least two thirds of its time in sends. A process
//!   that posts at its own pace has free time: its messages would only arrive later.
//! - Messages do not wait if the peer has sent something since the last doorbell: the process
//!   probably waits for the next answer.
//! - A message that wakes the peer's consumer (a solicited event) does not wait, nor do those
//!   before it.
//! - A Read or an atomic operation may wait as a Send does. A process that needs its answer to go
//!   on posts the next one after the peer has sent something, so it does not wait. One with many
//!   outstanding gains by waiting.
//! - A process may wait for something that riw cannot see, such as data on another queue pair. So
//!   messages wait only as long as waiting has gained more time than it has lost
//!   ([`Coalescer::credit`]). If waiting always loses, there is one attempt in hundreds of
//!   messages.
//!
//! Limits are multiples of the measured time of a send, so they suit slow machines, too.

use kernel::time::Delta;
use kernel_ext::time::Ktime;

#[cfg(CONFIG_KUNIT = "y")]
#[path = "../kunit/coalesce.rs"]
mod kunit;

/// Maximum doorbells that one send serves.
const DOORBELLS: u32 = 16;
/// Bytes that are worth a send of their own.
const BYTES: usize = 32 * 1024;
/// Maximum time that messages wait, in sends.
const PATIENCE: i64 = 8;
/// The limits of this time, in nanoseconds.
const WAIT_MIN: i64 = 20_000;
const WAIT_MAX: i64 = 500_000;
/// The credit that permits waiting, and the limits of the credit, in sends. A wait that no further
/// message ends costs about [`PATIENCE`].
const ENOUGH: i64 = 8;
const CREDIT_MAX: i64 = 24;
const CREDIT_MIN: i64 = -64;
/// The number of doorbells that earn the time of one send.
const EARNING: i64 = 64;
/// One of this many doorbells does not begin a wait, so that its send is timed. A prime number:
/// traffic often has a period.
const PERIOD: u32 = 31;
/// Samples whose minimum is the first average.
const FIRST_SAMPLES: u32 = 4;

/// Decides whether messages wait.
pub(super) struct Coalescer {
    /// When the doorbell was rung last.
    last: Ktime,
    /// Doorbells until the next sample.
    until_sample: u32,
    /// Samples so far, up to [`FIRST_SAMPLES`].
    samples: u32,
    /// Doorbells since the last send: their messages wait.
    waiting: u32,
    /// For how long the first of these messages has waited at the last doorbell, in nanoseconds.
    waited: i64,
    /// Average time of a small send for one doorbell, in nanoseconds.
    cost: i64,
    /// Time that waiting has gained, less the time that it has lost, in nanoseconds.
    credit: i64,
}

/// Whether a batch waits for more messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// Send it now.
    No,
    /// It begins to wait. A timer must end the wait after this time.
    Begins(Delta),
    /// It waits already.
    GoesOn,
}

impl Coalescer {
    /// Returns one that has earned no credit. Any context.
    pub(super) fn new() -> Self {
        Self {
            last: Ktime::now(),
            until_sample: PERIOD,
            samples: 0,
            waiting: 0,
            waited: 0,
            cost: 0,
            credit: 0,
        }
    }

    /// Whether messages wait. Any context.
    pub(super) fn has_waiting(&self) -> bool {
        self.waiting != 0
    }

    /// Notes that the messages that wait wait no longer, which is neither a gain nor a loss. Any
    /// context.
    pub(super) fn forget_waiting(&mut self) {
        self.waiting = 0;
    }

    /// Decides about a batch of `bytes`, for a doorbell that was rung at `rung`. `answered`: the
    /// peer has sent something since the last time. Any context.
    pub(super) fn doorbell(&mut self, rung: Ktime, bytes: usize, answered: bool) -> Wait {
        let gap = rung.since(core::mem::replace(&mut self.last, rung));

        self.decide(gap.as_nanos(), bytes, answered)
    }

    /// As [`Self::doorbell`], `gap` nanoseconds after the doorbell before.
    fn decide(&mut self, gap: i64, bytes: usize, answered: bool) -> Wait {
        self.until_sample = self.until_sample.saturating_sub(1);
        if self.has_waiting() {
            self.waited = self.waited.saturating_add(gap);
        }
        // A doorbell whose messages wait takes little time. So the doorbells of a process that only
        // sends follow each other faster now.
        let quick = match self.waiting {
            0 => self.sends(3) / 2,
            _ => self.cost,
        };

        if answered || gap > quick {
            if self.has_waiting() {
                self.lose(self.waited);
            }
            return Wait::No;
        }
        self.gain(self.cost / EARNING);
        let waiting = self.waiting.saturating_add(1);

        if waiting >= DOORBELLS || bytes >= BYTES {
            return Wait::No;
        }
        if waiting == 1 {
            return self.begin();
        }
        self.waiting = waiting;
        Wait::GoesOn
    }

    /// Begins to wait, if that is permitted.
    fn begin(&mut self) -> Wait {
        let known = self.samples == FIRST_SAMPLES;

        if !known || self.until_sample == 0 || self.credit < self.sends(ENOUGH) {
            return Wait::No;
        }
        let time = self.sends(PATIENCE).clamp(WAIT_MIN, WAIT_MAX);

        self.waiting = 1;
        self.waited = 0;
        Wait::Begins(Delta::from_nanos(time))
    }

    /// Notes that a batch of `bytes` has been sent: for the doorbell that was rung at `rung`, or
    /// else by another run, mostly that of a worker. Any context.
    pub(super) fn sent(&mut self, rung: Option<Ktime>, bytes: usize) {
        match rung {
            Some(_) if self.has_waiting() => self.settle(),
            None if self.has_waiting() => self.late(self.last.elapsed().as_nanos()),
            Some(rung) if self.until_sample == 0 && (1..BYTES).contains(&bytes) => {
                self.until_sample = PERIOD;
                self.timed(rung.elapsed().as_nanos());
            }
            _ => {}
        }
    }

    /// Notes that another run has sent the batch, `idle` nanoseconds after the last doorbell.
    fn late(&mut self, idle: i64) {
        self.waiting = self.waiting.saturating_sub(1);
        self.settle();
        // The first message would have been sent so much earlier, except for the time of this send.
        self.lose(self.waited.saturating_add(idle));
    }

    /// Notes what the messages that waited have gained: their doorbells took a quarter of the time
    /// of a send, to gather them.
    fn settle(&mut self) {
        let shared = core::mem::take(&mut self.waiting);

        self.gain(self.sends(i64::from(shared).saturating_mul(3)) / 4);
    }

    /// Notes that a send for one doorbell has taken `time` nanoseconds. It may have been
    /// interrupted: so it counts for two average sends at most, and the first average is the
    /// minimum of some.
    fn timed(&mut self, time: i64) {
        self.cost = match self.samples {
            0 => time,
            FIRST_SAMPLES => self.sends(7).saturating_add(time.min(self.sends(2))) / 8,
            _ => self.cost.min(time),
        };
        self.samples = self.samples.saturating_add(1).min(FIRST_SAMPLES);
    }

    /// Returns the nanoseconds that `count` sends take.
    fn sends(&self, count: i64) -> i64 {
        self.cost.saturating_mul(count)
    }

    fn gain(&mut self, time: i64) {
        self.credit = self.credit.saturating_add(time).min(self.sends(CREDIT_MAX));
    }

    fn lose(&mut self, time: i64) {
        self.credit = self.credit.saturating_sub(time).max(self.sends(CREDIT_MIN));
    }
}
