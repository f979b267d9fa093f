// SPDX-License-Identifier: GPL-2.0

//! The state of a send queue, under its lock.

use super::{
    fifo::Fifo,
    wr::{WcStatus, WrId, WrReport},
    QpObject,
};
use kernel::sync::aref::ARef;

/// Counts how often a send queue has been opened: once for each connection. It may wrap: it is
/// compared only within a call.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Generation(pub(super) u32);

pub(super) struct SendState {
    pub(super) begun: Fifo<BegunWr>,
    pub(super) generation: Generation,
    /// The stream is closing: WRs from this number on are flushed, not begun.
    pub(super) end: Option<u32>,
    /// The queue pair, to be named in completions. `None` before it is published, and when it is
    /// being destroyed: no completions are given then.
    pub(super) object: Option<ARef<QpObject>>,
    /// The WR before the next one is still in its place, as the transmitter looks for WRs by
    /// itself.
    pub(super) keeps_last: bool,
}

/// How full a send queue is.
pub(crate) struct SendDepth {
    /// WRs that are posted and not begun.
    pub(crate) posted: u32,
    /// WRs that are begun and not completed.
    pub(crate) begun: u32,
}

/// A WR that was begun.
pub(super) struct BegunWr {
    pub(super) report: WrReport,
    pub(super) progress: WrProgress,
}

/// How far a WR is.
pub(super) enum WrProgress {
    /// The transmitter has it.
    Sending,
    /// It is sent, and waits for the peer's response. [`WrId::LENT`] if memory is lent for it.
    Waiting(WrId),
    /// It is done, and waits for the WRs before it.
    Done(WrId, WcStatus),
}

impl SendState {
    /// Returns the state of a queue that has given no WR. Any context.
    pub(super) fn new(begun: Fifo<BegunWr>) -> Self {
        Self {
            begun,
            generation: Generation(0),
            end: None,
            object: None,
            keeps_last: false,
        }
    }

    /// Gives WR `number`, which waits for a response, its id.
    pub(super) fn return_id(&mut self, number: u32, id: WrId) {
        if let Some(begun) = self.begun.get(number) {
            if let WrProgress::Waiting(own) = &mut begun.progress {
                *own = id;
            }
        }
    }

    /// Notes that WR `number`, which waits for a response, is done. `lent`: its id, if memory was
    /// lent for it.
    pub(super) fn finish_waiting(&mut self, number: u32, lent: Option<WrId>, status: WcStatus) {
        if let Some(begun) = self.begun.get(number) {
            begun.progress = match core::mem::replace(&mut begun.progress, WrProgress::Sending) {
                WrProgress::Waiting(id) => {
                    let mut id = lent.unwrap_or(id);

                    // Now, and not with its completion: a fenced WR may register the sink next.
                    if let Some(qp) = &self.object {
                        invalidate(&mut id, qp);
                    }
                    WrProgress::Done(id, status)
                }
                other => other,
            };
        }
    }

    /// Whether all WRs that were begun are done.
    pub(super) fn all_done(&mut self) -> bool {
        (0..self.begun.len()).all(|at| {
            let number = self.begun.number(at);

            (self.begun.get(number))
                .is_some_and(|begun| matches!(begun.progress, WrProgress::Done(..)))
        })
    }

    /// Whether WR `next` is at the end or behind it. It can be behind: the transmitter begins a
    /// WR that it peeked at before the end was set.
    pub(super) fn is_past_end(&self, next: u32) -> bool {
        self.end
            .is_some_and(|end| next.wrapping_sub(end) <= u32::MAX / 2)
    }
}

/// Ends the registration that a kernel user's WR of `qp` invalidates, unless it has done so:
/// consumers that wait for the completion free the memory, whatever the status. Process context or
/// softirq.
pub(super) fn invalidate(id: &mut WrId, qp: &QpObject) {
    let id = id.of_kernel().filter(|id| id.invalidates().is_some());

    if let (Some(id), Some(registrar)) = (id, qp.registrar()) {
        // There may be no such registration: a peer can invalidate it, too.
        let _ = registrar.invalidate(id);
    }
}
