// SPDX-License-Identifier: GPL-2.0

//! A queue pair in ERROR: flushes its WRs, and those that are posted later.

use super::{Qp, FLUSH_WORK};
use crate::stream::{flush::Flushed, tx::Tx};
use kernel::{sync::Arc, time::msecs_to_jiffies};
use kernel_ext::workqueue::mod_delayed_work;
use rdma::event::AsyncEvent;

/// Initial and maximum interval between flushes in ERROR, in milliseconds. It doubles while nothing
/// is posted, so that many idle queue pairs in ERROR cost little.
const INTERVAL_MS: u32 = 20;
const INTERVAL_MAX_MS: u32 = 1000;

/// A flush that is not reported yet.
pub(super) struct QpFlushed {
    flushed: Flushed,
    /// `LAST_WQE_REACHED` is due.
    last_wqe: bool,
}

impl QpFlushed {
    /// Whether the process posts faster than its WRs are flushed: flush again later.
    pub(super) fn more(&self) -> bool {
        self.flushed.more
    }
}

impl Qp {
    /// Flushes all WRs. Process context; the caller holds `tx`, so that no reset comes in between.
    /// The result is for [`Self::report_flushed`].
    pub(super) fn flush(self: &Arc<Self>, tx: &mut Tx) -> QpFlushed {
        let mut flushed = self.stream.flush(tx);
        let wakes = match flushed.more {
            true => None,
            false => self.stream.rq.wake_for_next(),
        };
        // Posted before the process could see that it must ring the doorbell.
        flushed.more |= wakes == Some(true);
        let mut status = self.status.lock();
        let mut last_wqe = false;

        if self.stream.rq.is_shared() {
            last_wqe = !core::mem::replace(&mut status.flush.last_wqe_reported, true);
        } else if !self.owner.is_kernel() {
            if flushed.receives {
                status.flush.interval_ms = 0;
            }
            // Under the lock: `destroy` marks the queue pair first, and then cancels the work.
            if !flushed.more && wakes.is_none() && !status.is_destroyed() {
                self.flush_later(status.flush.interval_ms.max(INTERVAL_MS));
            }
        }
        QpFlushed { flushed, last_wqe }
    }

    /// Notifies the consumer of a flush. Process context; no lock but `tx` is held.
    pub(super) fn report_flushed(&self, flushed: &QpFlushed) {
        // A lost completion changes nothing any more: the stream has ended.
        let _ = self.stream.report(&flushed.flushed.unreported);
        self.pass_turn(flushed.flushed.next);
        if flushed.last_wqe {
            self.report_event(AsyncEvent::LastWqeReached);
        }
    }

    /// Flushes again after `ms` milliseconds. With siw's ABI, a process rings no doorbell for receive WRs,
    /// and may wait for the flush of one that it posts in ERROR. Any context.
    fn flush_later(self: &Arc<Self>, ms: u32) {
        mod_delayed_work::<Self, FLUSH_WORK>(self, msecs_to_jiffies(ms));
    }

    /// Flushes WRs that were posted since the last flush. If there are none, the next interval is
    /// longer. Process context.
    pub(super) fn flush_again(self: &Arc<Self>) {
        {
            let mut status = self.status.lock();
            let longer = status.flush.interval_ms.saturating_mul(2);

            status.flush.interval_ms = longer.clamp(INTERVAL_MS, INTERVAL_MAX_MS);
        }
        self.kick();
    }
}
