// SPDX-License-Identifier: GPL-2.0

//! The reasons for which a stream ends in an error, and the reports of it.

use super::{traits::QpConnection, Qp};
use crate::{
    counters::Counter,
    stream::{receive::RxEnd, tx_state::Tx, StreamError},
};
use iwarp::{qp::Event, DdpTagged, Error, Quote, Rdmap, TermCode, Terminate};
use kernel::{prelude::*, sync::Arc};
use rdma::event::AsyncEvent;
use trace::Source;

/// Why a stream ended in an error. The first reason counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamErrorReason {
    /// This side found an error, of the peer or of its own.
    Found(Error),
    /// The peer sent a Terminate with this code.
    Terminated(TermCode),
    /// The connection was reset.
    Reset,
    /// This side has given the connection up.
    Aborted,
    /// The peer does not answer.
    Timeout,
}

impl StreamErrorReason {
    /// Returns the event of the queue pair's state.
    fn event(self) -> Event {
        match self {
            Self::Found(Error::LlpClosed) => Event::PeerClosedEarly,
            Self::Found(_) => Event::Failed,
            Self::Terminated(_) => Event::TerminateReceived,
            Self::Reset | Self::Aborted | Self::Timeout => Event::Lost,
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
            Error::DdpUntagged(_)
            | Error::Rdmap(Rdmap::UnexpectedOpcode | Rdmap::UnalignedAtomic) => {
                AsyncEvent::QpRequestError
            }
            _ => AsyncEvent::QpFatal,
        }
    }

    /// Returns the counter of streams that ended for this reason.
    fn counter(self) -> Counter {
        match self {
            Self::Found(error) => Counter::stream_errors(error),
            Self::Terminated(_) => Counter::StreamErrorsPeer,
            Self::Reset => Counter::StreamErrorsReset,
            Self::Aborted => Counter::StreamErrorsLocal,
            Self::Timeout => Counter::StreamErrorsTimeout,
        }
    }

    /// Returns the code of the Terminate that this side sends or has received, or would send if
    /// there still were a connection.
    fn term(self) -> TermCode {
        match self {
            Self::Found(error) => error.term(),
            Self::Terminated(code) => code,
            Self::Reset | Self::Aborted | Self::Timeout => Error::LlpClosed.term(),
        }
    }

    /// Returns the reason in words: the rule that was broken.
    fn rule(self) -> &'static str {
        match self {
            Self::Found(error) => error.rule(),
            Self::Terminated(_) => "the peer sent a Terminate",
            Self::Reset => "the connection was reset",
            Self::Aborted => "this side has given the connection up",
            Self::Timeout => "the peer does not answer",
        }
    }

    /// Whether this side found the error; otherwise the peer did, or ended the connection.
    fn is_found_here(self) -> bool {
        matches!(self, Self::Found(_) | Self::Timeout)
    }
}

impl Qp {
    /// Ends the stream for an error that the consumer did not request. Reports and logs it if the
    /// stream was open: later errors are not reported. `quote` is for the Terminate, if the error
    /// calls for one. Process context or softirq; the caller holds none of the queue pair's locks
    /// except `tx`.
    pub(super) fn end_in_error(self: &Arc<Self>, reason: StreamErrorReason, quote: Quote) {
        if let Some(event) = self.end_stream(reason, quote) {
            self.report_event(event);
        }
    }

    /// As [`Self::end_in_error`], but leaves the report to the caller, who may hold `tx`.
    pub(super) fn end_stream(
        self: &Arc<Self>,
        reason: StreamErrorReason,
        quote: Quote,
    ) -> Option<AsyncEvent> {
        // It may be detached as soon as the state has changed.
        let connection = self.connection();
        let terminate = match reason {
            StreamErrorReason::Found(error) => Some(Terminate::new(error, quote)),
            _ => None,
        };

        let open = self.event_noting(reason.event(), terminate, || {
            self.note_error(reason, connection.as_deref());
        });

        (open == Some(true)).then(|| reason.async_event())
    }

    /// Ends the stream for an error that this side has found. Process context or softirq; the
    /// caller holds none of the queue pair's locks except `tx`.
    #[cold]
    pub(super) fn fail(self: &Arc<Self>, error: StreamError) {
        self.end_in_error(StreamErrorReason::Found(error.error), error.quote);
    }

    /// Ends the stream as its receiving side has ended. Process context or softirq; the caller
    /// holds none of the queue pair's locks.
    #[cold]
    pub(super) fn receive_ended(self: &Arc<Self>, end: RxEnd) {
        match end {
            RxEnd::Error(error) => self.fail(error),
            RxEnd::Terminated(terminated) => {
                self.stream.refused(&terminated);
                self.end_in_error(StreamErrorReason::Terminated(terminated.code), Quote::NONE);
            }
        }
    }

    /// Counts, traces and logs why the stream ended. The line is a warning if this side found the
    /// error. Process context or softirq.
    fn note_error(&self, reason: StreamErrorReason, connection: Option<&dyn QpConnection>) {
        let (dev, number, rule) = (self.device(), self.number, reason.rule());

        dev.counters().inc(reason.counter());
        trace::stream_error(self, reason.term(), rule);
        let Some(addrs) = connection.and_then(|connection| connection.addrs()) else {
            return;
        };
        if reason.is_found_here() {
            dev.log()
                .warn(dev.as_dev(), fmt!("queue pair {number}, {addrs}: {rule}"));
        } else {
            let TermCode { layer, etype, code } = reason.term();

            dev.log().debug(
                dev,
                fmt!("queue pair {number}, {addrs}: {rule} ({layer} {etype} {code:#04x})"),
            );
        }
    }

    /// Gathers the Terminate that is due, if this side may send. Process context; may sleep.
    ///
    /// A responder sends nothing before its peer's first FPDU (RFC 5044, section 7.1.2), not even a
    /// Terminate.
    pub(super) fn gather_terminate(&self, tx: &mut Tx) {
        if !self.stream.may_send() {
            return;
        }
        if let Some(terminate) = self.take_terminate() {
            let code = terminate.code;

            if self.stream.gather_terminate(tx, terminate) {
                self.note_terminate(code);
            }
        }
    }

    /// Counts and traces a Terminate that the peer has sent. Any context.
    pub(super) fn note_terminate_received(&self, code: TermCode) {
        self.device().counters().inc(Counter::rx_terminates(code));
        trace::terminate_rx(self, code);
    }

    /// Counts and traces a Terminate that is sent. Any context.
    pub(crate) fn note_terminate(&self, code: TermCode) {
        self.device().counters().inc(Counter::tx_terminates(code));
        trace::terminate_tx(self, code);
    }
}
