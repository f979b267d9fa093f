// SPDX-License-Identifier: GPL-2.0

//! The parameters with which a stream starts.

use crate::link::{Framer, Link, Transport};
use iwarp::{startup::Parameters, Message};
use kernel::sync::Arc;

/// How a stream starts.
pub(crate) struct Start<'a> {
    pub(crate) link: &'a Arc<Link>,
    pub(crate) transport: Transport,
    pub(crate) parameters: &'a Parameters,
    /// The frame that the peer waits for before any other.
    pub(crate) first: Option<Message>,
    /// This side may send before it has received.
    pub(crate) may_send: bool,
    /// The payload of a full TCP segment, or of a full SCTP chunk, in bytes.
    pub(crate) mss: u32,
    /// The length of the longest FPDU, in bytes, if it is not the TCP segment's.
    pub(crate) fpdu_max: Option<u32>,
    /// Without memory to send from, a transmit run is repeated. Otherwise the stream ends.
    pub(crate) retries_memory: bool,
}

impl Start<'_> {
    /// Returns the framer of the stream. Any context.
    pub(super) fn framer(&self) -> Framer {
        Framer::new(self.transport, self.parameters, self.mss, self.fpdu_max)
    }
}
