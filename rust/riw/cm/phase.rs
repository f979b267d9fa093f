// SPDX-License-Identifier: GPL-2.0

//! The phases of a connection.
//!
//! A phase has the data of that phase only. A step takes the phase and leaves the next one.
//!
//! | phase | waits for | reported to iw_cm before | reported at the end |
//! |---|---|---|---|
//! | `New` | its connection | – | – |
//! | `Connecting` | the transport | – | connect reply with an error |
//! | `AwaitReply` | the answer of the peer | – | connect reply with an error |
//! | `AwaitRequest` | the request of the peer | – | – |
//! | `Queued` | room in the consumer's backlog, or the end of the call that listens | – | – |
//! | `Reported` | `accept` or `reject` | connect request | – |
//! | `AwaitFirst` | the first segment | connect request | established with an error, close |
//! | `Rdma` | the end | connect reply or established | close |
//! | `Closed` | – | all | – |
//!
//! The phase changes only under its lock, and riw reports to iw_cm under the same lock. So each
//! event is reported once, and in this order. Only a connect request is reported again: if the
//! backlog had no room for it, `Reported` goes back to `Queued`.

use super::{
    incoming::{Request, Undecided},
    opening::Opening,
    reason::EndReason,
};
use crate::link::Deadline;
use core::mem;
use kernel::{prelude::*, sync::aref::ARef};
use rdma::iw::{CmId, Offer};
use trace::CmPhase;

/// A phase: see the table above.
pub(super) enum Phase {
    New,
    Connecting(KBox<Opening>),
    AwaitReply(KBox<Opening>),
    AwaitRequest(KBox<Request>),
    Queued(KBox<Undecided>),
    Reported(KBox<Undecided>),
    AwaitFirst {
        id: ARef<CmId>,
        /// The agreed read depths.
        depths: Offer<'static>,
        deadline: Deadline,
    },
    Rdma {
        id: ARef<CmId>,
        /// The stream is about to end.
        ending: Option<Ending>,
        /// Ends the connection if the peer is silent.
        watch: Option<PeerWatch>,
    },
    Closed,
}

/// The end of a stream, which the queue pair has begun or has to begin.
pub(super) struct Ending {
    /// The bytes that had moved when the time was given.
    pub(super) moved: u64,
    pub(super) deadline: Deadline,
    /// The time when no more is given.
    pub(super) limit: Deadline,
}

/// The watch over a peer that may be gone, by the setting `keepalive`. TCP keeps it itself.
pub(super) struct PeerWatch {
    /// Milliseconds of silence, at most.
    pub(super) limit: i64,
    /// When to look next.
    pub(super) deadline: Deadline,
}

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

/// The result of a step.
pub(super) enum Step {
    /// The connection is in this phase now.
    Next(Phase),
    /// The connection ends in this phase.
    End(Phase, End),
}

impl Phase {
    /// Takes the phase out, and leaves `Closed`. For [`Endpoint::step`](super::Endpoint::step) and
    /// the end alone: `Closed` means that everything of the connection has been released.
    pub(super) fn take(&mut self) -> Self {
        mem::replace(self, Self::Closed)
    }

    /// The name of the phase, for trace events.
    pub(super) fn name(&self) -> CmPhase {
        match self {
            Self::New => CmPhase::New,
            Self::Connecting(_) => CmPhase::Connecting,
            Self::AwaitReply(_) => CmPhase::AwaitReply,
            Self::AwaitRequest(_) => CmPhase::AwaitRequest,
            Self::Queued(_) => CmPhase::Queued,
            Self::Reported(_) => CmPhase::Reported,
            Self::AwaitFirst { .. } => CmPhase::AwaitFirst,
            Self::Rdma { .. } => CmPhase::Rdma,
            Self::Closed => CmPhase::Closed,
        }
    }

    /// When the phase ends at the latest; `None` if it has no time limit.
    pub(super) fn deadline(&self) -> Option<Deadline> {
        match self {
            Self::Connecting(opening) | Self::AwaitReply(opening) => Some(opening.deadline),
            Self::AwaitRequest(request) => Some(request.deadline),
            Self::Queued(undecided) | Self::Reported(undecided) => Some(undecided.deadline),
            Self::AwaitFirst { deadline, .. } => Some(*deadline),
            Self::Rdma { ending, watch, .. } => match ending {
                Some(ending) => Some(ending.deadline),
                None => watch.as_ref().map(|watch| watch.deadline),
            },
            Self::New | Self::Closed => None,
        }
    }
}
