// SPDX-License-Identifier: GPL-2.0

//! Why a connection ends.

use crate::{
    counters::Counter,
    link::{StartupFailure, StartupFault},
};
use iwarp::{startup::StartupError, Mpa};
use kernel::prelude::*;

/// Why a connection ends. The errno for iw_cm and the counter derive from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndReason {
    /// The peer's part of the startup is wrong, or requests something that this side refuses.
    Startup(StartupFault),
    /// The transport did not connect.
    Unreachable(Error),
    /// The peer closed or reset the connection, or the transport gave it up.
    Closed(Error),
    /// The phase has taken too long.
    Timeout,
    /// Other half-open connections needed the room.
    Evicted,
    /// This side's consumer rejected the connection, or has closed.
    Rejected,
    /// The peer's consumer rejected the connection.
    Refused,
    /// This side failed, its consumer gave up, or its device is shut down.
    Local(Error),
    /// As `Local`, but iw_cm must not learn of it, although it waits for an event.
    Abandoned,
    /// The stream has ended; the queue pair knows the reason.
    Stream,
}

impl EndReason {
    /// The reason if sending or receiving fails on a connection that the transport had established.
    pub(super) fn link(error: Error) -> Self {
        if error == ENOMEM || error == ENOBUFS || error == EPERM || error == EACCES {
            Self::Local(error)
        } else {
            Self::Closed(error)
        }
    }

    /// Returns the error for iw_cm if the connection was not established. `ECONNREFUSED` means that
    /// a consumer rejected it, so TCP's own is another one.
    pub(super) fn to_error(self) -> Error {
        match self {
            Self::Startup(StartupFault::Frame(StartupError::Revision)) => EPROTONOSUPPORT,
            Self::Startup(_) => EPROTO,
            Self::Unreachable(e) | Self::Closed(e) if e == ECONNREFUSED => ECONNRESET,
            Self::Unreachable(e) | Self::Closed(e) | Self::Local(e) => e,
            Self::Timeout => ETIMEDOUT,
            Self::Evicted | Self::Abandoned => ECONNABORTED,
            Self::Rejected | Self::Refused => ECONNREFUSED,
            Self::Stream => ECONNRESET,
        }
    }

    /// Returns the counter of connections that ended for this reason before they were established.
    pub(super) fn counter(self) -> Counter {
        match self {
            Self::Startup(fault) => fault_counter(fault),
            // The first FPDU ends the startup of a responder.
            Self::Stream => Counter::StartupErrorsFrame,
            Self::Unreachable(_) => Counter::StartupErrorsUnreachable,
            Self::Closed(_) => Counter::StartupErrorsClosed,
            Self::Timeout => Counter::ConnectionsTimedOut,
            Self::Evicted => Counter::ConnectionsEvicted,
            Self::Rejected => Counter::ConnectionsRejected,
            Self::Refused => Counter::ConnectionsRefused,
            Self::Local(_) | Self::Abandoned => Counter::StartupErrorsLocal,
        }
    }

    /// Returns the reason in words.
    pub(super) fn rule(self) -> &'static str {
        match self {
            Self::Startup(fault) => fault.rule(),
            Self::Unreachable(_) => "the transport does not connect",
            Self::Closed(_) => "the peer closed or reset the connection",
            Self::Timeout => "the time is up",
            Self::Evicted => "too many connections are half open, or the listener closed",
            Self::Rejected => "this side rejected it",
            Self::Refused => "the peer rejected it",
            Self::Local(_) => "this side failed or gave up",
            Self::Abandoned => "the consumer of this side gave up",
            Self::Stream => "the stream ended",
        }
    }

    /// Returns the reason for the end of an established connection, in words.
    pub(super) fn end_of_established(self) -> &'static str {
        match self {
            Self::Stream => "the stream ended in an error",
            Self::Timeout => "the close took too long",
            Self::Local(e) if e == ENETDOWN => "the device is shut down",
            Self::Local(_) => "this side closed the connection",
            other => other.rule(),
        }
    }

    /// Whether this side has found out that the connection cannot be established, and no program
    /// learns of it, or not why. Otherwise the peer or a program decided it, and knows.
    pub(super) fn is_found_here(self) -> bool {
        matches!(self, Self::Startup(_) | Self::Timeout)
    }
}

impl From<StartupFailure> for EndReason {
    fn from(failure: StartupFailure) -> Self {
        match failure {
            StartupFailure::Fault(fault) => Self::Startup(fault),
            StartupFailure::Link(error) => Self::link(error),
            StartupFailure::Local(error) => Self::Local(error),
        }
    }
}

/// Returns the counter of startups that fail by this fault.
fn fault_counter(fault: StartupFault) -> Counter {
    match fault {
        StartupFault::Frame(StartupError::Revision) => Counter::StartupErrorsRevision,
        StartupFault::Frame(StartupError::Crc) => Counter::StartupErrorsCrc,
        StartupFault::Frame(StartupError::InsufficientIrd)
        | StartupFault::Session(iwarp::Error::Mpa(Mpa::InsufficientIrd)) => {
            Counter::StartupErrorsIrd
        }
        StartupFault::Frame(StartupError::NoRtr)
        | StartupFault::Session(iwarp::Error::Mpa(Mpa::NoRtr)) => Counter::StartupErrorsRtr,
        StartupFault::Frame(_) | StartupFault::Session(_) => Counter::StartupErrorsFrame,
        StartupFault::Adaptation | StartupFault::TooManyAddrs => Counter::StartupErrorsAdaptation,
        StartupFault::Tls(_) => Counter::StartupErrorsTls,
    }
}
