// SPDX-License-Identifier: GPL-2.0

//! What becomes of requests when a queue pair is in error.

use crate::{
    abi::{Cqe, Opcode, Status},
    qp::{Qp, Receives},
    queue::completion::News,
};
use kernel::{
    sync::{atomic::ordering, Arc},
    time::msecs_to_jiffies,
};
use rdma::event::Event;

/// Milliseconds between looks for receive requests in ERROR, from one that has found some to one
/// after a long time that has not: who makes many queue pairs does not keep the machine busy.
const WATCH_MS: u32 = 20;
const WATCH_MAX_MS: u32 = 1000;

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
        let (received, taken) = self.flush_receives(filling);
        let mut more = more_sends;

        if let Receives::Own(queue) = &self.receives {
            more |= taken == queue.len();
            let mut status = self.status.lock();
            if taken > 0 {
                status.watch_ms = 0;
            }
            // Under the lock: who makes the queue pair dead cancels the watch after that.
            if !more && !status.dead {
                self.watch_receives(msecs_to_jiffies(status.watch_ms.max(WATCH_MS)));
            }
        }
        Flushed {
            sent,
            received,
            last_wqe: self.take_last_wqe(),
            more,
        }
    }

    /// It is time to look for receive requests again. If there are none, the next time is later.
    pub(crate) fn look_for_receives(self: &Arc<Self>) {
        {
            let mut status = self.status.lock();
            let longer = status.watch_ms.saturating_mul(2);

            status.watch_ms = longer.clamp(WATCH_MS, WATCH_MAX_MS);
        }
        self.kick();
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
    /// Returns how many of these there were; if that is what its ring has room for, the process goes
    /// on posting.
    fn flush_receives(&self, filling: Option<u64>) -> (News, u32) {
        let mut news = News::default();

        if let Some(id) = filling {
            news = news.and(self.complete_receive(id, 0, None, Status::Flushed, false));
        }
        let Receives::Own(queue) = &self.receives else {
            return (news, 0);
        };
        for taken in 0..queue.len() {
            let Some(request) = queue.take() else {
                return (news, taken);
            };
            let id = request.rqe.id;
            news = news.and(self.complete_receive(id, 0, None, Status::Flushed, false));
        }
        (news, queue.len())
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

    /// Empties the queues without completions, for a new beginning. Process context.
    pub(crate) fn discard_requests(&self) {
        let _ = self.sq.flush(true);
        self.sq.reopen();
        if let Receives::Own(queue) = &self.receives {
            for _ in 0..queue.len() {
                if queue.take().is_none() {
                    break;
                }
            }
        }
    }
}
