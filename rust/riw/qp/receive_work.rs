// SPDX-License-Identifier: GPL-2.0

//! Receiving in a worker, and what queues it. Events wake a stream that waits for a receive WR: a
//! post, its turn, a timer. The wait itself is in `stream/wait.rs`. The link needs a worker for an
//! FPDU that the socket has no room for, and for all if it receives in process context only.

use super::{Closed, Qp, HOLD_WORK, RECEIVE_TIMER, RECEIVE_WORK};
use crate::{
    driver::Riw,
    queue::receive::{NextTurn, RecvQueue},
};
use kernel::{sync::Arc, workqueue::WorkItem};
use kernel_ext::workqueue::HasQueue;
use rdma::Device;
use trace::Source;

impl WorkItem<RECEIVE_WORK> for Qp {
    type Pointer = Arc<Self>;

    /// Receives at once: see [`Qp::retry_receive`].
    fn run(this: Arc<Self>) {
        this.in_worker(|| this.catch_up());
    }
}

impl WorkItem<RECEIVE_TIMER> for Qp {
    type Pointer = Arc<Self>;

    /// Receives after some time: see [`Qp::arm_receive_timer`].
    fn run(this: Arc<Self>) {
        this.in_worker(|| this.catch_up());
    }
}

impl WorkItem<HOLD_WORK> for Qp {
    type Pointer = Arc<Self>;

    /// Gives the FPDU at the front a buffer, and receives: see [`Qp::request_buffer`]. May wait for
    /// reclaim for long.
    fn run(this: Arc<Self>) {
        this.in_worker(|| match this.stream.hold() {
            Ok(()) => this.catch_up(),
            Err(failures) => this.hold_later(failures),
        });
    }
}

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
    /// Lets a worker receive the data in the link: the stream may wait for a receive WR, a run may
    /// have left the rest, or the link needs process context. Any context.
    pub(crate) fn retry_receive(self: &Arc<Self>) {
        self.queue().kick::<_, RECEIVE_WORK>(self);
    }

    /// Receives the data in the link. Process context; may sleep.
    fn catch_up(self: &Arc<Self>) {
        if let Some(connection) = self.connection() {
            connection.as_arc_borrow().catch_up();
        }
        // The stream may wait for a receive WR, and may have become the first in line.
        self.arm_receive_timer();
    }

    /// Lets a worker give the FPDU at the front a buffer, as the socket has no room for it. After a
    /// failure the worker does so when its timer expires, whatever the peer sends until then. Any
    /// context.
    pub(super) fn request_buffer(self: &Arc<Self>) {
        self.queue().kick::<_, HOLD_WORK>(self);
    }

    /// Requests the buffer of an FPDU again after some time: there was no memory for it, `failures`
    /// times. The data stays in the socket, and the peer sends again what TCP has dropped. TCP may
    /// have no reason to call back. A request that has come meanwhile waits as well. Process
    /// context.
    #[cold]
    fn hold_later(self: &Arc<Self>, failures: u32) {
        self.queue_later::<HOLD_WORK>(self.pause(failures));
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
        self.stream.while_waiting(|left| {
            self.queue_later::<RECEIVE_TIMER>(left);
        });
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
