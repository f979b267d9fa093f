// SPDX-License-Identifier: GPL-2.0

//! The events of a link.

use super::segments::Inflow;
use kernel::{prelude::*, sync::Arc};
use net::AnyEvent;

/// Receives the events of a link.
///
/// All methods but [`Self::changed`] and [`Self::room`] are called with received data locked: by
/// the lock of a TCP socket, in softirq or process context, or by `Link::inlet`, in process
/// context. No method may sleep, or take a lock under which functions of the link are called.
pub(crate) trait LinkEvents: Sized + Send + Sync + 'static {
    /// [`Link::poll`](super::Link::poll) is to be called: data may have arrived, or the state may
    /// have changed. Atomic or process context.
    fn changed(self: &Arc<Self>);

    /// Data has arrived, or the peer has closed its half. The data may be an RDMA Write before its
    /// turn ([`Inflow::early_write`]); it comes again in its turn.
    fn receive(self: &Arc<Self>, inflow: &mut impl Inflow);

    /// The connection, or a half of it, has ended. May be called again.
    fn ended(self: &Arc<Self>, end: LinkEnd);

    /// There is room in the send buffer again. Any context, also with interrupts disabled. Reported
    /// only after [`Carrier::send`](super::transport::Carrier::send) has failed with `EAGAIN`,
    /// [`Carrier::room_and_emss`](super::transport::Carrier::room_and_emss) has returned no room,
    /// or [`Carrier::notify_room`](super::transport::Carrier::notify_room) was called.
    fn room(self: &Arc<Self>);
}

/// How a link has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkEnd {
    /// The peer has closed its half. This side may still send.
    PeerClosed,
    /// The peer has closed both halves. What this side has sent is still delivered.
    ShutDown,
    /// The peer broke a rule of the lower layer, or this side failed: it has to report this error,
    /// and to close.
    Failed(iwarp::Error),
    /// There is no connection any more, or it must be aborted. The reason.
    Closed(Error),
}

/// Translates the callbacks of a socket to the events of a link.
pub(super) struct EventSink<T>(Arc<T>);

impl<T> EventSink<T> {
    /// Creates one for `owner`. May sleep.
    pub(super) fn new(owner: Arc<T>) -> Result<Arc<Self>> {
        Ok(Arc::new(Self(owner), GFP_KERNEL_ACCOUNT)?)
    }

    #[inline]
    pub(super) fn owner(&self) -> &Arc<T> {
        &self.0
    }
}

impl<T: LinkEvents> AnyEvent for EventSink<T> {
    fn changed(self: &Arc<Self>) {
        self.owner().changed();
    }

    fn room(self: &Arc<Self>) {
        self.owner().room();
    }
}
