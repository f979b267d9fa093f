// SPDX-License-Identifier: GPL-2.0

//! destroy_qp.

use super::{Qp, HOLD_WORK, RECEIVE_TIMER, TRANSMIT_WORK};
use iwarp::qp::Event;
use kernel::sync::Arc;
use kernel_ext::workqueue::cancel_delayed_work;
use trace::Source;

impl Qp {
    /// Ends the queue pair. Afterwards it gives no completion and no event, and touches no memory
    /// of its process. Process context; may sleep.
    ///
    /// While the device goes, or moves to another network namespace, the WRs of a process are
    /// flushed first: it may poll for their completions, ring no doorbell meanwhile, and so not
    /// learn of the end otherwise. (A process that destroys the queue pair itself at this time gets
    /// the completions, too.) Then, in this order:
    ///
    /// 1. No more completions: waits for one that is being added.
    /// 2. The queue pair is marked: no connection is attached any more, and a stream that starts
    ///    now never becomes active.
    /// 3. No more events.
    /// 4. The gathered batch goes to the socket, as far as it has room: waits for a transmit run.
    /// 5. The connection ends: waits for a work item that sets it up or ends it, and for callbacks
    ///    of the socket.
    /// 6. The stream stops, and drops the WRs that are left, with the memory that they name: waits
    ///    for a receive or a transmit run that still has a reference.
    /// 7. The timers are canceled. Other work items that are queued hold a reference and find
    ///    nothing to do; nothing waits for them.
    ///
    /// `rdma::qp` then waits for the verbs object's last reference. The number stays taken until
    /// iw_cm has given its references back, but a lookup finds no verbs object.
    pub(crate) fn destroy(self: &Arc<Self>) {
        if !self.owner.is_kernel() && self.device().is_moving() {
            self.flush_for_removal();
        }
        self.stream.sq.kill();
        self.stream.rq.kill();
        let connection = self.mark_destroyed();
        let handle = self.handle.lock().take();
        // This may be the last reference: not under the lock.
        drop(handle);
        self.without_io(|| self.push_out());
        self.event(Event::Abort);
        if let Some(connection) = connection {
            connection.as_arc_borrow().teardown();
        }
        {
            let mut tx = self.stream.tx.lock();

            self.pass_turn(self.stream.reset(&mut tx));
        }
        self.stop_pushing();
        self.leave_sweep();
        cancel_delayed_work::<Self, RECEIVE_TIMER>(self);
        cancel_delayed_work::<Self, HOLD_WORK>(self);
        // Nobody waits for the right to transmit that it may have, nor for a run that is requested
        // meanwhile.
        cancel_delayed_work::<Self, TRANSMIT_WORK>(self);
        self.cancel_worker();
    }
}
