// SPDX-License-Identifier: GPL-2.0

//! Queue pairs: each joins a stream, its queues, a state, and the connection that carries it.
//!
//! Connection management uses queue pairs; they know it by [`QpConnection`] only ([`traits`]).
//!
//! - Verbs: [`create`], [`modify`], [`destroy`], and [`post`] for kernel users. [`state`] alone
//!   changes the state.
//! - Sending: [`transmit`] has the runs; [`push`] starts one for messages that have waited for
//!   more, [`stay`] has those of a worker on another CPU.
//! - Receiving: [`connection`] gets the events of the link, [`receive_work`] has a worker receive,
//!   when the wait for a receive WR may be over, or when the link needs one.
//! - The end: [`stream_error`] ends a stream, [`error`](mod@error) flushes, and [`sweep`] looks for
//!   WRs that are posted later.

mod connection;
mod create;
mod destroy;
mod details;
mod error;
mod modify;
mod owner;
mod post;
mod push;
mod receive_work;
mod state;
pub(crate) mod stay;
mod stream_error;
pub(crate) mod sweep;
mod traits;
mod transmit;
mod work_queues;

use crate::{
    counters::Counters, driver::Riw, limits::ObjectCharge, queue::QpObject, stream::Stream,
};
use kernel::{
    impl_has_delayed_work, impl_has_work,
    prelude::*,
    sync::{
        aref::ARef,
        atomic::{ordering, Atomic},
        Arc, SpinLockIrq,
    },
    time::{hrtimer::HrTimer, msecs_to_jiffies, Jiffies},
    workqueue::{DelayedWork, HasDelayedWork, Work, WorkItem},
};
use kernel_ext::{
    memalloc::{without_io, without_reclaim},
    runner::Runner,
    sync::BhSpinLock,
    workqueue::mod_delayed_work,
};
use rdma::{event::AsyncEvent, qp::QpCap, Device};

pub(crate) use receive_work::receive_posted;
pub(crate) use traits::{Closed, QpConnection, Role};
pub(crate) use work_queues::WorkQueues;

use owner::Owner;
use state::{CurrentState, Status};
use sweep::FlushSweep;

/// A queue pair.
///
/// The verbs object holds a reference; so do the connection and queued work items, for as long as
/// they need it. So a `Qp` can outlive its verbs object for a moment. It does nothing then: see
/// [`Qp::destroy`].
#[pin_data]
pub(crate) struct Qp {
    pub(crate) number: u32,
    owner: Owner,
    cap: QpCap,
    queues: Arc<WorkQueues>,
    /// Looks at the receive queue in ERROR.
    sweep: Arc<FlushSweep>,
    _charge: ObjectCharge,

    /// The verbs object, until it is destroyed. The lock disables interrupts, as any context may
    /// report an event.
    #[pin]
    handle: SpinLockIrq<Option<ARef<QpObject>>>,
    #[pin]
    status: BhSpinLock<Status>,
    /// The state in `status`. Changes under `status`, and may be read without it.
    current: CurrentState,
    /// Whether reclaim may wait for the queue pair: it connects a kernel user to storage elsewhere,
    /// or may do so. Transmitting, and receiving in a worker, then use memory reserves. Changes
    /// before the stream starts.
    below_reclaim: Atomic<bool>,
    #[pin]
    stream: Stream,
    runner: Runner,
    /// While it is queued, or its timer runs, it has the right to transmit.
    #[pin]
    transmit_work: DelayedWork<Qp, TRANSMIT_WORK>,
    #[pin]
    push_work: Work<Qp, PUSH_WORK>,
    /// `status` has its handle.
    #[pin]
    push_timer: HrTimer<Qp>,
    #[pin]
    stay_work: Work<Qp, STAY_WORK>,
    #[pin]
    receive_work: Work<Qp, RECEIVE_WORK>,
    /// An item of its own: a run may be requested while the timer runs, and arming the timer would
    /// take the run off the queue.
    #[pin]
    receive_timer: DelayedWork<Qp, RECEIVE_TIMER>,
    /// An item of its own: a run may wait for memory for long. Meanwhile the stream, or others
    /// behind it in line, may wait for a receive WR.
    #[pin]
    hold_work: DelayedWork<Qp, HOLD_WORK>,
}

/// Milliseconds until a run is repeated.
const RETRY_MS: u32 = 4;
/// The same for a process, if the run had no memory. The time doubles with each failure,
/// [`BACKOFFS`] times: reclaim in a full memory cgroup takes long, and thousands of streams may do
/// so.
const MEMORY_RETRY_MS: u32 = 100;
const BACKOFFS: u32 = 5;

/// The ids of the work items.
const TRANSMIT_WORK: u64 = 0;
const PUSH_WORK: u64 = 1;
const STAY_WORK: u64 = 2;
const RECEIVE_WORK: u64 = 3;
const RECEIVE_TIMER: u64 = 4;
const HOLD_WORK: u64 = 5;

impl_has_work! {
    impl HasWork<Qp, PUSH_WORK> for Qp { self.push_work }
    impl HasWork<Qp, STAY_WORK> for Qp { self.stay_work }
    impl HasWork<Qp, RECEIVE_WORK> for Qp { self.receive_work }
}
impl_has_delayed_work! {
    impl HasDelayedWork<Qp, TRANSMIT_WORK> for Qp { self.transmit_work }
    impl HasDelayedWork<Qp, RECEIVE_TIMER> for Qp { self.receive_timer }
    impl HasDelayedWork<Qp, HOLD_WORK> for Qp { self.hold_work }
}

impl Qp {
    /// Publishes the verbs object, which is complete. Process context.
    pub(crate) fn publish(&self, object: &QpObject) {
        self.stream.sq.publish(object);
        self.stream.rq.publish(object);
        *self.handle.lock() = Some(object.into());
    }

    /// Calls `f` and returns its result. A kernel user may serve I/O, so no allocation of `f`
    /// starts or awaits I/O for it. Process context.
    fn without_io<R>(&self, f: impl FnOnce() -> R) -> R {
        match self.owner.is_kernel() {
            true => without_io(f),
            false => f(),
        }
    }

    /// Calls `f` and returns its result, in a worker that others may have to wait for when they
    /// free memory: without I/O for a kernel user, and without waiting for reclaim if reclaim may
    /// wait for the queue pair.
    pub(crate) fn in_worker<R>(&self, f: impl FnOnce() -> R) -> R {
        match self.below_reclaim.load(ordering::Relaxed) {
            true => without_reclaim(f),
            false => self.without_io(f),
        }
    }

    /// Returns the time until a run is repeated that had no memory, `failures` times in a row, or
    /// that must leave time to others (0). Any context.
    fn pause(&self, failures: u32) -> Jiffies {
        let ms = match failures.checked_sub(1) {
            Some(before) if !self.owner.is_kernel() => {
                MEMORY_RETRY_MS.saturating_mul(2u32.saturating_pow(before.min(BACKOFFS)))
            }
            _ => RETRY_MS,
        };

        msecs_to_jiffies(ms)
    }

    /// Queues a work item after `delay`, unless the queue pair is being destroyed. If the item is
    /// queued or its timer runs, the new delay replaces that. Process context or softirq. Returns
    /// whether it is queued.
    fn queue_later<const ID: u64>(self: &Arc<Self>, delay: Jiffies) -> bool
    where
        Self: HasDelayedWork<Self, ID> + WorkItem<ID, Pointer = Arc<Self>>,
    {
        // Under the lock: `destroy` marks the queue pair first, and then cancels the timers.
        let status = self.status.lock();
        let queues = !status.is_destroyed();

        if queues {
            mod_delayed_work::<Self, ID>(self, delay);
        }
        queues
    }

    /// Returns the verbs object, unless it is being destroyed. Any context.
    pub(crate) fn handle(&self) -> Option<ARef<QpObject>> {
        self.handle.lock().clone()
    }

    /// Counts the messages of the stream in `counters` from now on. Process context; may sleep.
    pub(crate) fn set_counters(&self, counters: &Arc<Counters>) {
        self.stream.set_counters(counters);
    }

    /// Reports an asynchronous event, unless the queue pair is being destroyed. Any context; the
    /// caller must hold no lock that a verb takes.
    fn report_event(&self, event: AsyncEvent) {
        if let Some(handle) = self.handle() {
            handle.event(event);
        }
    }
}

impl trace::Source for Qp {
    type Driver = Riw;

    fn device(&self) -> &Device<Riw> {
        self.stream.sq.device()
    }

    fn number(&self) -> u32 {
        self.number
    }
}
