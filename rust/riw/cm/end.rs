// SPDX-License-Identifier: GPL-2.0

//! The end of a connection.

use super::{endpoint::Phase, pending::PendingEvent, reason::EndReason, Endpoint};
use crate::{link::LinkState, qp::Closed};
use kernel::{prelude::*, sync::Arc};
use kernel_ext::workqueue::cancel_delayed_work;
use rdma::iw::{CmEvent, Offer};

/// How and why a connection ends.
pub(super) struct End {
    pub(super) how: Disconnect,
    pub(super) reason: EndReason,
}

/// How the connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Disconnect {
    /// Behind all data that the transport has taken: by a FIN, or by the end of the session.
    Graceful,
    /// By a RST or an ABORT.
    Abort,
}

impl End {
    /// A reset.
    pub(super) fn abort(reason: EndReason) -> Self {
        Self {
            how: Disconnect::Abort,
            reason,
        }
    }

    /// A FIN.
    pub(super) fn graceful(reason: EndReason) -> Self {
        Self {
            how: Disconnect::Graceful,
            reason,
        }
    }
}

impl Endpoint {
    /// Ends the connection, unless it has ended already. `phase` must be the phase of this
    /// endpoint, locked. May sleep.
    ///
    /// On return no callback of the connection runs, and its queue pair is detached.
    pub(super) fn end(self: &Arc<Self>, phase: &mut Phase, end: &End) {
        let last = phase.take();

        if matches!(last, Phase::Closed) {
            return;
        }
        self.note_end(&last, end.reason);
        match &last {
            Phase::AwaitRequest(request) => request.incoming.leave(self),
            Phase::Queued(undecided) => undecided.leave(self),
            _ => {}
        }
        let refused = matches!(
            last,
            Phase::AwaitRequest(_) | Phase::Queued(_) | Phase::Reported(_)
        );
        self.disconnect(end, refused);
        self.release_qp(end.reason);
        last.report_end(end.reason);
        self.dev.remove(self.token);
        cancel_delayed_work::<Self, 2>(self);
    }

    /// Resets the connection: the device is shut down. On return the link is empty and reports no
    /// event. May sleep.
    ///
    /// `Link::shut_down` must have been called. So a call of the consumer that holds the phase
    /// fails when it next uses the link, such as an accept that has yet to send its Reply.
    pub(super) fn shutdown(self: &Arc<Self>) {
        self.end(
            &mut self.lock_phase(),
            &End::abort(EndReason::Local(ENETDOWN)),
        );
    }

    /// Closes the connection. Resets it if the queue pair has unsent data: completions may have
    /// been given for them, and the peer would take a FIN for an orderly end. May sleep.
    fn disconnect(&self, end: &End, refused: bool) {
        let Some(connection) = self.link.take() else {
            return;
        };
        // The link is empty, so that nothing is sent meanwhile and the result holds.
        let has_unsent = || match (self.qp.as_ref(), end.reason) {
            (None, _) => false,
            // Do not wait for the transmit pass that has not ended in time: the process may have to
            // wait for memory. It has unsent data then.
            (Some(qp), EndReason::Timeout) => qp.may_have_unsent(),
            (Some(qp), _) => qp.has_unsent(),
        };

        // One that has ended sends nothing: there is no need to wait for a pass.
        let has_ended = matches!(connection.state(), LinkState::Closed(_));

        match end.how {
            Disconnect::Graceful if has_ended || !has_unsent() => {
                self.dev.lingers.close(connection, refused);
            }
            _ => connection.abort(),
        }
    }

    /// Notifies the queue pair of the end and detaches it. May sleep.
    fn release_qp(&self, reason: EndReason) {
        let Some(qp) = self.qp.as_ref() else {
            return;
        };
        // A queue pair that ends the stream itself knows the reason.
        let expected = self.events.has(PendingEvent::StreamEnding)
            || self.events.has(PendingEvent::CloseRequested);

        if self.is_stream_active() && !expected && self.events.set(PendingEvent::LlpClosed) {
            qp.llp_closed(match reason {
                EndReason::Timeout => Closed::Timeout,
                EndReason::Local(_) | EndReason::Abandoned => Closed::Aborted,
                _ => Closed::Reset,
            });
        }
        qp.detach();
    }
}

impl Phase {
    /// Reports the end in this phase to iw_cm. May sleep.
    fn report_end(self, reason: EndReason) {
        if reason == EndReason::Abandoned {
            return;
        }
        // None of these events fails: iw_cm has preallocated them.
        match self {
            Self::Connecting(opening) | Self::AwaitReply(opening) => opening.report_failure(reason),
            Self::AwaitFirst { id, .. } => {
                let _ = id.event(&CmEvent::Established {
                    status: Err(reason.to_error()),
                    offer: Offer::default(),
                });
                let _ = id.event(&CmEvent::Close);
            }
            Self::Rdma { id, .. } => {
                let _ = id.event(&CmEvent::Close);
            }
            Self::New
            | Self::AwaitRequest(_)
            | Self::Queued(_)
            | Self::Reported(_)
            | Self::Closed => {}
        }
    }
}
