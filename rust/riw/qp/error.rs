// SPDX-License-Identifier: GPL-2.0

//! A queue pair in ERROR: flushes its WRs, and those that are posted later.

use super::{
    state::Status,
    sweep::{FreePlace, SweepPlace},
    Qp,
};
use crate::stream::{flush::Flushed, tx_state::Tx};
use iwarp::qp::Event;
use kernel::sync::Arc;
use rdma::event::AsyncEvent;

/// Initial and maximum interval between flushes in ERROR, in milliseconds. It doubles while nothing
/// is posted, so that many idle queue pairs in ERROR cost little.
const INTERVAL_MS: u32 = 20;
const INTERVAL_MAX_MS: u32 = 1000;

/// Flushes when a device goes, if the process goes on posting. The first one takes all that it has
/// posted before.
const REMOVAL_FLUSHES: u32 = 2;

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
            if !flushed.more && wakes.is_none() {
                self.flush_later(&mut status);
            }
        }
        QpFlushed { flushed, last_wqe }
    }

    /// Ends the stream, if there is one, and flushes all WRs. Process context; may sleep.
    pub(super) fn flush_for_removal(self: &Arc<Self>) {
        self.event(Event::Abort);
        for _ in 0..REMOVAL_FLUSHES {
            let flushed = {
                let mut tx = self.stream.tx.lock();

                self.flush(&mut tx)
            };

            self.report_flushed(&flushed);
            if !flushed.more() {
                break;
            }
        }
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

    /// Has the device's sweep look at the receive queue after the interval, unless the queue pair
    /// is being destroyed. With siw's ABI, a process rings no doorbell for receive WRs, and may
    /// wait for the flush of one that it posts in ERROR. Process context; `status` is the queue
    /// pair's.
    fn flush_later(self: &Arc<Self>, status: &mut Status) {
        // Under the lock: `destroy` marks the queue pair first, and then takes it out of the sweep.
        if status.is_destroyed() {
            return;
        }
        // Without its place, it is being served: `flush_posted` comes here next.
        if let Some(place) = status.sweep.take(&self.sweep) {
            let ms = status.flush.interval_ms.max(INTERVAL_MS);

            status.sweep = SweepPlace::Waiting(self.sweep.join(place, self, ms));
        }
    }

    /// Flushes WRs that were posted since the last flush. If there are none, the next interval is
    /// longer. `place` is that of the queue pair in the sweep, which calls this. Process context.
    pub(super) fn flush_posted(self: &Arc<Self>, place: FreePlace) {
        let posted = self.stream.rq.is_posted();
        let mut status = self.status.lock();

        status.sweep = SweepPlace::Free(place);
        if !status.is_in_error() {
            return;
        }
        if posted {
            drop(status);
            // The flush calls `flush_later`.
            return self.kick();
        }
        let longer = status.flush.interval_ms.saturating_mul(2);

        status.flush.interval_ms = longer.clamp(INTERVAL_MS, INTERVAL_MAX_MS);
        self.flush_later(&mut status);
    }

    /// Takes the queue pair out of the sweep, for good: it is marked as destroyed. Process context.
    /// If the sweep is serving it at the moment, the sweep has a reference, and drops it.
    pub(super) fn leave_sweep(self: &Arc<Self>) {
        let place = self.status.lock().sweep.take(&self.sweep);
        drop(place);
    }
}
