// SPDX-License-Identifier: GPL-2.0

//! The state of the receiving side.

use crate::{
    counters::Counters,
    link::LinkRx,
    queue::{qp_receive::QpRecvQueue, receive::NextTurn, wr::WrId},
    stream::{
        filling::{Filling, Written},
        wait::ReceiveWait,
    },
};
use iwarp::Receiver;
use kernel::sync::Arc;

/// The receiver of a stream that has started.
pub(super) struct OpenRx {
    pub(super) receiver: Receiver,
    /// The state of the link between two receives.
    pub(super) link: LinkRx,
}

/// The receiving side of a stream.
pub(super) struct Rx {
    /// `None` before the stream has started, and when nothing more may be placed.
    pub(super) open: Option<OpenRx>,
    /// The receive WR that a message is being placed into.
    pub(super) filling: Filling,
    pub(super) written: Written,
    /// The wait of the message at the front, if there is no receive WR for it. `filling` has no
    /// message then.
    pub(super) wait: Option<ReceiveWait>,
    /// The counters of the receiving side.
    pub(super) counters: Arc<Counters>,
}

impl Rx {
    /// Creates the receiving side of a stream that is not connected. Any context.
    pub(super) fn new(counters: Arc<Counters>) -> Self {
        Self {
            open: None,
            filling: Filling::none(),
            written: Written::default(),
            wait: None,
            counters,
        }
    }

    /// Starts the receiving side. `link` is the part of the link. Process context.
    pub(super) fn start(&mut self, link: LinkRx) {
        *self = Self {
            open: Some(OpenRx {
                receiver: Receiver::new(),
                link,
            }),
            ..Self::new(self.counters.clone())
        };
    }

    /// Places nothing more, and leaves the line of `rq`. The receive WR stays, to be flushed.
    /// Returns the queue pair that waits next for the same queue.
    pub(super) fn end(&mut self, rq: &QpRecvQueue) -> NextTurn {
        self.open = None;
        match self.wait.take() {
            Some(_) => rq.leave(),
            None => NextTurn::default(),
        }
    }

    /// Places nothing more, and drops the receive WR, as [`Self::end`] does.
    pub(super) fn stop(&mut self, rq: &QpRecvQueue) -> NextTurn {
        self.filling.take();
        self.end(rq)
    }

    /// Takes the receive WR that was being filled. Returns its id.
    pub(super) fn take_filling(&mut self) -> Option<WrId> {
        self.filling.take()
    }

    /// Whether the stream is between messages.
    pub(super) fn at_boundary(&self) -> bool {
        self.open
            .as_ref()
            .is_none_or(|open| open.receiver.at_boundary() && open.link.may_end())
    }
}
