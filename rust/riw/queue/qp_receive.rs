// SPDX-License-Identifier: GPL-2.0

//! The receive queue as one queue pair uses it: takes WRs, and completes them.

use crate::{
    mr::Invalidated,
    queue::{
        completion::{add_completion, Completion, CqObject, PendingNotify, ReceivedImmediate},
        receive::{NextTurn, RecvQueue, SrqObject, TakenWr},
        wr::{Buffers, Posted, WcOpcode, WcStatus, WrId},
        QpObject,
    },
};
use kernel::{
    prelude::*,
    sync::{aref::ARef, Arc},
};
use kernel_ext::sync::{new_bh_spinlock, BhSpinLock};

/// The queue that a queue pair takes its receive WRs from.
pub(crate) enum RecvSource {
    Own(Arc<RecvQueue>),
    Shared(ARef<SrqObject>),
}

impl RecvSource {
    /// Returns the queue. Any context.
    fn queue(&self) -> &RecvQueue {
        match self {
            Self::Own(queue) => queue,
            Self::Shared(queue) => queue,
        }
    }
}

/// A source with the queue pair as a user of its queue.
struct UsedSource(RecvSource);

impl UsedSource {
    /// Process context; may sleep. Fails with `ENOMEM` without memory.
    fn new(source: RecvSource) -> Result<Self> {
        source.queue().add_user()?;
        Ok(Self(source))
    }
}

impl Drop for UsedSource {
    fn drop(&mut self) {
        self.0.queue().remove_user();
    }
}

/// A queue pair's receive queue, or its part in a shared one, and its receive completions.
#[pin_data]
pub(crate) struct QpRecvQueue {
    source: UsedSource,
    cq: ARef<CqObject>,
    /// The consumer takes Immediate Data.
    takes_immediate: bool,
    /// The number of the queue pair.
    qp: u32,
    /// The queue pair, to be named in completions. `None` before it is published, and when it is
    /// being destroyed: no completions are given then. Held while a completion is added, so that
    /// none comes after [`Self::kill`].
    #[pin]
    object: BhSpinLock<Option<ARef<QpObject>>>,
}

/// A receive WR that is done.
pub(crate) struct RecvDone {
    pub(crate) id: WrId,
    pub(crate) status: WcStatus,
    /// Length of the message in bytes: at most the size of the WR's buffers.
    pub(crate) bytes: u32,
    pub(crate) invalidated: Option<Invalidated>,
    pub(crate) immediate: Option<ReceivedImmediate>,
    pub(crate) solicited: bool,
}

impl RecvDone {
    /// A WR that failed, or that is flushed.
    pub(crate) fn failed(id: WrId, status: WcStatus) -> Self {
        Self {
            id,
            status,
            bytes: 0,
            invalidated: None,
            immediate: None,
            solicited: false,
        }
    }
}

impl QpRecvQueue {
    /// Creates the receive side of queue pair `qp`. `takes_immediate`: the consumer takes Immediate
    /// Data, if `cq` can carry them. Process context; may sleep. Fails with `ENOMEM` without
    /// memory.
    pub(crate) fn new(
        source: RecvSource,
        cq: ARef<CqObject>,
        takes_immediate: bool,
        qp: u32,
    ) -> Result<impl PinInit<Self>> {
        let source = UsedSource::new(source)?;

        Ok(pin_init!(Self {
            source,
            takes_immediate: takes_immediate && cq.carries_immediate(),
            cq,
            qp,
            object <- new_bh_spinlock!(None, "riw::QpRecvQueue::object"),
        }))
    }

    /// Returns the queue. Any context.
    pub(crate) fn queue(&self) -> &RecvQueue {
        self.source.0.queue()
    }

    /// Whether other queue pairs use the queue, too. Any context.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self.source.0, RecvSource::Shared(_))
    }

    /// Returns the number of posted WRs; `None` for a shared queue. Process context or softirq.
    pub(crate) fn posted(&self) -> Option<u32> {
        match &self.source.0 {
            RecvSource::Own(queue) => Some(queue.posted()),
            RecvSource::Shared(_) => None,
        }
    }

    /// Whether a WR is posted to a queue of its own. Process context or softirq.
    pub(crate) fn is_posted(&self) -> bool {
        match &self.source.0 {
            RecvSource::Own(queue) => queue.is_posted(),
            RecvSource::Shared(_) => false,
        }
    }

    /// Whether Immediate Data can be delivered to the consumer. Any context.
    pub(crate) fn takes_immediate(&self) -> bool {
        self.takes_immediate
    }

    /// Takes the oldest WR in turn, as [`RecvQueue::take_in_turn`] does. Process context or
    /// softirq.
    pub(crate) fn take_in_turn(
        &self,
        waits: bool,
        buffers: &mut Buffers,
    ) -> (Option<TakenWr>, NextTurn) {
        self.queue().take_in_turn(self.qp, waits, buffers)
    }

    /// Whether the queue pair is the first in line for a WR. Any context.
    pub(crate) fn is_first_in_line(&self) -> bool {
        self.queue().is_first_in_line(self.qp)
    }

    /// Waits for a WR no longer. Process context or softirq.
    pub(crate) fn leave(&self) -> NextTurn {
        self.queue().leave(self.qp)
    }

    /// Has the poster ring the doorbell for the next WR of a queue of its own: see
    /// [`RecvQueue::wake_for_next`]. Process context or softirq. `None` for a shared queue.
    pub(crate) fn wake_for_next(&self) -> Option<bool> {
        match &self.source.0 {
            RecvSource::Own(queue) => queue.wake_for_next(),
            RecvSource::Shared(_) => None,
        }
    }

    /// Posts WRs of a kernel user, as [`RecvQueue::post`] does. Any context. Fails with `EINVAL` if
    /// the queue is shared, and as [`RecvQueue::post`] does.
    pub(crate) fn post(&self, wrs: &mut rdma::wr::RecvWrs<'_>, note: impl Fn(&Posted)) -> Result {
        match &self.source.0 {
            RecvSource::Own(queue) => queue.post(wrs, note),
            RecvSource::Shared(_) => Err(EINVAL),
        }
    }

    /// Adds the completion of a WR. Process context or softirq.
    pub(crate) fn complete(&self, done: RecvDone) -> PendingNotify {
        let object = self.object.lock();
        let Some(object) = &*object else {
            return PendingNotify::default();
        };
        let completion = Completion {
            id: done.id,
            opcode: match done.immediate {
                None => WcOpcode::Receive,
                // As Chelsio's and Intel's adapters, also if no RDMA Write came before it.
                Some(_) => WcOpcode::ReceiveImmediate,
            },
            status: done.status,
            bytes: done.bytes,
            invalidated: done.invalidated,
            immediate: done.immediate,
            qp: self.qp,
        };

        add_completion(&self.cq, completion, object, done.solicited)
    }

    /// Flushes the WRs of a queue of its own. Process context.
    pub(crate) fn flush(&self) -> (PendingNotify, FlushedReceives) {
        let mut pending = PendingNotify::default();
        let RecvSource::Own(queue) = &self.source.0 else {
            return (pending, FlushedReceives::default());
        };
        let mut flushed = FlushedReceives::default();
        let mut buffers = Buffers::none();

        for _ in 0..queue.len() {
            let Some(taken) = queue.take(&mut buffers) else {
                return (pending, flushed);
            };

            let id = buffers.give_up().unwrap_or(taken.wr.id);
            let done = RecvDone::failed(id, WcStatus::Flushed);

            pending = pending.and(self.complete(done));
            flushed.any = true;
        }
        // As many as the ring has room for: the process may be posting more.
        flushed.more = true;
        (pending, flushed)
    }

    /// Drops the WRs of a queue of its own without completions. Process context.
    pub(crate) fn discard(&self) {
        let mut buffers = Buffers::none();

        if let RecvSource::Own(queue) = &self.source.0 {
            for _ in 0..queue.len() {
                if queue.take(&mut buffers).is_none() {
                    break;
                }
            }
        }
    }

    /// Gives completions, for queue pair `object`. Process context.
    pub(crate) fn publish(&self, object: &QpObject) {
        *self.object.lock() = Some(object.into());
    }

    /// Gives no more completions, and takes back those that a kernel user has not polled. Process
    /// context.
    pub(crate) fn kill(&self) {
        let object = self.object.lock().take();

        if let Some(object) = object {
            self.cq.forget(&object);
        }
    }

    /// Notifies the consumer, as [`PendingNotify::notify_cq`] does.
    pub(crate) fn notify_cq(&self, pending: PendingNotify) {
        pending.notify_cq(&self.cq);
    }

    /// Reports that the shared queue has fallen below its limit. Process context or softirq; the
    /// caller holds none of the locks 14 to 23 (`Documentation/locking.md`).
    pub(crate) fn report_limit(&self) {
        if let RecvSource::Shared(srq) = &self.source.0 {
            srq.limit_reached();
        }
    }
}

/// The outcome of [`QpRecvQueue::flush`].
#[derive(Clone, Copy, Default)]
pub(crate) struct FlushedReceives {
    /// It flushed WRs.
    pub(crate) any: bool,
    /// There may be more.
    pub(crate) more: bool,
}
