// SPDX-License-Identifier: GPL-2.0

//! The callbacks of a socket, and access to its data.

use super::{
    super::{
        events::{EventSink, LinkEnd, LinkEvents},
        segments::{Inflow, LinkRx, Segments},
        types::LinkState,
    },
    fpdus::{Fpdus, RxCause},
};
use kernel::sync::Arc;
use net::{Callbacks, LockedSock};

impl<T: LinkEvents> Callbacks for EventSink<T> {
    fn data_ready(self: &Arc<Self>, sk: &mut LockedSock<'_>) {
        receive(self.owner(), sk, RxCause::Octets);
    }

    fn state_change(self: &Arc<Self>, sk: &mut LockedSock<'_>) {
        receive(self.owner(), sk, RxCause::State);
    }

    fn write_space(self: &Arc<Self>) {
        self.owner().room();
    }

    fn error_report(self: &Arc<Self>) {
        self.owner().changed();
    }
}

/// Lets `owner` receive what is in the socket, and reports the end of the connection, if it has
/// come. Process context or softirq.
#[inline]
pub(super) fn receive<T: LinkEvents>(owner: &Arc<T>, sk: &mut LockedSock<'_>, cause: RxCause) {
    owner.receive(&mut Readable { sk, cause });
    match LinkState::new(sk.state(), || sk.error()) {
        LinkState::Closed(reason) => owner.ended(LinkEnd::Closed(reason)),
        LinkState::PeerClosed => owner.ended(LinkEnd::PeerClosed),
        // This side does not close its half before the connection is taken from the link.
        _ => {}
    }
}

/// The data in a locked socket.
struct Readable<'a, 'b> {
    sk: &'a mut LockedSock<'b>,
    cause: RxCause,
}

impl Inflow for Readable<'_, '_> {
    #[inline]
    fn segments<'a>(&'a mut self, rx: &'a mut LinkRx) -> Option<impl Segments + 'a> {
        let rx = rx.mpa()?;
        let is_turn = self.cause == RxCause::Worker || !rx.has_rest();

        is_turn.then(|| Fpdus::new(self.sk.read(), rx, self.cause))
    }

    /// Takes all octets up to urgent data, and requests an event at every octet, so that TCP sees a
    /// FIN behind them.
    fn discard(&mut self) {
        self.sk.discard();
    }
}
