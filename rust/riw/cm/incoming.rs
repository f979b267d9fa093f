// SPDX-License-Identifier: GPL-2.0

//! The state of a connection that is not accepted yet.

use super::{backlog::Report, subscription::Subscription};
use crate::link::{AddrPair, AwaitedRequest, Deadline, Responder};
use kernel::sync::Arc;

/// A connection that a listener has accepted.
#[derive(Clone)]
pub(super) struct Incoming {
    pub(super) addrs: AddrPair,
    /// Gets the connect request.
    pub(super) subscription: Arc<Subscription>,
}

/// A connection whose Request has not arrived in full. It counts among the half-open ones of its
/// subscription.
pub(super) struct Request {
    pub(super) incoming: Incoming,
    pub(super) awaited: AwaitedRequest,
    pub(super) deadline: Deadline,
}

/// A connection with a valid Request on which no consumer has decided. While it is queued, it
/// counts among the half-open ones of its subscription.
pub(super) struct Undecided {
    pub(super) incoming: Incoming,
    pub(super) responder: Responder,
    pub(super) deadline: Deadline,
    /// The place in the queue of the backlog.
    pub(super) place: u64,
    /// The report, while the consumer has it.
    pub(super) report: Option<Report>,
}
