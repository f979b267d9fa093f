// SPDX-License-Identifier: GPL-2.0

//! The events of a connection's link, and the calls of its queue pair.

use super::{end::End, pending::PendingEvent, reason::EndReason, Endpoint};
use crate::{
    link::{AddrPair, Inflow, Link, LinkEnd, LinkEvents},
    qp::{Closed, Qp, QpConnection},
};
use kernel::{
    prelude::*,
    sync::{Arc, ArcBorrow},
};
use kernel_ext::memalloc::without_io;
use rdma::iw::CmId;

impl Endpoint {
    /// Returns the queue pair if it handles the stream. Any context.
    fn active_qp(&self) -> Option<&Arc<Qp>> {
        if self.is_stream_active() {
            self.qp.as_ref()
        } else {
            None
        }
    }

    /// Notes an event, and has a work item act on it. Any context.
    fn post_event(self: &Arc<Self>, event: PendingEvent) {
        if self.events.set(event) {
            self.kick();
        }
    }

    /// Ends the connection to make room for others, unless it has been reported. A work item does
    /// it. Any context.
    pub(super) fn evict(self: &Arc<Self>) {
        self.post_event(PendingEvent::Evicted);
    }
}

impl LinkEvents for Endpoint {
    /// Atomic or process context.
    fn changed(self: &Arc<Self>) {
        match self.active_qp() {
            Some(qp) => qp.retry_receive(),
            None => self.kick(),
        }
    }

    /// Atomic or process context, received data is locked.
    fn receive(self: &Arc<Self>, inflow: &mut impl Inflow) {
        match self.active_qp() {
            Some(qp) => qp.rx_ready(inflow),
            None => self.kick(),
        }
    }

    /// Atomic or process context, received data is locked.
    fn ended(self: &Arc<Self>, end: LinkEnd) {
        let Some(qp) = self.active_qp() else {
            return self.kick();
        };
        let how = match end {
            LinkEnd::Failed(error) => return qp.link_failed(error),
            LinkEnd::PeerClosed | LinkEnd::ShutDown => Closed::Graceful,
            LinkEnd::Closed(e) if e == ETIMEDOUT || self.events.has(PendingEvent::TimedOut) => {
                Closed::Timeout
            }
            LinkEnd::Closed(_) => Closed::Reset,
        };

        if qp.defers(how) {
            // The end is behind segments that have not been received: `catch_up` comes back here.
            // TCP tells the error only once, and a transmit run may take it meanwhile.
            if how == Closed::Timeout {
                self.events.set(PendingEvent::TimedOut);
            }
            return;
        }
        if end != LinkEnd::PeerClosed {
            self.events.set(PendingEvent::ConnectionLost);
        }
        if self.events.set(PendingEvent::LlpClosed) {
            qp.llp_closed(how);
        }
        self.kick();
    }

    /// Any context. The connection may be locked.
    fn room(self: &Arc<Self>) {
        if let Some(qp) = self.active_qp() {
            qp.kick();
        }
    }
}

impl QpConnection for Endpoint {
    fn link(&self) -> &Arc<Link> {
        &self.link
    }

    fn addrs(&self) -> Option<&AddrPair> {
        self.addrs.as_ref()
    }

    fn first_fpdu(self: ArcBorrow<'_, Self>) {
        Arc::from(self).post_event(PendingEvent::FirstFpdu);
    }

    fn ending(self: ArcBorrow<'_, Self>) {
        Arc::from(self).post_event(PendingEvent::StreamEnding);
    }

    fn close(self: ArcBorrow<'_, Self>) {
        Arc::from(self).post_event(PendingEvent::CloseRequested);
    }

    fn catch_up(self: ArcBorrow<'_, Self>) {
        // A timer that an earlier stream of the queue pair has left may expire during the startup
        // of this one, whose frames are not the queue pair's.
        if self.is_stream_active() {
            self.link.poll(&Arc::from(self));
        }
    }

    fn teardown(self: ArcBorrow<'_, Self>) {
        let this = Arc::from(self);

        // It takes locks that connections share, also one that I/O waits for.
        without_io(|| {
            this.end(
                &mut this.lock_phase(),
                &End::graceful(EndReason::Local(ECONNABORTED)),
            );
        });
    }

    fn abandon(self: ArcBorrow<'_, Self>, id: &CmId) -> bool {
        Arc::from(self).abandon_accept(id)
    }
}
