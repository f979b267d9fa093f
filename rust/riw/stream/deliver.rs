// SPDX-License-Identifier: GPL-2.0

//! Delivery: from a complete message to a notified consumer.
//!
//! A message completes a WR in one of these ways, under the locks of its direction:
//!
//! | message | function | completes |
//! |---|---|---|
//! | Send, received | [`Stream::deliver_send`] | the receive WR that it filled |
//! | Immediate Data, received | [`Stream::deliver_immediate`] | a receive WR |
//! | Read or Atomic Response, received | [`Stream::finish_read`] | the oldest read |
//! | Send or Write, gathered | [`Stream::complete_sent`] | its send WR |
//! | none: the WR registers, invalidates or binds | `Stream::executed` | the send WR |
//! | an error | [`Stream::finish_wr`], [`Stream::fail_read`], [`Stream::fail_recv`] | its WR |
//! | none: the queue pair is in error | [`Stream::flush`] | all WRs |
//!
//! The consumer is notified by [`Stream::report`], when no lock of the stream is held but `tx`. The
//! receiver's caller has locked the socket, or the inlet of the link.

use crate::{
    queue::{
        completion::{PendingNotify, ReceivedImmediate},
        qp_receive::{FlushedReceives, RecvDone},
        send::Flush,
        wr::{WcStatus, WrId, WrPlace},
    },
    stream::{gather::Active, reads::Outbound, Stream, StreamError},
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
    /// receive WR `id`. Softirq or process context. Fails if the peer may not invalidate the
    /// region; the WR has failed then.
    pub(super) fn deliver_send(
        &self,
        id: WrId,
        bytes: u32,
        solicited: bool,
        invalidate: Option<Stag>,
        unreported: &mut Unreported,
    ) -> Result<(), Denied> {
        let invalidated = match invalidate.map(|stag| self.regions.invalidate(stag)) {
            Some(Err(denied)) => {
                self.fail_recv(id, WcStatus::LocalAccess, unreported);
                return Err(denied);
            }
            Some(Ok(invalidated)) => Some(invalidated),
            None => None,
        };
        let done = RecvDone {
            id,
            status: WcStatus::Success,
            bytes,
            invalidated,
            immediate: None,
            solicited,
        };

        unreported.recv = unreported.recv.and(self.rq.complete(done));
        Ok(())
    }

    /// Delivers Immediate Data: completes the receive WR `id`, whose buffers stay empty. Softirq or
    /// process context.
    pub(super) fn deliver_immediate(
        &self,
        id: WrId,
        immediate: ReceivedImmediate,
        solicited: bool,
        unreported: &mut Unreported,
    ) {
        let done = RecvDone {
            id,
            status: WcStatus::Success,
            bytes: 0,
            invalidated: None,
            immediate: Some(immediate),
            solicited,
        };

        unreported.recv = unreported.recv.and(self.rq.complete(done));
    }

    /// Returns the status of a WR, which is flushed if its memory has ended with the stream.
    fn status(&self, status: WcStatus) -> WcStatus {
        match status {
            WcStatus::LocalProtection if self.regions.has_ended() => WcStatus::Flushed,
            status => status,
        }
    }

    /// Completes receive WR `id` with an error. Softirq or process context.
    pub(super) fn fail_recv(&self, id: WrId, status: WcStatus, unreported: &mut Unreported) {
        let done = RecvDone::failed(id, self.status(status));

        unreported.recv = unreported.recv.and(self.rq.complete(done));
    }

    /// Finishes the oldest read of this side. Softirq or process context. Returns whether the
    /// transmitter waits for the end of a read, or has to complete WRs that waited for this one.
    pub(super) fn finish_read(&self, status: WcStatus, unreported: &mut Unreported) -> bool {
        // Under the lock: to the transmitter, a read that has left the queue is complete.
        let mut reads = self.reads.lock();

        if let Some(Outbound {
            number, awaited, ..
        }) = reads.outbound.pop()
        {
            let lent = awaited.give_up_sink();

            if let Some(number) = number {
                let pending = self.sq.finish_waiting(number, lent, self.status(status));

                unreported.send = unreported.send.and(pending);
            }
        }
        core::mem::take(&mut reads.tx_blocked) || self.sq.has_rest()
    }

    /// Completes the WRs that a receiver has left to the transmitter. Process context; no lock but
    /// `tx` is held. Fails if a completion is lost.
    pub(super) fn complete_rest(&self) -> Result<(), StreamError> {
        if !self.sq.has_rest() {
            return Ok(());
        }
        let send = self.sq.complete_rest();

        self.report(&Unreported {
            send,
            ..Unreported::default()
        })
        .map_err(|Lost| StreamError::local(Local::Completion))
    }

    /// Gives up the sink of a read that gets no response. Its WR is left to be completed. Softirq
    /// or process context.
    pub(super) fn end_read(&self, outbound: Outbound) {
        let lent = outbound.awaited.give_up_sink();

        if let (Some(number), Some(id)) = (outbound.number, lent) {
            self.sq.return_id(number, id);
        }
    }

    /// Fails read `number`, which waits for its response, and notifies the consumer. The caller
    /// ends the stream, so a lost completion changes nothing. Softirq or process context; no lock
    /// is held.
    pub(super) fn fail_read(&self, number: u32, status: WcStatus) {
        let send = self.sq.finish_waiting(number, None, status);

        let _ = self.report(&Unreported {
            send,
            ..Unreported::default()
        });
    }

    /// Finishes a send WR, and notifies the consumer. Process context; no lock but `tx` is
    /// held. Fails if the completion is lost.
    pub(super) fn finish_wr(&self, place: WrPlace, id: WrId, status: WcStatus) -> Result<(), Lost> {
        let send = self.sq.finish(place, id, self.status(status));

        self.report(&Unreported {
            send,
            ..Unreported::default()
        })
    }

    /// Finishes a message that has been gathered whole: its buffers are the consumer's again.
    /// Process context. Fails if the completion is lost.
    pub(super) fn complete_sent(&self, active: Option<Active>) -> Result<(), StreamError> {
        match active {
            Some(Active::Request { place, id, .. }) => self
                .finish_wr(place, id, WcStatus::Success)
                .map_err(|Lost| StreamError::local(Local::Completion)),
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

    /// Notifies the consumer. Process context or softirq; the caller holds none of the locks 14 to
    /// 23 (`Documentation/locking.md`). Fails if a completion is lost: the consumer can no longer
    /// know which WRs are done, so the stream must end.
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

    /// Flushes the send queue, and the WR that the transmitter has. Process context. Returns
    /// whether there may be more WRs.
    pub(super) fn flush_sends(&self, active: Option<Active>, unreported: &mut Unreported) -> bool {
        if let Some(Active::Request { place, id, .. }) = active {
            let pending = self.sq.finish(place, id, WcStatus::Flushed);

            unreported.send = unreported.send.and(pending);
        }
        let (pending, more) = self.sq.flush(Flush::Complete);

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
