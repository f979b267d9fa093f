// SPDX-License-Identifier: GPL-2.0

//! Why a stream ends in an error, and who learns of it.

use super::{connection::QpConnection, Qp};
use crate::stream::{RxEnd, StreamError};
use iwarp::{qp::Event, DdpTagged, Error, Mpa, Quote, Rdmap, TermCode, Terminate};
use kernel::{fmt, prelude::*, sync::Arc};
use rdma::event::AsyncEvent;

/// Why a stream ended in an error. The first reason counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamErrorReason {
    /// This side found an error, of the peer or of its own.
    Found(Error),
    /// The peer sent a Terminate with this code.
    Terminated(TermCode),
    /// The connection was reset.
    Reset,
    /// The peer does not answer.
    Timeout,
}

impl StreamErrorReason {
    /// Returns the event of the queue pair's state.
    fn event(self) -> Event {
        match self {
            Self::Found(Error::Mpa(Mpa::Closed)) => Event::PeerClosedEarly,
            Self::Found(_) => Event::Failed,
            Self::Terminated(_) => Event::TerminateReceived,
            Self::Reset | Self::Timeout => Event::Lost,
        }
    }

    /// Returns the event that reports the error to the consumer.
    pub(super) fn async_event(self) -> AsyncEvent {
        let Self::Found(error) = self else {
            return AsyncEvent::QpFatal;
        };

        match error {
            Error::DdpTagged(DdpTagged::InvalidVersion) | Error::Rdmap(Rdmap::InvalidVersion) => {
                AsyncEvent::QpRequestError
            }
            Error::DdpTagged(_)
            | Error::Rdmap(
                Rdmap::InvalidStag
                | Rdmap::Bounds
                | Rdmap::AccessRights
                | Rdmap::StagNotAssociated
                | Rdmap::ToWrap
                | Rdmap::CannotInvalidate,
            ) => AsyncEvent::QpAccessError,
            Error::DdpUntagged(_) | Error::Rdmap(Rdmap::UnexpectedOpcode) => {
                AsyncEvent::QpRequestError
            }
            _ => AsyncEvent::QpFatal,
        }
    }

    /// Whether this side found the error; otherwise the peer did, or ended the connection.
    fn is_found_here(self) -> bool {
        matches!(self, Self::Found(_) | Self::Timeout)
    }
}

impl fmt::Display for StreamErrorReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Found(error) => f.write_str(error.rule()),
            Self::Terminated(TermCode { layer, etype, code }) => write!(
                f,
                "the peer sent a Terminate: layer {}, type {}, code {}",
                *layer, *etype, *code
            ),
            Self::Reset => f.write_str("the connection was reset"),
            Self::Timeout => f.write_str("the peer does not answer"),
        }
    }
}

impl Qp {
    /// Ends the stream for an error that the consumer did not ask for. Reports and logs it if the
    /// stream was open: later errors are not reported. `quote` is for the Terminate, if the error
    /// calls for one. Process context or softirq; the caller holds none of the queue pair's locks
    /// except `tx`.
    pub(super) fn end_in_error(self: &Arc<Self>, reason: StreamErrorReason, quote: Quote) {
        // It may be detached as soon as the state has changed.
        let connection = self.connection();
        let terminate = match reason {
            StreamErrorReason::Found(error) => Some(Terminate::new(error, quote)),
            _ => None,
        };

        if self.event(reason.event(), terminate) == Some(true) {
            self.log_error(reason, connection.as_deref());
            self.report_event(reason.async_event());
        }
    }

    /// Ends the stream for an error that this side has found. Process context or softirq; the
    /// caller holds none of the queue pair's locks except `tx`.
    pub(super) fn fail(self: &Arc<Self>, error: StreamError) {
        self.end_in_error(StreamErrorReason::Found(error.error), error.quote);
    }

    /// Ends the stream as its receiving side has ended. Process context or softirq; the caller holds
    /// none of the queue pair's locks.
    pub(super) fn receive_ended(self: &Arc<Self>, end: RxEnd) {
        match end {
            RxEnd::Error(error) => self.fail(error),
            RxEnd::Terminated(terminated) => {
                self.stream.refused(&terminated);
                self.end_in_error(StreamErrorReason::Terminated(terminated.code), Quote::NONE);
            }
        }
    }

    /// Logs why the stream ended, as a warning if this side found the error. Process context or
    /// softirq. Nothing is logged once the queue pair is being destroyed.
    fn log_error(&self, reason: StreamErrorReason, connection: Option<&dyn QpConnection>) {
        let Some(handle) = self.handle() else {
            return;
        };
        let Some(addrs) = connection.and_then(|connection| connection.addrs()) else {
            return;
        };
        let dev = handle.device();
        let number = self.number;

        if reason.is_found_here() {
            dev.log
                .warn(dev.as_dev(), fmt!("queue pair {number}, {addrs}: {reason}"));
        } else {
            dev.log.debug(fmt!(
                "{}: queue pair {number}, {addrs}: {reason}",
                dev.as_dev().name()
            ));
        }
    }
}
