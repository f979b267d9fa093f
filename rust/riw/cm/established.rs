// SPDX-License-Identifier: GPL-2.0

//! A connection whose stream the queue pair handles.

use super::{
    end::End,
    endpoint::{Ending, PeerWatch, Phase},
    pending::PendingEvent,
    reason::EndReason,
    steps::Step,
    Endpoint,
};
use crate::{
    counters::Counter,
    link::{AddrPair, Deadline, Link},
    qp::Role,
    stream::StartRoom,
};
use iwarp::startup::Parameters;
use kernel::{
    prelude::*,
    sync::{aref::ARef, Arc},
};
use rdma::iw::{CmEvent, CmId, Offer};

/// Milliseconds for a silent peer to answer probes, at least.
const PROBE_TIME_MIN: i64 = 5_000;
/// Milliseconds for the queue pair to close its half after the peer has closed.
const CLOSE_TIME: i64 = 3_000;
/// Milliseconds for the queue pair to close its half if the peer has not: to send the WRs that its
/// consumer has posted and to receive the responses to its reads, or to send a Terminate. The time
/// starts again when it is over, if a byte has moved in it.
const ENDING_TIME: i64 = 10_000;
/// Milliseconds after which no more time is given, whether bytes move or not.
const ENDING_TIME_MAX: i64 = 300_000;

impl PeerWatch {
    /// Begins a watch; `None` if none is needed. May sleep.
    pub(super) fn new(endpoint: &Endpoint) -> Option<Self> {
        let idle = i64::from(endpoint.keepalive_time()).saturating_mul(1000);
        let limit = idle.saturating_add(idle.max(PROBE_TIME_MIN));

        let transport = (endpoint.link).with(|connection| Ok(connection.transport()));

        (idle != 0 && transport.is_ok_and(|transport| !transport.gives_up_peer())).then(|| Self {
            limit,
            deadline: Deadline::new(limit),
        })
    }

    /// Whether the peer has been silent for too long. If not, sets the time of the next look. May
    /// sleep.
    pub(super) fn finds_silence(&mut self, link: &Link) -> bool {
        let left = match link.with(|connection| Ok(connection.silence())) {
            Ok(Some(silence)) => self.limit.saturating_sub(silence),
            Ok(None) | Err(_) => self.limit,
        };

        self.deadline = Deadline::new(left);
        left <= 0
    }
}

impl Endpoint {
    /// Hands the stream over to the queue pair, with memory for it. Process context, may sleep.
    /// `ENOTCONN` if the connection has ended or has no queue pair; otherwise fails as `Qp::start`
    /// does.
    pub(super) fn start(
        self: &Arc<Self>,
        parameters: &Parameters,
        role: Role,
        addrs: AddrPair,
        room: StartRoom,
    ) -> Result {
        let qp = self.qp.as_ref().ok_or(ENOTCONN)?;

        // It is empty: a stream starts once.
        self.addrs.populate(addrs);
        qp.start(parameters, role, room)?;
        self.set_stream_active();
        // The queue pair may have filled the link already, and the event for its room have gone
        // elsewhere.
        qp.kick();
        // The same is true of data that has been received.
        self.kick();
        Ok(())
    }

    /// Reports the connection to iw_cm that it has accepted by `id`. Returns the next phase.
    pub(super) fn established(&self, id: ARef<CmId>, depths: Offer<'static>) -> Phase {
        self.dev.counters.inc(Counter::ConnectionsAccepted);
        // It does not fail: iw_cm has preallocated the event.
        let _ = id.event(&CmEvent::Established {
            status: Ok(()),
            offer: depths,
        });
        Phase::Rdma {
            id,
            ending: None,
            watch: PeerWatch::new(self),
        }
    }

    /// Acts on the events of a connection in `AwaitFirst` or `Rdma`. May sleep.
    pub(super) fn step_stream(self: &Arc<Self>, phase: Phase) -> Step {
        if !self.events.has(PendingEvent::LlpClosed) {
            // Needed only the first time, and harmless later.
            if let Some(qp) = self.qp.as_ref() {
                qp.in_worker(|| self.link.poll(self));
            }
        }
        let phase = match phase {
            Phase::AwaitFirst { id, depths, .. } if self.events.has(PendingEvent::FirstFpdu) => {
                self.established(id, depths)
            }
            phase => phase,
        };

        let closed = self.events.has(PendingEvent::LlpClosed);
        if self.events.has(PendingEvent::CloseRequested)
            || self.events.has(PendingEvent::ConnectionLost)
        {
            return Step::End(phase, End::graceful(self.stream_end(closed)));
        }
        Step::Next(match phase {
            Phase::Rdma { id, ending, watch }
                if closed || self.events.has(PendingEvent::StreamEnding) =>
            {
                Phase::Rdma {
                    id,
                    ending: Some(self.limit_ending(ending, closed)),
                    watch,
                }
            }
            phase => phase,
        })
    }

    /// Returns why the stream has ended. `closed`: the peer has closed its half, or the connection
    /// is lost.
    fn stream_end(&self, closed: bool) -> EndReason {
        if closed {
            EndReason::Closed(ECONNRESET)
        } else if self.qp.as_ref().is_some_and(|qp| qp.has_failed()) {
            EndReason::Stream
        } else {
            // The consumer has ended it.
            EndReason::Local(ECONNRESET)
        }
    }

    /// Limits the time for the queue pair to close its half: it does so when it has sent
    /// everything. May sleep.
    fn limit_ending(&self, ending: Option<Ending>, closed: bool) -> Ending {
        let deadline = Deadline::new(if closed { CLOSE_TIME } else { ENDING_TIME });

        match ending {
            Some(ending) => Ending {
                deadline: ending.deadline.min(deadline),
                ..ending
            },
            None => Ending {
                moved: self.moved(),
                deadline,
                limit: Deadline::new(ENDING_TIME_MAX),
            },
        }
    }

    /// Returns a number that changes when bytes move. May sleep.
    fn moved(&self) -> u64 {
        self.link
            .with(|connection| Ok(connection.moved()))
            .unwrap_or(0)
    }

    /// Gives a stream that is about to end more time, if bytes have moved in the time before and
    /// the peer has not closed its half. Returns whether it does. May sleep.
    pub(super) fn extend_ending(&self, ending: &mut Ending) -> bool {
        let moved = self.moved();
        let before = core::mem::replace(&mut ending.moved, moved);
        let extend = moved != before
            && !self.events.has(PendingEvent::LlpClosed)
            && ending.limit.left().is_some();

        if extend {
            ending.deadline = Deadline::new(ENDING_TIME);
        }
        extend
    }
}
