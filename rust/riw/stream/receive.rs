// SPDX-License-Identifier: GPL-2.0

//! Receiving: from what the link has received straight to memory, a segment at a time.

use crate::{
    counters::Counter,
    link::{Inflow, Pause, Segments},
    queue::{receive::NextTurn, wr::WcStatus},
    stream::{
        deliver::Unreported,
        place::{Placer, Reception},
        rx_state::{OpenRx, Rx},
        tally::Tally,
        Stream, StreamError,
    },
};
use iwarp::{Error, Quote, Receiver, Terminated};
use kernel::{prelude::*, sync::atomic::ordering, time::Jiffies};
use kernel_ext::sync::BhSpinLockGuard;
use net::RecvBuf;

/// Why nothing more is received.
pub(crate) enum RxEnd {
    /// The peer broke a rule, or this side failed.
    Error(StreamError),
    /// The peer sent a Terminate.
    Terminated(Terminated),
}

/// How a receive has ended.
pub(crate) enum RxPause {
    /// The link has no more segments now. It needs this.
    Link(Pause),
    /// The message at the front waits for a receive WR, since now (`begins`) or before: see
    /// [`Stream::while_waiting`].
    NoReceive { begins: bool },
    /// Nothing more is received.
    End(RxEnd),
}

impl Default for RxPause {
    fn default() -> Self {
        Self::Link(Pause::Event)
    }
}

impl RxPause {
    /// The end of a stream for an error in the segment that `receiver` has yielded.
    fn error(error: Error, receiver: &Receiver) -> Self {
        Self::End(RxEnd::Error(StreamError {
            error,
            quote: receiver.quote(),
        }))
    }

    /// Ends the look at `segments`.
    #[inline]
    fn finish(self, segments: impl Segments) -> Self {
        let blocked = match self {
            Self::End(_) => return self,
            Self::NoReceive { .. } => true,
            Self::Link(_) => false,
        };

        match segments.finish(blocked) {
            Ok(Pause::Event) => self,
            Ok(pause) => Self::Link(pause),
            Err(error) => Self::End(RxEnd::Error(StreamError {
                error,
                quote: Quote::NONE,
            })),
        }
    }
}

/// The outcome of [`Stream::receive`]. The caller acts on it when it holds no lock of the stream.
#[must_use]
#[derive(Default)]
pub(crate) struct Received {
    pub(crate) unreported: Unreported,
    /// The peer's first FPDU has come.
    pub(crate) first: bool,
    /// The transmitter has new work.
    pub(crate) kick: bool,
    pub(crate) next: NextTurn,
    pub(crate) pause: RxPause,
}

impl Stream {
    /// Takes the segments that the link has received, as many as it yields now, or places the RDMA
    /// Write that has arrived before its turn. Softirq or process context; never sleeps. If nothing
    /// more may be placed, discards the data.
    pub(crate) fn receive(&self, inflow: &mut impl Inflow) -> Received {
        let mut rx = self.rx.lock();
        let Rx {
            open: Some(OpenRx { receiver, link }),
            filling,
            written,
            wait,
            ..
        } = &mut *rx
        else {
            drop(rx);
            inflow.discard();
            return Received::default();
        };
        if let Some(early) = inflow.early_write() {
            self.place_early(early);
            return Received::default();
        }
        let Some(mut segments) = inflow.segments(link) else {
            return Received::default();
        };
        let had_started = receiver.started();
        let mut placer = Placer::new(self, filling, wait, written);

        let pause = loop {
            match placer.receive(receiver, &mut segments) {
                Ok(Reception::Taken) => {}
                Ok(Reception::Pause(pause)) => break pause,
                Err(error) => break RxPause::error(error, receiver),
            }
        };
        let pause = pause.finish(segments);
        let began = !had_started && receiver.started();
        let Placer {
            received, tally, ..
        } = placer;
        let received = Received { pause, ..received };
        let received = self.settle(&mut rx, received, &tally, began);

        if let RxPause::End(_) = received.pause {
            inflow.discard();
        }
        received
    }

    /// Notes the results of a receive. `began`: it took the first frame of the peer. Ends the
    /// receiving side if the stream ends.
    fn settle(
        &self,
        rx: &mut BhSpinLockGuard<'_, Rx>,
        mut received: Received,
        tally: &Tally,
        began: bool,
    ) -> Received {
        if began {
            received.first = true;
            self.may_send.store(true, ordering::Relaxed);
        }
        self.answered.store(true, ordering::Relaxed);
        tally.count_received(|counts| rx.counters.add_several_locked(rx, counts));
        match received.pause {
            RxPause::NoReceive { begins: true } => rx.counters.inc(Counter::RxWaits),
            RxPause::End(_) => received.next = rx.end(&self.rq).or(received.next),
            _ => {}
        }
        received
    }

    /// Gives the incomplete FPDU a buffer, if it needs one. Process context; may sleep. Without
    /// memory, fails with the number of failures for this FPDU.
    pub(crate) fn hold(&self) -> Result<(), u32> {
        // The FPDU may have become complete since the worker was scheduled, and also during the
        // allocation.
        let size = match &self.rx.lock().open {
            Some(open) => open.link.buffer_size(),
            None => None,
        };
        let Some(size) = size else {
            return Ok(());
        };
        let buffer = RecvBuf::new(size, &self.memcg);

        match &mut self.rx.lock().open {
            Some(open) => open.link.hold(size, buffer),
            None => Ok(()),
        }
    }

    /// Calls `arm` with the time to the next look, if the stream waits for a receive WR. It does
    /// not begin or end to wait meanwhile. Process context or softirq; `arm` must not sleep.
    pub(crate) fn while_waiting(&self, arm: impl FnOnce(Jiffies)) {
        if let Some(wait) = &mut self.rx.lock().wait {
            arm(wait.next_look(self.rq.is_first_in_line()));
        }
    }

    /// Whether FPDUs that were received before the end of the connection must be consumed first,
    /// and will be: by a worker, or, if the peer has closed its half only (`graceful`), when there
    /// is a receive WR. Process context or softirq.
    pub(crate) fn defers_end(&self, graceful: bool) -> bool {
        let rx = self.rx.lock();

        let has_rest = rx.open.as_ref().is_some_and(|open| open.link.has_rest());

        has_rest || (graceful && rx.wait.is_some())
    }

    /// Completes the read or atomic operation that the peer's Terminate refuses, if it names one.
    /// Softirq or process context; no lock is held.
    ///
    /// Only these can be refused and incomplete: Sends and Writes complete when they are sent.
    pub(crate) fn refused(&self, terminated: &Terminated) {
        let status = match (terminated.code.layer, terminated.code.etype) {
            // RDMAP's remote protection errors, DDP's tagged buffer errors.
            (0, 1) | (1, 1) => WcStatus::RemoteAccess,
            _ => WcStatus::RemoteInvalid,
        };
        let Some(msn) = terminated.quote.request_msn() else {
            return;
        };
        // Under the lock: a flush that finds nothing awaited completes the WR.
        let mut reads = self.reads.lock();
        let Some((number, refused)) = reads.refused(msn) else {
            return;
        };

        self.end_read(refused);
        drop(reads);
        self.fail_read(number, status);
    }
}
