// SPDX-License-Identifier: GPL-2.0

//! The parameters with which a stream starts.

use crate::link::{Framer, Link};
use iwarp::{startup::Parameters, Message};
use kernel::sync::Arc;

/// How a stream starts.
pub(crate) struct Start<'a> {
    pub(crate) link: &'a Arc<Link>,
    pub(crate) framer: Framer,
    pub(crate) parameters: &'a Parameters,
    /// The frame that the peer waits for before any other.
    pub(crate) first: Option<Message>,
    /// This side may send before it has received.
    pub(crate) may_send: bool,
    /// Without memory to send from, a transmit run is repeated. Otherwise the stream ends.
    pub(crate) retries_memory: bool,
}
