// SPDX-License-Identifier: GPL-2.0

//! Flushing: completes WRs of a queue pair in error.

use crate::{
    queue::{receive::NextTurn, send::Flush, wr::WcStatus},
    stream::{deliver::Unreported, tx_state::Tx, Stream},
};
use kernel::sync::atomic::ordering;

/// The outcome of a flush.
pub(crate) struct Flushed {
    pub(crate) unreported: Unreported,
    /// It flushed WRs of a receive queue of its own.
    pub(crate) receives: bool,
    /// The process posts faster than its WRs are flushed: flush again later.
    pub(crate) more: bool,
    /// The stream has waited for a receive WR of a shared queue.
    pub(crate) next: NextTurn,
}

impl Stream {
    /// Completes every WR as flushed: begun ones, posted ones, and those posted meanwhile. Nothing
    /// is received afterwards. Before the first completion, all that the queue pair has registered
    /// ends. Process context.
    pub(crate) fn flush(&self, tx: &mut Tx) -> Flushed {
        // Stop placing before the first completion: the peer's data must not reach the sink of a
        // flushed read.
        let (next, filling) = {
            let mut rx = self.rx.lock();
            (rx.end(&self.rq), rx.take_filling())
        };
        // Nor does the transmitter read anything: the caller holds `tx`.
        self.regions.revoke();
        {
            let mut reads = self.reads.lock();

            while let Some(outbound) = reads.outbound.pop() {
                self.end_read(outbound);
            }
            reads.inbound.clear();
            self.response_due.store(false, ordering::Relaxed);
        }
        let mut unreported = Unreported::default();

        let more_sends = self.flush_sends(tx.take_active(), &mut unreported);
        if let Some(id) = filling {
            self.fail_recv(id, WcStatus::Flushed, &mut unreported);
        }
        let receives = self.flush_receives(&mut unreported);
        Flushed {
            unreported,
            receives: receives.any,
            more: more_sends || receives.more,
            next,
        }
    }

    /// Drops every WR without a completion. Process context.
    pub(super) fn discard_wrs(&self) {
        let _ = self.sq.flush(Flush::Discard);
        self.sq.reopen();
        self.rq.discard();
    }
}
