// SPDX-License-Identifier: GPL-2.0

//! What becomes of requests when a queue pair is in error.

use crate::{
    abi::{Cqe, Opcode, Status},
    cq::News,
    qp::{Qp, Receives},
};
use kernel::{
    sync::{atomic::ordering, Arc},
    time::msecs_to_jiffies,
};
use rdma::event::Event;

/// Milliseconds between looks for receive requests in ERROR.
const WATCH_MS: u32 = 20;

/// What a consumer is to be told after a flush, when no lock is held.
pub(crate) struct Flushed {
    sent: News,
    received: News,
    last_wqe: bool,
    /// The process posts faster than its requests can be flushed: the rest is for another time.
    pub(crate) more: bool,
}

impl Qp {
    /// Completes every request as flushed: those that are begun, those that wait, and those that
    /// come later. Process context; the caller holds `tx`.
    pub(crate) fn flush(self: &Arc<Self>) -> Flushed {
        // Nothing is placed any more when the first completion is given: not the rest of an answer
        // in the sink of a read, either.
        let filling = {
            let mut rx = self.rx.lock();
            rx.end();
            rx.take_request()
        };
        {
            let mut reads = self.reads.lock();
            reads.outbound.clear();
            reads.inbound.clear();
            self.asked.store(false, ordering::Relaxed);
        }
        let (sent, more_sends) = self.sq.flush(false);
        let (received, more_receives) = self.flush_receives(filling);
        let more = more_sends || more_receives;

        if !more && matches!(self.receives, Receives::Own(_)) {
            let status = self.status.lock();
            // Under the lock: who makes the queue pair dead cancels the watch after that.
            if !status.dead {
                self.watch_receives(msecs_to_jiffies(WATCH_MS));
            }
        }
        Flushed {
            sent,
            received,
            last_wqe: self.take_last_wqe(),
            more,
        }
    }

    /// Tells the consumer of a flush. Under no lock.
    pub(crate) fn tell_flushed(&self, flushed: &Flushed) {
        self.sq.tell(flushed.sent);
        flushed.received.tell(&self.recv_cq);
        if flushed.last_wqe {
            self.tell(Event::LastWqeReached);
        }
    }

    /// Flushes the receive request that was being filled and, in a queue of its own, all others.
    /// Returns whether there are more of these than its ring has room for.
    fn flush_receives(&self, filling: Option<u64>) -> (News, bool) {
        let mut news = News::default();

        if let Some(id) = filling {
            news = news.and(self.complete_receive(id, 0, None, Status::Flushed, false));
        }
        let Receives::Own(queue) = &self.receives else {
            return (news, false);
        };
        for _ in 0..queue.len() {
            let Some(taken) = queue.take() else {
                return (news, false);
            };
            let id = taken.rqe.id;
            news = news.and(self.complete_receive(id, 0, None, Status::Flushed, false));
        }
        (news, true)
    }

    /// Adds the completion of a receive request. Process context or softirq.
    pub(crate) fn complete_receive(
        &self,
        id: u64,
        bytes: u32,
        invalidated: Option<u32>,
        status: Status,
        solicited: bool,
    ) -> News {
        // Held over the adding: when the queue pair has been made dead there is no completion.
        let state = self.status.lock();
        if state.dead {
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
