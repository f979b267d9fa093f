// SPDX-License-Identifier: GPL-2.0

//! WRs that kernel users post, and the doorbell of receive queues. Kernel users post in any
//! context, also with interrupts off: posting neither sleeps, transmits, nor calls the consumer. A
//! worker does that.

use super::{receive_work::receive_posted, Qp};
use crate::{
    driver::Riw,
    queue::{kernel_wr::PostedSend, wr::RecvWr},
    stream::tx_state::TxRun,
};
use iwarp::qp::State;
use kernel::{prelude::*, sync::Arc};
use rdma::wr::{RecvWrs, SendWrs};
use trace::Source;

impl Qp {
    /// Posts send WRs of a kernel user. Any context. Fails with `EINVAL` if the queue pair has not
    /// been connected, and as [`PostedSend::new`] and
    /// [`PostedWrs::post`](crate::queue::posted::PostedWrs::post) do.
    pub(crate) fn post_send(self: &Arc<Self>, wrs: &mut SendWrs<'_, Riw>) -> Result {
        if self.current.load() == Some(State::Idle) {
            return Err(EINVAL);
        }
        let mut post_all = || {
            while let Some(wr) = wrs.next_wr() {
                let wr = PostedSend::new(wr)?;

                trace::wr_post(&**self, || wr.traced());
                self.stream.sq.post(wr)?;
            }
            Ok(())
        };
        let posted = post_all();

        // WRs before the one that failed are posted.
        self.kick();
        posted
    }

    /// Posts receive WRs of a kernel user. Any context. Fails as
    /// [`QpRecvQueue::post`](crate::queue::qp_receive::QpRecvQueue::post) does.
    pub(crate) fn post_recv(self: &Arc<Self>, wrs: &mut RecvWrs<'_>) -> Result {
        let posted = self.stream.rq.post(wrs, |wr| {
            trace::wr_post(&**self, || RecvWr::traced(wr));
        });

        if self.flushes_posted() {
            self.kick();
        }
        posted
    }

    /// Handles the doorbell of the receive queue: a process has posted a WR for which riw has
    /// requested it
    /// ([`RecvQueue::wake_for_next`](crate::queue::receive::RecvQueue::wake_for_next)). Process
    /// context; may sleep. In error the caller flushes the queue, so that the time is its own.
    /// Fails with `EINVAL` if the queue is shared.
    pub(crate) fn ring_recv_doorbell(self: &Arc<Self>) -> Result {
        if self.stream.rq.is_shared() {
            return Err(EINVAL);
        }
        trace::recv_doorbell(&**self);
        if self.flushes_posted() && self.runner.want() {
            self.transmit(TxRun::Doorbell);
        }
        Ok(())
    }

    /// Notes that a WR has been posted to the receive queue. Any context. Returns whether it needs
    /// a transmit run, which flushes it.
    fn flushes_posted(self: &Arc<Self>) -> bool {
        // A full barrier, so that the WR is posted before the check: either this sees the error, or
        // the flush, which a full barrier in `kick` precedes, sees the WR.
        receive_posted(self.device(), self.stream.rq.queue());
        self.is_in_error()
    }
}
