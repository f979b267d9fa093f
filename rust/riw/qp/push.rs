// SPDX-License-Identifier: GPL-2.0

//! The timer of coalescing: when it expires, a worker sends the messages that wait.
//! `stream/coalesce.rs` decides which messages wait.

use super::{Qp, PUSH_WORK};
use crate::stream::tx_state::TxRun;
use kernel::{
    impl_has_hr_timer,
    sync::{Arc, ArcBorrow},
    time::{
        hrtimer::{
            ArcHrTimerHandle, HrTimerCallback, HrTimerCallbackContext, HrTimerPointer,
            HrTimerRestart, RelativeMode,
        },
        Delta, Monotonic,
    },
    workqueue::WorkItem,
};
use kernel_ext::workqueue::HasQueue;

/// The handle of the timer. It holds a reference to the queue pair, until [`Qp::stop_pushing`].
pub(super) type PushHandle = Option<ArcHrTimerHandle<Qp>>;

impl_has_hr_timer! {
    impl HasHrTimer<Self> for Qp {
        mode: RelativeMode<Monotonic>, field: self.push_timer
    }
}

impl HrTimerCallback for Qp {
    type Pointer<'a> = Arc<Self>;

    /// Interrupt context. The handle keeps the queue pair alive, and its drop waits for this
    /// callback.
    fn run(this: ArcBorrow<'_, Self>, _: HrTimerCallbackContext<'_, Self>) -> HrTimerRestart {
        this.queue().kick::<_, PUSH_WORK>(&this.into());
        HrTimerRestart::NoRestart
    }
}

impl WorkItem<PUSH_WORK> for Qp {
    type Pointer = Arc<Self>;

    /// A transmit run for messages that wait. The timer does not hold the right to transmit:
    /// otherwise a process that posts more messages would wait for the worker.
    fn run(this: Arc<Self>) {
        // A doorbell may have sent them since then. The next ones have the timer to themselves.
        if this.stream.tx.lock().has_waiting() && this.runner.want() {
            this.in_worker(|| this.transmit(TxRun::Worker));
        }
    }
}

impl Qp {
    /// Starts the timer, which expires after `time`. Process context; may sleep. Only a doorbell
    /// that has the right to transmit calls this, so one at a time, and ib_core does not run a
    /// doorbell beside `destroy`: so no timer starts after [`Self::stop_pushing`].
    pub(super) fn push_later(self: &Arc<Self>, time: Delta) {
        // The drop of a handle stops the timer, whichever start it is of.
        self.stop_pushing();
        let handle = HrTimerPointer::start(self.clone(), time);
        let other = self.status.lock().push.replace(handle);

        // There is none. Its drop would wait, which is not allowed under the lock.
        drop(other);
    }

    /// Stops the timer, and drops the reference that its handle has. Process context; may sleep.
    pub(super) fn stop_pushing(&self) {
        let handle = self.status.lock().push.take();
        // The drop waits for the callback: not under the lock. It puts a reference, but not the
        // last one, as the caller has one.
        drop(handle);
    }
}
