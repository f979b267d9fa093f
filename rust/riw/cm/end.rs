// SPDX-License-Identifier: GPL-2.0

//! The end of a connection.

use super::{
    pending::PendingEvent,
    phase::{Phase, Step},
    Endpoint,
};
use crate::qp::Closed;
use kernel::{prelude::*, sync::Arc};
use kernel_ext::workqueue::cancel_delayed_work;
use rdma::iw::{CmEvent, Offer};

/// How and why a connection ends.
pub(super) struct End {
    how: Disconnect,
    /// The reason, for iw_cm if the connection was not established.
    pub(super) error: Error,
    pub(super) report: Report,
}

/// How the TCP connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Disconnect {
    /// By a FIN behind all data that TCP has taken.
    Graceful,
    /// By a RST.
    Abort,
}

/// The events that the end reports to iw_cm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Report {
    /// Those of the phase: see `phase.rs`.
    Phase,
    /// The same, with the depths and private data of the peer's Reply.
    Reply,
    /// Nothing.
    Nothing,
}

impl End {
    /// A reset.
    pub(super) fn abort(error: Error) -> Self {
        Self {
            how: Disconnect::Abort,
            error,
            report: Report::Phase,
        }
    }

    /// A FIN.
    pub(super) fn graceful(error: Error) -> Self {
        Self {
            how: Disconnect::Graceful,
            error,
            report: Report::Phase,
        }
    }

    /// The peer's consumer has rejected the connection.
    pub(super) fn rejected() -> Self {
        Self {
            how: Disconnect::Graceful,
            error: ECONNREFUSED,
            report: Report::Reply,
        }
    }

    /// A reset of which iw_cm must not learn, although it waits for an event.
    pub(super) fn abandoned() -> Self {
        Self {
            how: Disconnect::Abort,
            error: ECONNABORTED,
            report: Report::Nothing,
        }
    }
}

impl Endpoint {
    /// Passes the phase to `f`, and leaves the result of its step as the phase. `phase` must be that
    /// of this endpoint, locked. May sleep. Returns what `f` returns beside the step.
    pub(super) fn step<R>(
        self: &Arc<Self>,
        phase: &mut Phase,
        f: impl FnOnce(Phase) -> (Step, R),
    ) -> R {
        let (step, result) = f(phase.take());

        match step {
            Step::Next(next) => *phase = next,
            Step::End(last, end) => {
                *phase = last;
                self.end(phase, &end);
            }
        }
        result
    }

    /// Ends the connection, unless it has ended already. `phase` must be that of this endpoint,
    /// locked. May sleep.
    ///
    /// On return no callback of the connection runs, and its queue pair is detached.
    pub(super) fn end(self: &Arc<Self>, phase: &mut Phase, end: &End) {
        let last = phase.take();

        if matches!(last, Phase::Closed) {
            return;
        }
        if let Phase::AwaitRequest(request) = &last {
            request.leave(self);
        }
        let refused = matches!(last, Phase::AwaitRequest(_) | Phase::Reported(_));
        self.disconnect(end.how, refused);
        self.release_qp(end);
        last.report_end(end);
        self.dev.remove(self.token);
        cancel_delayed_work::<Self, 2>(self);
    }

    /// Closes the connection. Resets it if the queue pair has unsent data: completions may have
    /// been given for them, and the peer would take a FIN for an orderly end. May sleep.
    fn disconnect(&self, how: Disconnect, refused: bool) {
        let Some(connection) = self.link.take() else {
            return;
        };
        // The link is empty, so that nothing is sent meanwhile and the result holds. This waits for
        // a transmit pass, which a reset need not do.
        let has_unsent = || self.qp.as_ref().is_some_and(|qp| qp.has_unsent());

        match how {
            Disconnect::Graceful if !has_unsent() => self.dev.lingers.close(connection, refused),
            _ => connection.abort(),
        }
    }

    /// Notifies the queue pair of the end and detaches it. May sleep.
    fn release_qp(&self, end: &End) {
        let Some(qp) = self.qp.as_ref() else {
            return;
        };
        // A queue pair that ends the stream itself knows the reason.
        let expected = self.events.has(PendingEvent::StreamEnding)
            || self.events.has(PendingEvent::CloseRequested);

        if self.is_stream_active() && !expected && self.events.set(PendingEvent::LlpClosed) {
            qp.llp_closed(if end.error == ETIMEDOUT {
                Closed::Timeout
            } else {
                Closed::Reset
            });
        }
        qp.detach();
    }
}

impl Phase {
    /// Reports the end in this phase to iw_cm. May sleep.
    fn report_end(self, end: &End) {
        if end.report == Report::Nothing {
            return;
        }
        // None of these events fails: iw_cm has preallocated them.
        match self {
            Self::Connecting(opening) | Self::AwaitReply(opening) => opening.report_failure(end),
            Self::AwaitFirst { id, .. } => {
                let _ = id.event(&CmEvent::Established {
                    status: Err(end.error),
                    offer: Offer::default(),
                });
                let _ = id.event(&CmEvent::Close);
            }
            Self::Rdma { id, .. } => {
                let _ = id.event(&CmEvent::Close);
            }
            Self::New | Self::AwaitRequest(_) | Self::Reported(_) | Self::Closed => {}
        }
    }
}
