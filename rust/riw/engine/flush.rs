// SPDX-License-Identifier: GPL-2.0

//! What becomes of requests when a queue pair is in error.

use crate::{
    abi::{Cqe, Opcode, Status},
    cq::News,
    qp::{Qp, Receives},
};
use kernel::{sync::Arc, time::msecs_to_jiffies};
use rdma::event::Event;

/// Milliseconds between looks for receive requests in ERROR.
const WATCH_MS: u32 = 20;

impl Qp {
    /// Completes every request as flushed: those that are begun, those that wait, and those that
    /// come later. Returns whether more have come meanwhile than there is room for: they are for
    /// another time. Process context; the caller has the right to transmit and holds no lock.
    pub(crate) fn flush(self: &Arc<Self>) -> bool {
        self.reads.lock().outbound.clear();
        self.reads.lock().inbound.clear();

        let (news, more) = self.sq.flush(false);
        self.sq.tell(news);

        let more = self.flush_receives() || more;
        if self.take_last_wqe() {
            self.tell(Event::LastWqeReached);
        }
        if !more && matches!(self.receives, Receives::Own(_)) {
            let status = self.status.lock();
            // Under the lock: who makes the queue pair dead cancels the watch after that.
            if !status.dead {
                self.watch_receives(msecs_to_jiffies(WATCH_MS));
            }
        }
        more
    }

    /// Flushes the receive request that is being filled and, in a queue of its own, all others.
    /// Returns whether the process posts faster than they can be flushed.
    fn flush_receives(&self) -> bool {
        let mut news = News::default();
        let mut more = true;

        // After this the receiver places nothing any more.
        let active = {
            let mut rx = self.rx.lock();
            rx.end();
            rx.take_request()
        };
        if let Some(id) = active {
            news = news.and(self.complete_receive(id, 0, None, Status::Flushed, false));
        }
        if let Receives::Own(queue) = &self.receives {
            for _ in 0..queue.len() {
                let Some(taken) = queue.take() else {
                    more = false;
                    break;
                };
                news = news.and(self.complete_receive(
                    taken.rqe.id,
                    0,
                    None,
                    Status::Flushed,
                    false,
                ));
            }
        } else {
            more = false;
        }
        news.tell(&self.recv_cq);
        more
    }

    /// Adds the completion of a receive request. Any context.
    pub(crate) fn complete_receive(
        &self,
        id: u64,
        bytes: u32,
        invalidated: Option<u32>,
        status: Status,
        solicited: bool,
    ) -> News {
        if self.status.lock().dead {
            return News::default();
        }
        self.recv_cq.add(
            &Cqe {
                id,
                opcode: Opcode::Receive,
                status,
                bytes,
                invalidated,
                qp: self.number,
            },
            solicited,
        )
    }

    /// Empties the queues without completions. Process context.
    pub(crate) fn discard_requests(&self) {
        let _ = self.sq.flush(true);
        if let Receives::Own(queue) = &self.receives {
            for _ in 0..queue.len() {
                if queue.take().is_none() {
                    break;
                }
            }
        }
    }
}
