// SPDX-License-Identifier: GPL-2.0

//! A worker that stays: it sends the WRs of a process on another CPU, and looks for more by itself.
//! `stream/handover.rs` decides when one is called.
//!
//! Until it runs, the process sends as usual. While it stays, it has the right to transmit, and the
//! process rings no doorbell (or few, if it posts lists of WRs). It looks for WRs without a pause
//! for the time of the setting `handover`, unless another task is ready to run on its CPU; then it
//! sleeps as long between two looks. It leaves when it finds nothing in [`DOZES`] looks in a row,
//! when the process does not get through more messages than without it, when there is no memory,
//! or when the queue pair leaves RTS.

use super::{Qp, STAY_WORK};
use crate::stream::{
    handover::{Backoff, Visit},
    transmit::PassResult,
    tx_state::TxRun,
};
use iwarp::qp::State;
use kernel::{
    prelude::*,
    sync::{
        atomic::{ordering, Atomic},
        Arc,
    },
    workqueue::WorkItem,
};
use kernel_ext::{
    cpu::{cpu_relax, doze, is_alone, quiesce, Cpu},
    memcg::forget_excess,
    time::Ktime,
    workqueue::{cancel_work, Flags, Queue},
};
use trace::Source;

#[cfg(CONFIG_KUNIT = "y")]
#[path = "../kunit/stay.rs"]
mod kunit;

/// Nanoseconds after which a worker lets the other items of its CPU run.
const STINT: i64 = 1_000_000;
/// Looks for a WR between two looks at the clock.
const LOOKS: u32 = 16;
/// Times that a worker sleeps in a row.
const DOZES: u32 = 64;
/// Maximum workers that stay on one CPU. They share it as the scheduler sees fit.
const SHARED_MAX: u32 = 16;
/// The same for one that was busy when the last of them was called: its tasks get the rest.
const BUSY_MAX: u32 = 4;

/// The workers that stay.
pub(crate) struct Stays {
    queue: Arc<Queue>,
    /// The places on each CPU.
    places: KVec<StayPlaces>,
}

/// The places for workers on a CPU.
struct StayPlaces {
    taken: Atomic<u32>,
    /// Of calls while the CPU is busy. A worker that gains nothing there costs others time, and of
    /// many queue pairs each would try.
    backoff: Backoff,
}

impl Stays {
    /// Process context, may sleep. `ENOMEM` if there is no memory.
    pub(crate) fn new() -> Result<Self> {
        let queue = Queue::per_cpu(c"riw_stay", Flags::MEM_RECLAIM, SHARED_MAX)?;
        let mut places = KVec::with_capacity(Cpu::numbers(), GFP_KERNEL)?;

        for _ in 0..Cpu::numbers() {
            places.push_within_capacity(StayPlaces::new())?;
        }
        Ok(Self {
            queue: Arc::new(queue, GFP_KERNEL)?,
            places,
        })
    }

    /// Returns the queue. Any context.
    pub(crate) fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }

    /// Takes a place on `cpu`, which is idle or not. Any context. Returns false if there is none.
    pub(crate) fn join(&self, cpu: Cpu, idle: bool) -> bool {
        let Some(places) = self.places.get(cpu.number()) else {
            return false;
        };

        if !idle && places.backoff.refuses() {
            return false;
        }
        let max = if idle { SHARED_MAX } else { BUSY_MAX };
        let fits = places.taken.fetch_add(1, ordering::Relaxed) < max;

        if !fits {
            places.taken.fetch_sub(1, ordering::Relaxed);
        }
        fits
    }

    /// Gives the place of a visit back. `gain`: on a busy CPU, it was a gain or not.
    fn leave(&self, cpu: Cpu, gain: Option<bool>) {
        if let Some(places) = self.places.get(cpu.number()) {
            places.taken.fetch_sub(1, ordering::Relaxed);
            if let Some(gain) = gain {
                places.backoff.settle(gain);
            }
        }
    }
}

impl StayPlaces {
    fn new() -> Self {
        Self {
            taken: Atomic::new(0),
            backoff: Backoff::new(),
        }
    }
}

/// The next step of a worker that stays.
#[derive(PartialEq, Eq)]
enum StayNext {
    /// Other items of its CPU run first.
    Later,
    /// It gives the run back.
    Leave,
    /// It leaves, and a run comes later: as [`PassResult::Retry`].
    Retry(u32),
}

impl WorkItem<STAY_WORK> for Qp {
    type Pointer = Arc<Self>;

    /// Transmit runs of a worker that stays.
    fn run(this: Arc<Self>) {
        this.in_worker(|| this.stay());
    }
}

impl Qp {
    /// Calls a worker that stays on `cpu`, which
    /// [`Handover::doorbell`](crate::stream::handover::Handover::doorbell) has chosen.
    /// [`Stays::join`] has taken a place there. Process context.
    pub(super) fn call_worker(self: &Arc<Self>, cpu: Cpu) {
        self.device().stays.queue.kick_on::<_, STAY_WORK>(cpu, self);
    }

    /// Serves the queue pair until it is the turn of others, or the worker leaves.
    fn stay(self: &Arc<Self>) {
        // Do not wait because the worker has charged too much for another process.
        forget_excess();
        let stays = &self.device().stays;
        let visit = self.stream.tx.lock().handover.begin_stint();
        // There is one from the call on.
        let Some(mut visit) = visit else {
            return;
        };

        let next = match visit.is_new() {
            // The worker of an earlier visit may still have been at work: then this is its CPU.
            true if !visit.cpu().is_this() || !self.take_over(&mut visit) => {
                let gain = self.end_visit(&visit);
                return stays.leave(visit.cpu(), gain);
            }
            _ => self.serve(&mut visit),
        };

        if next == StayNext::Later {
            self.stream.tx.lock().handover.interrupt(visit);
            quiesce();
            // On the CPU of this item.
            stays.queue.kick::<_, STAY_WORK>(self);
            return;
        }
        self.stream.sq.set_polled(false);
        let gain = self.end_visit(&visit);
        let has_passed = match next {
            StayNext::Retry(failures) => self.transmit_later(failures, Some(State::Rts)),
            _ => false,
        };

        // This looks once more, and has the process ring the doorbell again. It serves changes of
        // the state, too.
        if !has_passed {
            self.transmit(TxRun::Worker);
        }
        stays.leave(visit.cpu(), gain);
    }

    /// Ends a visit. Returns as [`Handover::end`](crate::stream::handover::Handover::end).
    fn end_visit(&self, visit: &Visit) -> Option<bool> {
        let next = self.stream.sq.next();

        self.stream.tx.lock().handover.end(visit, next)
    }

    /// Takes the right to transmit from the runs of the process. Returns false if it does not get
    /// it.
    fn take_over(&self, visit: &mut Visit) -> bool {
        let patience = self.device().handover();

        while !self.runner.take() {
            if !self.may_stay() || visit.idle_nanos() >= patience {
                return false;
            }
            cpu_relax();
        }
        self.stream.tx.lock().take_over();
        // From here on, this is for the worker.
        self.stream.sq.set_polled(true);
        // The first pass sends what waits. This is no other holder of the right.
        let _ = self.runner.want();
        visit.begin(self.stream.sq.next());
        true
    }

    /// Sends what the process posts.
    fn serve(self: &Arc<Self>, visit: &mut Visit) -> StayNext {
        let began = Ktime::now();

        // Its CPU has gone offline.
        if !visit.cpu().is_this() {
            return StayNext::Leave;
        }
        // The queue pair may have another connection since the last stint.
        visit.set_blocked(false);
        while self.await_work(visit) {
            visit.found();
            // The pass serves the requests until here.
            self.runner.accept();
            let result = self.pass(visit.take_run());

            // After each pass: WRs that no pass takes any more stay posted.
            let now = Ktime::now();

            if !self.may_stay() || !visit.is_gain(now, self.stream.sq.next()) {
                return StayNext::Leave;
            }
            match result {
                PassResult::Done => visit.set_blocked(false),
                PassResult::Blocked => visit.set_blocked(true),
                PassResult::Yield => {
                    let _ = self.runner.want();
                    return StayNext::Later;
                }
                PassResult::Retry(failures) => return StayNext::Retry(failures),
                // Only a doorbell coalesces.
                PassResult::Coalescing(_) => return StayNext::Leave,
            }
            if now.since(began).as_nanos() >= STINT {
                return StayNext::Later;
            }
        }
        StayNext::Leave
    }

    /// Looks for WRs and events until there are some. Returns false if it is time to leave.
    fn await_work(&self, visit: &mut Visit) -> bool {
        loop {
            for _ in 0..LOOKS {
                // Posted WRs that are blocked wait for an event, which requests a pass.
                if self.runner.is_wanted() || (!visit.is_blocked() && self.stream.sq.is_posted()) {
                    return true;
                }
                cpu_relax();
            }
            let patience = self.device().handover();
            let sleeps = visit.idle_nanos() >= patience || !is_alone();

            if !self.may_stay() || (sleeps && visit.doze() > DOZES) {
                return false;
            }
            if sleeps {
                // In microseconds. CAST: The setting is 1000 at most.
                doze((patience / 1000).clamp(1, 1000) as u32);
            }
        }
    }

    /// Whether passes can take WRs, and workers are wanted.
    fn may_stay(&self) -> bool {
        self.current.load() == Some(State::Rts) && self.device().handover() != 0
    }

    /// Takes a worker that is called, or between two stints, off its queue, so that it does not
    /// keep the queue pair until it runs. Process context; may sleep. Nobody waits for the right to
    /// transmit that it may have.
    pub(super) fn cancel_worker(self: &Arc<Self>) {
        if !cancel_work::<Self, STAY_WORK>(self) {
            return;
        }
        let visit = self.stream.tx.lock().handover.begin_stint();

        if let Some(visit) = visit {
            let gain = self.end_visit(&visit);
            self.device().stays.leave(visit.cpu(), gain);
        }
    }
}
