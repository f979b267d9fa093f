// SPDX-License-Identifier: GPL-2.0

//! The events of a link, and access to received data.

use super::types::LinkState;
use kernel::{prelude::*, sync::Arc};
use net::{AnyEvent, Callbacks, Finished, LockedSock, Unread};

/// Receives the events of a link.
///
/// All methods are called in atomic context, with softirqs disabled. They must not sleep, and must
/// not take a lock under which functions of the link are called.
pub(crate) trait LinkEvents: Sized + Send + Sync + 'static {
    /// Data can be read, or the peer has closed its half. The connection is locked.
    fn readable(self: &Arc<Self>, data: &mut Readable<'_, '_>);

    /// The state has changed: see [`Readable::state`]. The connection is locked.
    fn state_changed(self: &Arc<Self>, data: &mut Readable<'_, '_>);

    /// At least a third of the send buffer is free again; over SCTP, some of it. Interrupts may be
    /// disabled then. Reported only after
    /// [`Link::send`](super::Link::send) has failed with `EAGAIN`,
    /// [`Link::room_and_mss`](super::Link::room_and_mss) has returned no room, or
    /// [`Link::notify_room`](super::Link::notify_room) was called.
    fn room(self: &Arc<Self>);

    /// The connection has failed, or an ICMP error has arrived. The connection may or may not be
    /// locked.
    fn error(self: &Arc<Self>);

    /// Over SCTP, in place of all others but [`Self::room`]: there may be a chunk to receive, or the
    /// state may have changed. The connection may or may not be locked.
    fn chunks_arrived(self: &Arc<Self>);
}

/// A locked connection, for the reader of the stream. Its methods may be called in any such
/// context; none sleeps.
pub(crate) struct Readable<'a, 'b>(&'a mut LockedSock<'b>);

impl<'a, 'b> Readable<'a, 'b> {
    #[inline]
    pub(super) fn new(sk: &'a mut LockedSock<'b>) -> Self {
        Self(sk)
    }

    /// Returns the current state.
    pub(crate) fn state(&self) -> LinkState {
        LinkState::new(self.0.state(), || self.0.error())
    }

    /// Returns a cursor over the bytes received in order and not taken yet, up to urgent data.
    #[inline]
    pub(crate) fn unread(&self) -> Unread<'_> {
        self.0.unread()
    }

    /// Ends a look at the unread bytes: takes `taken` of them, and delays [`LinkEvents::readable`] until so
    /// many as `wanted` are unread. See [`LockedSock::finish`].
    #[inline]
    pub(crate) fn finish(&mut self, taken: usize, wanted: Option<u32>) -> Finished {
        self.0.finish(taken, wanted)
    }

    /// Takes all bytes up to urgent data, and requests [`LinkEvents::readable`] at every byte.
    #[inline]
    pub(crate) fn discard(&mut self) {
        self.0.discard();
    }
}

/// Translates the callbacks of a socket to the events of a link.
pub(super) struct Hook<T>(Arc<T>);

impl<T> Hook<T> {
    /// Creates a hook for `owner`. May sleep.
    pub(super) fn new(owner: Arc<T>) -> Result<Arc<Self>> {
        Ok(Arc::new(Self(owner), GFP_KERNEL_ACCOUNT)?)
    }

    #[inline]
    pub(super) fn owner(&self) -> &Arc<T> {
        &self.0
    }
}

impl<T: LinkEvents> Callbacks for Hook<T> {
    fn data_ready(self: &Arc<Self>, sk: &mut LockedSock<'_>) {
        self.owner().readable(&mut Readable::new(sk));
    }

    fn state_change(self: &Arc<Self>, sk: &mut LockedSock<'_>) {
        self.owner().state_changed(&mut Readable::new(sk));
    }

    fn write_space(self: &Arc<Self>) {
        self.owner().room();
    }

    fn error_report(self: &Arc<Self>) {
        self.owner().error();
    }
}

impl<T: LinkEvents> AnyEvent for Hook<T> {
    fn changed(self: &Arc<Self>) {
        self.owner().chunks_arrived();
    }

    fn room(self: &Arc<Self>) {
        self.owner().room();
    }
}
