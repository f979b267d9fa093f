// SPDX-License-Identifier: GPL-2.0

//! The events that wake a stream that waits for a receive WR: a post, its turn, a timer. The wait
//! itself is in `stream/wait.rs`.

use super::{Closed, Qp, RECEIVE_TIMER, RECEIVE_WORK};
use crate::{
    driver::Riw,
    queue::receive::{NextTurn, RecvQueue},
};
use kernel::{sync::Arc, time::Jiffies};
use kernel_ext::workqueue::mod_delayed_work;
use rdma::Device;
use trace::Source;

/// Notes that receive WRs have been posted to `queue`: the stream that waits first in line looks
/// for them, and passes the turn on. Any context. A full barrier.
///
/// Each post by a call of the driver ends here. A process with libsiw posts to its ring without
/// one: see [`Qp::arm_receive_timer`].
pub(crate) fn receive_posted(dev: &Device<Riw>, queue: &RecvQueue) {
    if let Some(qp) = queue.first_waiting().and_then(|number| dev.qp(number)) {
        qp.retry_receive();
    }
}

impl Qp {
    /// Lets a worker receive the data in the link: the stream may wait for a receive WR. Any
    /// context.
    pub(crate) fn retry_receive(self: &Arc<Self>) {
        self.queue.kick::<_, RECEIVE_WORK>(self);
    }

    /// Lets the stream whose turn it is look for a receive WR. Any context.
    pub(super) fn pass_turn(&self, next: NextTurn) {
        // One that is being destroyed leaves the line, and passes its turn on.
        if let Some(qp) = next.0.and_then(|number| self.device().qp(number)) {
            qp.retry_receive();
        }
    }

    /// Sets the timer for the next look of a stream that waits, and for the end of its time.
    /// Process context or softirq.
    pub(super) fn arm_receive_timer(self: &Arc<Self>) {
        self.stream
            .while_waiting(|left| self.set_receive_timer(left));
    }

    /// Sets the timer after which the stream looks for what it can receive. Process context or
    /// softirq.
    pub(super) fn set_receive_timer(self: &Arc<Self>, left: Jiffies) {
        // Under the lock: `destroy` marks the queue pair first, and then cancels the timer.
        let status = self.status.lock();

        if !status.is_destroyed() {
            mod_delayed_work::<Self, RECEIVE_TIMER>(self, left);
        }
    }

    /// Whether the end of the connection, or of the peer's half of it, takes effect later, as the
    /// stream has yet to read what came before: behind a message that waits for a receive WR,
    /// unless the connection is lost, or what a worker reads. The queue pair then calls
    /// [`QpConnection::catch_up`](super::QpConnection::catch_up), or the connection ends. Process
    /// context or softirq.
    pub(crate) fn defers(&self, how: Closed) -> bool {
        self.is_stream_active() && self.stream.defers_end(how == Closed::Graceful)
    }
}
