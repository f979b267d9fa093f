// SPDX-License-Identifier: GPL-2.0

//! The lower layer of a stream, which yields checked segments and takes segments to send.
//!
//! - A [`Connection`] is one end of a connection that nobody shares: new, accepted, or taken from a
//!   link.
//! - A [`Link`] shares it between connection management and a stream, until it is taken away. Its
//!   events go to an owner ([`LinkEvents`]), which pulls the segments out of what has arrived
//!   ([`Inflow`]).
//! - A [`ListenLink`] accepts connections.
//! - `startup.rs` has the startup of a stream, as initiator and as responder.
//! - A [`LingerSet`] closes connections in an orderly way, with no owner any more.
//!
//! Only this module uses sockets, and it imports no other folder of the driver. Each transport has
//! a folder: [`tcp`], [`tls`] and [`sctp`]. `transport.rs`, `startup.rs` and `listen_link.rs` have
//! one variant for each. `absent.rs` has stubs of those that riw is built without.
//!
//! # Contexts
//!
//! Functions need process context and may sleep, but never wait for the peer. Events may come in
//! atomic context, and never sleep: [`LinkEvents`] says which come with received data locked.
//!
//! # Lifetimes
//!
//! A connection holds no reference to its network namespace, which waits for its drop; only with
//! TLS it has one, as its socket has a file. So when the namespace or its netdev goes, the user has
//! to take each connection from its link and drop it, and to shut each set of lingering connections
//! down.
//!
//! `Link::connection` is locked while the connection is in use, and `Link::inlet`, if there is one,
//! while received data is handled. [`Link::take`] removes a connection, and then its callbacks,
//! before it is dropped or lingers. So nothing sends on a dropped connection, and no event comes
//! from it. A transmit pass locks `connection` for each send: one that is under way finds no
//! connection at its next send. [`Link::shut_down`] has the same effect on it, and waits for
//! nothing.

#[cfg(not(all(CONFIG_RDMA_RIW_SCTP, CONFIG_RDMA_RIW_TLS)))]
mod absent;
mod batch;
mod budget;
pub(crate) mod crc;
mod deadline;
mod events;
mod linger;
mod listen_link;
mod octets;
mod reorder;
#[cfg(CONFIG_RDMA_RIW_SCTP)]
mod sctp;
mod security;
mod segments;
mod startup;
mod tcp;
#[cfg(CONFIG_RDMA_RIW_TLS)]
mod tls;
mod transport;
mod types;

#[cfg(not(CONFIG_RDMA_RIW_SCTP))]
use absent::sctp;
#[cfg(not(CONFIG_RDMA_RIW_TLS))]
use absent::tls;
pub(crate) use batch::Batch;
pub(crate) use deadline::Deadline;
pub(crate) use events::{LinkEnd, LinkEvents};
pub(crate) use linger::LingerSet;
pub(crate) use listen_link::{ListenLink, UnboundLink};
pub(crate) use reorder::Reorder;
pub(crate) use security::{Psk, Security, TlsMode, TlsTerms};
pub(crate) use segments::{EarlyWrite, Inflow, LinkRx, Pause, Segments};
pub(crate) use startup::{
    Answer, AwaitedRequest, Prepared, ReceivedRequest, Responder, Startup, StartupFailure,
    StartupFault, Terms,
};
use transport::AnyInlet;
pub(crate) use transport::{Connection, Framer, Transport};
pub(crate) use types::{AddrPair, LinkDetails, LinkState, Site};

use core::net::SocketAddr;
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        atomic::{ordering, Atomic},
        Arc, Mutex,
    },
};

/// A connection that connection management and a stream share.
///
/// All functions need process context and may sleep. Without a connection they fail with
/// `ENOTCONN`, unless they say otherwise.
#[pin_data]
pub(crate) struct Link {
    /// Receives, if the connection has one. It is not part of the connection, so that a transmit
    /// run goes on.
    #[pin]
    inlet: Mutex<Option<AnyInlet>>,
    /// `None` before the connection begins and after it has been taken away.
    #[pin]
    connection: Mutex<Option<Connection>>,
    /// The connection is only to be taken away. Never cleared.
    shut: Atomic<bool>,
}

impl Link {
    /// Creates a link without a connection.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            inlet <- new_mutex!(None, "riw::link::Link::inlet"),
            connection <- new_mutex!(None, "riw::link::Link::connection"),
            shut: Atomic::new(false),
        })
    }

    /// Gives the link its connection, whose events go to `owner` from then on. Earlier events are
    /// not reported. After `idle` seconds of silence the peer is probed; 0: never. Resets the
    /// connection if anything fails.
    pub(crate) fn attach<T: LinkEvents>(
        &self,
        mut connection: Connection,
        idle: u16,
        owner: Arc<T>,
    ) -> Result {
        match connection.prepare(idle, owner) {
            Ok(()) => {
                *self.inlet.lock() = connection.take_inlet();
                *self.connection.lock() = Some(connection);
                Ok(())
            }
            Err(e) => {
                connection.abort();
                Err(e)
            }
        }
    }

    /// Lets nobody use the connection any more, as if it had been taken away: not those either that
    /// wait for its lock now. [`Self::take`] still returns it. Any context: this does not wait for
    /// a use that is under way.
    ///
    /// Only for a caller that resets the connection in any case: a Terminate or a FIN that is due
    /// is not sent. Each other end of a connection sends it, as [`Self::take`] alone does not set
    /// this.
    pub(crate) fn shut_down(&self) {
        // Relaxed: whoever does not see it uses the connection once more.
        self.shut.store(true, ordering::Relaxed);
    }

    /// Whether [`Self::shut_down`] has been called. Any context.
    pub(crate) fn is_shut_down(&self) -> bool {
        self.shut.load(ordering::Relaxed)
    }

    /// Takes the connection away, if there is one. On return no event of it is being reported.
    pub(crate) fn take(&self) -> Option<Connection> {
        let mut connection = self.connection.lock().take()?;

        connection.base().clear_callbacks();
        // Waits for data that is being handled.
        connection.return_inlet(self.inlet.lock().take());
        Some(connection)
    }

    /// Starts to connect; does not wait for the peer. An event reports the result. Fails as
    /// `connect()` does.
    pub(crate) fn connect(&self, remote: &SocketAddr) -> Result {
        match self.with(|connection| connection.connect(remote)) {
            Err(e) if e != EINPROGRESS => Err(e),
            _ => Ok(()),
        }
    }

    /// Returns the current state of the connection.
    pub(crate) fn state(&self) -> LinkState {
        self.with(|connection| Ok(connection.state()))
            .unwrap_or_else(LinkState::Closed)
    }

    /// Whether neither side has closed the connection, no handshake can begin, and nothing has been
    /// received that has not been read.
    pub(crate) fn has_received_nothing(&self) -> bool {
        self.with(|connection| {
            Ok(match connection.state() {
                LinkState::Connecting => !connection.is_handshake_due(),
                LinkState::Established => !connection.has_received(),
                _ => false,
            })
        })
        .unwrap_or(false)
    }

    /// Lets `owner` receive what has arrived: calls [`LinkEvents::receive`], and
    /// [`LinkEvents::ended`] if the connection has ended.
    pub(crate) fn poll<T: LinkEvents>(&self, owner: &Arc<T>) {
        match Option::as_mut(&mut self.inlet.lock()) {
            Some(AnyInlet::Tls(inlet)) => return inlet.receive(self, owner),
            Some(AnyInlet::Sctp(inlet)) => return inlet.receive(self, owner),
            None => {}
        }
        // Without a connection there is nothing to read.
        let _ = self.with(|connection| {
            connection.poll(owner);
            Ok(())
        });
    }

    /// Calls `f` with the connection. `f` may sleep, but must not wait for the peer: [`Self::take`]
    /// waits for it.
    #[inline]
    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut Connection) -> Result<R>) -> Result<R> {
        let mut connection = self.connection.lock();

        match Option::as_mut(&mut connection) {
            // Under the lock: the wait for it may have been long.
            Some(connection) if !self.is_shut_down() => f(connection),
            _ => Err(ENOTCONN),
        }
    }
}
