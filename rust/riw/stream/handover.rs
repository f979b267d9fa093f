// SPDX-License-Identifier: GPL-2.0

//! Hand-over: when a worker on another CPU sends for a process.
//!
//! A process that streams messages spends most of its time in doorbells: in the system calls, and
//! in the sends. A worker on another CPU can send meanwhile (`qp/stay.rs`): it looks for WRs by
//! itself, so that the process rings no doorbell, and both CPUs work.
//!
//! - A worker is called if doorbells follow each other closely, for messages that are not long, and
//!   the process does not wait for answers in between: it would gain nothing. It may wait if the
//!   peer has sent something, unless it has several reads outstanding.
//! - It is called to a CPU that has been idle meanwhile. If none is found, it is called to one that
//!   it shares with other tasks, as the scheduler sees fit: that CPU may be busy with polling.
//! - It stays as long as the process gets through clearly more messages than before. If not, the
//!   next call comes later and later.

use crate::stream::tx_state::TxRun;
use kernel::sync::atomic::{ordering, Atomic};
use kernel_ext::{
    cpu::{is_realtime, Cpu},
    time::Ktime,
};

#[cfg(CONFIG_KUNIT = "y")]
#[path = "../kunit/handover.rs"]
mod kunit;

/// Maximum bytes that wait to be sent at a doorbell that counts. With more, the send takes so long
/// that the doorbell costs little.
const BYTES_MAX: usize = 128 * 1024;
/// Doorbells that count between two looks at other CPUs.
const ROUND: u32 = 128;
/// Maximum nanoseconds of such a round. A process may post on other queue pairs meanwhile, and send
/// their messages.
const DENSE: i64 = 400_000 * ROUND as i64;
/// Other CPUs that are looked at for an idle one.
const CANDIDATES: u32 = 4;
/// A CPU is idle if it has been so for this part of the time, in percent.
const IDLE_PERCENT: i64 = 80;
/// Where the tick goes on, idle time comes in ticks. A CPU that seems to be idle for more than this
/// part of the time has not been measured.
const TICK_PERCENT: i64 = 125;
/// The minimum of the messages of a process with a worker, in percent of those without.
const GAIN_PERCENT: i64 = 125;
/// Nanoseconds after which the messages of a process with a worker are counted.
const EPOCH: i64 = 5_000_000;
/// The same if there are fewer than [`WORTH`].
const EPOCH_MAX: i64 = 20_000_000;
/// Fewer WRs are no gain: their rate says little.
const WORTH: u32 = 64;
/// The most attempts in a row that [`Backoff`] refuses.
pub(crate) const REFUSALS_MAX: u32 = 256;

/// Decides whether a worker is called.
pub(crate) struct Handover {
    state: HandoverState,
    /// The WRs of this round, which begins when the last one ends.
    round: Progress,
    /// The doorbells of this round.
    doorbells: u32,
    /// Of the rounds that may end in a call.
    backoff: Backoff,
}

/// Refuses more and more attempts, as long as they gain nothing: one after the first, then two, up
/// to [`REFUSALS_MAX`].
pub(crate) struct Backoff {
    /// Attempts that are refused.
    refused: Atomic<u32>,
    /// How many will be refused after the next one that gains nothing.
    next_refused: Atomic<u32>,
}

/// How far a hand-over is.
enum HandoverState {
    /// Nothing is known of other CPUs.
    None,
    /// This one may take over, if it is idle for a round.
    Candidate(CpuCandidate),
    /// A worker is called, or between two stints.
    Called(Visit),
    /// The worker is at work.
    Away,
}

#[derive(Clone, Copy)]
struct CpuCandidate {
    cpu: Cpu,
    /// The candidates so far, with this one.
    count: u32,
    since: Ktime,
    /// Microseconds that the CPU had been idle then.
    idle: i64,
}

/// WRs from some time on.
#[derive(Clone, Copy)]
struct Progress {
    since: Ktime,
    /// The number of the first WR.
    first: u32,
}

/// WRs in some time.
#[derive(Clone, Copy, Debug)]
struct Rate {
    wrs: u32,
    nanos: i64,
}

/// The visit of a worker.
pub(crate) struct Visit {
    cpu: Cpu,
    /// The CPU was idle when the worker was called.
    idle: bool,
    /// The worker has the right to transmit.
    begun: bool,
    /// The transmit run, until it is counted: one for the whole visit.
    run: Option<TxRun>,
    /// Since when it has found no WRs.
    idle_since: Option<Ktime>,
    /// How often it has slept since then.
    dozes: u32,
    /// Posted WRs wait for an event.
    blocked: bool,
    /// The rate of the process without a worker.
    before: Rate,
    /// WRs of this epoch.
    epoch: Progress,
    /// An epoch was a gain.
    has_gained: bool,
}

impl Progress {
    fn new(since: Ktime, first: u32) -> Self {
        Self { since, first }
    }

    /// Returns the rate until `end`, when `next` is the number of the next WR.
    fn rate(&self, end: Ktime, next: u32) -> Rate {
        Rate {
            wrs: next.wrapping_sub(self.first),
            nanos: end.since(self.since).as_nanos(),
        }
    }
}

impl Rate {
    /// Whether doorbells in this time, those of one round, follow each other closely.
    fn is_dense(self) -> bool {
        self.nanos <= DENSE
    }

    /// Whether an epoch ends with it.
    fn is_epoch(self) -> bool {
        self.nanos >= EPOCH && (self.wrs >= WORTH || self.nanos >= EPOCH_MAX)
    }

    /// Whether it is a gain, compared to `before`.
    fn is_gain(self, before: Self) -> bool {
        let [now, then] = [self.wrs, before.wrs].map(i64::from);

        self.wrs >= WORTH
            && now.saturating_mul(before.nanos).saturating_mul(100)
                >= then.saturating_mul(self.nanos).saturating_mul(GAIN_PERCENT)
    }
}

impl Visit {
    /// Returns one that begins, on `cpu`. Any context.
    fn to(cpu: Cpu, idle: bool, before: Rate) -> Self {
        Self {
            cpu,
            idle,
            begun: false,
            run: Some(TxRun::Worker),
            idle_since: None,
            dozes: 0,
            blocked: false,
            before,
            epoch: Progress::new(Ktime::now(), 0),
            has_gained: false,
        }
    }

    /// Returns the CPU of the worker. Any context.
    pub(crate) fn cpu(&self) -> Cpu {
        self.cpu
    }

    /// Whether the worker does not have the right to transmit yet. Any context.
    pub(crate) fn is_new(&self) -> bool {
        !self.begun
    }

    /// Notes that it has; the next WR is number `next`. Any context.
    pub(crate) fn begin(&mut self, next: u32) {
        self.begun = true;
        self.epoch = Progress::new(Ktime::now(), next);
        self.found();
    }

    /// Returns the transmit run, at the first pass. Any context.
    pub(crate) fn take_run(&mut self) -> Option<TxRun> {
        self.run.take()
    }

    /// Notes that the worker has found WRs, or an event. Any context.
    pub(crate) fn found(&mut self) {
        self.idle_since = None;
        self.dozes = 0;
    }

    /// Notes whether WRs that are posted wait for an event. Any context.
    pub(crate) fn set_blocked(&mut self, blocked: bool) {
        self.blocked = blocked;
    }

    /// Whether they do. Any context.
    pub(crate) fn is_blocked(&self) -> bool {
        self.blocked
    }

    /// Returns the nanoseconds for which the worker has found none, at this look. Any context.
    pub(crate) fn idle_nanos(&mut self) -> i64 {
        let now = Ktime::now();

        now.since(*self.idle_since.get_or_insert(now)).as_nanos()
    }

    /// Returns the rate of this epoch, until the worker found nothing any more. While WRs were
    /// blocked the process did not wait for the worker.
    fn rate(&self, next: u32) -> Rate {
        let end = match self.blocked {
            true => Ktime::now(),
            false => self.idle_since.unwrap_or_else(Ktime::now),
        };

        self.epoch.rate(end, next)
    }

    /// Whether the visit, which is over, was a gain.
    fn is_worth(&self, next: u32) -> bool {
        self.begun && (self.has_gained || self.rate(next).is_gain(self.before))
    }

    /// Counts a look that finds none, after which the worker sleeps. Returns how many there were in
    /// a row. Any context.
    pub(crate) fn doze(&mut self) -> u32 {
        self.dozes = self.dozes.saturating_add(1);
        self.dozes
    }

    /// Whether the visit goes on when `next` is the number of the next WR: at the end of an epoch,
    /// only if that was a gain. Any context.
    pub(crate) fn is_gain(&mut self, now: Ktime, next: u32) -> bool {
        let rate = self.epoch.rate(now, next);

        if !rate.is_epoch() {
            return true;
        }
        let gain = rate.is_gain(self.before);

        self.has_gained |= gain;
        self.epoch = Progress::new(now, next);
        gain
    }
}

impl Handover {
    /// Returns one that has made no call. Any context.
    pub(super) fn new() -> Self {
        let now = Ktime::now();

        Self {
            state: HandoverState::None,
            round: Progress::new(now, 0),
            doorbells: 0,
            backoff: Backoff::new(),
        }
    }

    /// Returns the CPU to which a worker is called, if one is, at a doorbell that was rung at
    /// `rung` for a batch of `bytes`; `next` is the number of the next WR. `waited`: the process
    /// may have waited for an answer before. `join` reserves a place on a CPU, which is idle or
    /// not, and returns whether there is one. Process context.
    pub(super) fn doorbell(
        &mut self,
        rung: Ktime,
        next: u32,
        bytes: usize,
        waited: bool,
        join: impl Fn(Cpu, bool) -> bool,
    ) -> Option<Cpu> {
        if waited || bytes > BYTES_MAX {
            self.begin_round(rung, next);
            self.forget_idle();
        }
        self.doorbells = self.doorbells.wrapping_add(1);
        if self.doorbells < ROUND {
            return None;
        }
        let before = self.round.rate(rung, next);

        self.begin_round(rung, next);
        if !before.is_dense() || is_realtime() {
            self.forget_idle();
            return None;
        }
        self.choose(before, join)
    }

    fn begin_round(&mut self, rung: Ktime, next: u32) {
        self.doorbells = 0;
        self.round = Progress::new(rung, next);
    }

    /// Forgets for how long a candidate has been idle until now.
    fn forget_idle(&mut self) {
        if let HandoverState::Candidate(candidate) = &mut self.state {
            *candidate = CpuCandidate::new(candidate.cpu, candidate.count);
        }
    }

    /// Chooses a CPU at the end of a round, in which the process had the rate `before`.
    fn choose(&mut self, before: Rate, join: impl Fn(Cpu, bool) -> bool) -> Option<Cpu> {
        if self.backoff.refuses() {
            return None;
        }
        let (last, count) = match &self.state {
            HandoverState::Called(_) | HandoverState::Away => return None,
            HandoverState::None => (None, 0),
            HandoverState::Candidate(candidate) => {
                let (cpu, count) = (candidate.cpu, candidate.count);
                let is_last = count >= CANDIDATES || Cpu::other(Some(cpu)) == Some(cpu);
                let idle = candidate.is_idle();

                // The process may have moved there.
                if (idle || is_last) && !cpu.is_this() && join(cpu, idle) {
                    self.state = HandoverState::Called(Visit::to(cpu, idle, before));
                    return Some(cpu);
                }
                (Some(cpu), count)
            }
        };

        self.state = match Cpu::other(last) {
            Some(cpu) => HandoverState::Candidate(CpuCandidate::new(cpu, count.saturating_add(1))),
            None => HandoverState::None,
        };
        None
    }

    /// Returns the visit to the worker, which begins a stint. Any context.
    pub(crate) fn begin_stint(&mut self) -> Option<Visit> {
        match core::mem::replace(&mut self.state, HandoverState::Away) {
            HandoverState::Called(visit) => Some(visit),
            other => {
                self.state = other;
                None
            }
        }
    }

    /// Takes the visit from the worker, until its next stint. Any context.
    pub(crate) fn interrupt(&mut self, visit: Visit) {
        self.state = HandoverState::Called(visit);
    }

    /// Notes that the visit is over; `next` is the number of the next WR. Any context. Returns
    /// whether it was a gain, if it tells something about a busy CPU.
    pub(crate) fn end(&mut self, visit: &Visit, next: u32) -> Option<bool> {
        let gain = visit.is_worth(next);

        self.state = HandoverState::None;
        self.backoff.settle(gain);
        (visit.begun && !visit.idle).then_some(gain)
    }
}

impl Backoff {
    /// Returns one that refuses nothing. Any context.
    pub(crate) fn new() -> Self {
        Self {
            refused: Atomic::new(0),
            next_refused: Atomic::new(1),
        }
    }

    /// Counts an attempt; some at the same time may count as one. Any context. Returns whether it
    /// is refused.
    pub(crate) fn refuses(&self) -> bool {
        let refused = self.refused.load(ordering::Relaxed);

        if refused == 0 {
            return false;
        }
        let _ = self
            .refused
            .cmpxchg(refused, refused.wrapping_sub(1), ordering::Relaxed);
        true
    }

    /// Notes whether an attempt was a gain. Any context.
    pub(crate) fn settle(&self, gain: bool) {
        let (refused, next) = match gain {
            true => (0, 1),
            false => {
                let refused = self.next_refused.load(ordering::Relaxed);

                (refused, refused.saturating_mul(2).min(REFUSALS_MAX))
            }
        };

        self.refused.store(refused, ordering::Relaxed);
        self.next_refused.store(next, ordering::Relaxed);
    }
}

impl CpuCandidate {
    fn new(cpu: Cpu, count: u32) -> Self {
        Self {
            cpu,
            count,
            since: Ktime::now(),
            idle: cpu.idle_micros(),
        }
    }

    /// Whether its CPU has been idle since then.
    fn is_idle(&self) -> bool {
        let time = self.since.elapsed().as_micros_ceil();

        was_idle(time, self.cpu.idle_micros().saturating_sub(self.idle))
    }
}

/// Whether a CPU that was idle for `idle` of `time` microseconds was idle.
fn was_idle(time: i64, idle: i64) -> bool {
    let part = |percent| time.saturating_mul(percent) / 100;

    (part(IDLE_PERCENT)..=part(TICK_PERCENT)).contains(&idle)
}
