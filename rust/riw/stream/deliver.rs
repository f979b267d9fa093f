// SPDX-License-Identifier: GPL-2.0

//! Delivery: from a complete message to a notified consumer.
//!
//! A message completes a WR in one of these ways, under the locks of its direction:
//!
//! | message | function | completes |
//! |---|---|---|
//! | Send, received | [`Stream::deliver_send`] | the receive WR that it filled |
//! | Read Response, received | [`Stream::finish_read`] | the oldest read |
//! | Send or Write, gathered | [`Stream::complete_sent`] | its send WR |
//! | any, with an error | [`Stream::fail_wr`], [`Stream::fail_recv`] | its WR |
//! | none: the queue pair is in error | [`Stream::flush`] | all WRs |
//!
//! The consumer is notified by [`Stream::report`], when no lock is held.

use crate::{
    queue::{
        completion::PendingNotify,
        qp_receive::{FlushedReceives, RecvDone},
        wr::WcStatus,
    },
    stream::{gather::Active, Stream, StreamError},
};
use iwarp::{Denied, Local, Stag};
use kernel::{prelude::*, sync::atomic::ordering};

/// Completions that the consumer has not been notified of.
#[derive(Default)]
pub(crate) struct Unreported {
    recv: PendingNotify,
    send: PendingNotify,
    /// The shared receive queue has fallen below its limit.
    pub(super) srq_limit: bool,
}

/// A completion was lost to an overflow of its CQ.
pub(crate) struct Lost;

impl Stream {
    /// Delivers a Send that is complete: invalidates the region that it names, then completes the
    /// receive WR `id`. Softirq or process context. Fails if the peer may not invalidate the region.
    pub(super) fn deliver_send(
        &self,
        id: u64,
        bytes: u32,
        solicited: bool,
        invalidate: Option<Stag>,
        unreported: &mut Unreported,
    ) -> Result<(), Denied> {
        if let Some(stag) = invalidate {
            self.regions.invalidate(stag)?;
        }
        let done = RecvDone {
            id,
            status: WcStatus::Success,
            bytes,
            invalidated: invalidate,
            solicited,
        };

        unreported.recv = unreported.recv.and(self.rq.complete(&done));
        Ok(())
    }

    /// Completes receive WR `id` with an error. Softirq or process context.
    pub(super) fn fail_recv(&self, id: u64, status: WcStatus, unreported: &mut Unreported) {
        let done = RecvDone::failed(id, status);

        unreported.recv = unreported.recv.and(self.rq.complete(&done));
    }

    /// Finishes the oldest read of this side. Softirq or process context. Returns whether the
    /// transmitter waits for the end of a read.
    pub(super) fn finish_read(&self, status: WcStatus, unreported: &mut Unreported) -> bool {
        // Under the lock: to the transmitter, a read that has left the queue is complete.
        let mut reads = self.reads.lock();

        if let Some(number) = reads.outbound.pop().and_then(|outbound| outbound.number) {
            self.finish_wr(number, status, unreported);
        }
        core::mem::take(&mut reads.tx_blocked)
    }

    /// Finishes send WR `number`. Softirq or process context.
    pub(super) fn finish_wr(&self, number: u32, status: WcStatus, unreported: &mut Unreported) {
        unreported.send = unreported.send.and(self.sq.finish(number, status));
    }

    /// Fails send WR `number`, and notifies the consumer. The caller ends the stream, so a lost
    /// completion changes nothing. Softirq or process context; no lock but `tx` is held.
    pub(super) fn fail_wr(&self, number: u32, status: WcStatus) {
        let mut unreported = Unreported::default();

        self.finish_wr(number, status, &mut unreported);
        let _ = self.report(&unreported);
    }

    /// Finishes a message that has been gathered whole: its buffers are the consumer's again.
    /// Process context. Fails if the completion is lost.
    pub(super) fn complete_sent(&self, active: Option<Active>) -> Result<(), StreamError> {
        match active {
            Some(Active::Request { number, .. }) => {
                let mut unreported = Unreported::default();

                self.finish_wr(number, WcStatus::Success, &mut unreported);
                self.report(&unreported)
                    .map_err(|Lost| StreamError::local(Local::Completion))
            }
            Some(Active::Response(_)) => {
                let mut reads = self.reads.lock();

                reads.inbound.pop();
                self.response_due
                    .store(!reads.inbound.is_empty(), ordering::Relaxed);
                Ok(())
            }
            Some(Active::Control) | None => Ok(()),
        }
    }

    /// Notifies the consumer. Any context; no lock but `tx` is held. Fails if a completion is lost:
    /// the consumer can no longer tell which WRs are done, so the stream must end.
    pub(crate) fn report(&self, unreported: &Unreported) -> Result<(), Lost> {
        self.rq.notify_cq(unreported.recv);
        self.sq.notify_cq(unreported.send);
        if unreported.srq_limit {
            self.rq.report_limit();
        }
        if unreported.recv.lost || unreported.send.lost {
            return Err(Lost);
        }
        Ok(())
    }

    /// Flushes the send queue. Process context. Returns whether there may be more WRs.
    pub(super) fn flush_sends(&self, unreported: &mut Unreported) -> bool {
        let (pending, more) = self.sq.flush(false);

        unreported.send = unreported.send.and(pending);
        more
    }

    /// Flushes the receive queue, unless it is shared. Process context.
    pub(super) fn flush_receives(&self, unreported: &mut Unreported) -> FlushedReceives {
        let (pending, flushed) = self.rq.flush();

        unreported.recv = unreported.recv.and(pending);
        flushed
    }
}
