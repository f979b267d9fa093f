// SPDX-License-Identifier: GPL-2.0

//! The queue pair's side of a connection: its start, its events, its end.

use super::{
    state::{closed_early, Snapshot},
    Qp,
};
use crate::{
    cm::{Closed, Role},
    stream::{RxEnd, Start, StreamError},
    Riw,
};
use iwarp::{qp::Event, startup::Parameters};
use kernel::{prelude::*, sync::Arc};
use net::LockedSock;
use rdma::{event::Event as AsyncEvent, Device};

impl Qp {
    /// Finds a queue pair of the calling process by its number. Process context; may sleep.
    pub(crate) fn lookup(dev: &Device<Riw>, number: u32) -> Option<Arc<Self>> {
        dev.qps.get(number)
    }

    /// Starts the stream: MPA's startup has succeeded. Process context; may sleep. Fails with
    /// `ENOTCONN` if the connection has ended, `ENOMEM` without memory.
    pub(crate) fn start(self: &Arc<Self>, parameters: &Parameters, role: Role) -> Result {
        let endpoint = self.endpoint().ok_or(ENOTCONN)?;
        let first = match role {
            Role::Initiator => parameters.rtr.map(|rtr| rtr.message()),
            Role::Responder => None,
        };

        self.stream.start(&Start {
            parameters,
            first,
            may_send: role == Role::Initiator,
            mss: endpoint.mss()?,
        })?;
        self.set_read_depths(parameters.ord, parameters.ird);
        self.event(Event::Established, None).ok_or(ENOTCONN)?;
        Ok(())
    }

    /// Receives what the socket has. Atomic context; the socket is locked.
    pub(crate) fn rx_ready(self: &Arc<Self>, sk: &mut LockedSock<'_>) {
        if !self.is_stream_active() {
            // So that TCP sees a FIN behind the octets. The stream is ending anyway.
            return sk.discard();
        }
        let received = self.stream.receive(sk);

        if received.hold {
            self.queue.kick::<_, 2>(self);
        }
        if received.first {
            if let Some(endpoint) = self.endpoint() {
                endpoint.first_fpdu();
            }
        }
        let lost = self.stream.report(&received.unreported).is_err();
        match received.end {
            Some(end @ RxEnd::Error(_)) => self.receive_ended(end),
            _ if lost => self.fail(StreamError::LOCAL),
            Some(end @ RxEnd::Terminated(_)) => self.receive_ended(end),
            None if received.kick || received.first => self.kick(),
            None => {}
        }
    }

    /// Gives an FPDU a buffer, as the socket has no room for it. Process context; may sleep.
    pub(super) fn hold(self: &Arc<Self>) {
        if self.stream.hold().is_err() {
            return self.fail(StreamError::LOCAL);
        }
        if let Some(endpoint) = self.endpoint() {
            endpoint.catch_up();
        }
    }

    /// The socket has room again. Any context.
    pub(crate) fn write_space(self: &Arc<Self>) {
        self.kick();
    }

    /// The connection, or the peer's half of it, has ended. Process context or softirq.
    pub(crate) fn llp_closed(self: &Arc<Self>, how: Closed) {
        match how {
            Closed::Graceful if self.stream.is_quiet() => {
                self.event(Event::PeerClosed, None);
            }
            Closed::Graceful => self.unexpected(
                Event::PeerClosedEarly,
                Some(closed_early()),
                AsyncEvent::QpFatal,
            ),
            Closed::Reset | Closed::Timeout => {
                self.unexpected(Event::Lost, None, AsyncEvent::QpFatal);
            }
        }
    }

    /// Whether a FIN would cut off something that the peer must get, as
    /// [`Stream::has_unsent`](crate::stream::Stream::has_unsent) says.
    pub(crate) fn has_unsent(&self) -> bool {
        self.stream.has_unsent()
    }

    /// Sends what has been gathered, and the Terminate that is due, as far as the socket takes them
    /// now: the process may have completions for them. Then stops the transmitter. Process context;
    /// may sleep.
    pub(super) fn push_out(&self) {
        let mut tx = self.stream.tx.lock();
        let Snapshot { endpoint, .. } = self.snapshot();

        if let Some(endpoint) = endpoint {
            if self.stream.may_send() {
                if let Some(terminate) = self.take_terminate() {
                    self.stream.gather_terminate(&mut tx, terminate);
                }
            }
            // The rest is lost with the queue pair, and so resets the connection.
            let _ = tx.flush_to(&endpoint);
        }
        tx.stop();
    }
}
