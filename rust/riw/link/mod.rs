// SPDX-License-Identifier: GPL-2.0

//! The lower layer of a stream: a TCP connection, or an SCTP association.
//!
//! - A [`Connection`] is one end of a connection that nobody shares: new, accepted, or taken from a
//!   link.
//! - A [`Link`] shares it between connection management and a stream, until it is taken away. Its
//!   events go to an owner ([`LinkEvents`]).
//! - A [`ListenLink`] accepts connections.
//! - A [`LingerSet`] closes connections in an orderly way, with no owner any more.
//!
//! Only this module uses sockets: another transport would be added here. It imports no other folder
//! of the driver. A [`Connection`] and a [`ListenLink`] are of one transport; the parts that only
//! SCTP has are in [`sctp`].
//!
//! # Contexts
//!
//! Functions need process context and may sleep, but never wait for the peer. Events come in atomic
//! context; most of them with the connection locked.
//!
//! # Lifetimes
//!
//! A connection holds no reference to its network namespace, which waits for its drop. So when the
//! namespace or its netdev goes, the user has to take each connection from its link and drop it,
//! and to shut each set of lingering connections down.
//!
//! `Link::connection` is locked while the connection is in use, and over SCTP `Link::inlet` while a
//! received chunk is handled. [`Link::take`] removes a connection, and then its callbacks, before it
//! is dropped or lingers. So nothing sends on a dropped connection, and no event comes from it. A
//! transmit pass locks `connection` for each send: one that is under way finds no connection at its
//! next send.

mod batch;
mod connection;
pub(crate) mod crc;
mod deadline;
mod details;
mod events;
mod framing;
mod linger;
mod listen;
mod octets;
mod sctp;
mod segments;
mod tcp;
mod types;

pub(crate) use batch::Batch;
pub(crate) use connection::Connection;
pub(crate) use deadline::Deadline;
pub(crate) use details::LinkDetails;
pub(crate) use events::{LinkEnd, LinkEvents};
pub(crate) use framing::Framer;
pub(crate) use linger::LingerSet;
pub(crate) use listen::{ListenEvents, ListenHook, ListenLink, UnboundLink};
pub(crate) use octets::RxOctets;
pub(crate) use sctp::{PeerSupport, Reorder};
pub(crate) use segments::{Inflow, Pause, Segments};
pub(crate) use tcp::{RxState, RX_ROOM};
pub(crate) use types::{AddrPair, LinkState, Site, Transport};

use core::net::SocketAddr;
use kernel::{
    new_mutex,
    prelude::*,
    sync::{Arc, Mutex},
};
use tcp::RxCause;

/// A connection that connection management and a stream share.
///
/// All functions need process context and may sleep. Without a connection they fail with
/// `ENOTCONN`, unless they say otherwise.
#[pin_data]
pub(crate) struct Link {
    /// Receives for an association. `None` over TCP, and without a connection.
    #[pin]
    inlet: Mutex<Option<KBox<sctp::Inlet>>>,
    /// `None` before the connection begins and after it has been taken away.
    #[pin]
    connection: Mutex<Option<Connection>>,
}

impl Link {
    /// Creates a link without a connection.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            inlet <- new_mutex!(None, "riw::link::Link::inlet"),
            connection <- new_mutex!(None, "riw::link::Link::connection"),
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
                if let Connection::Sctp(association) = &mut connection {
                    *self.inlet.lock() = association.inlet.take();
                }
                *self.connection.lock() = Some(connection);
                Ok(())
            }
            Err(e) => {
                connection.abort();
                Err(e)
            }
        }
    }

    /// Takes the connection away, if there is one. On return no event of it is being reported.
    pub(crate) fn take(&self) -> Option<Connection> {
        let mut connection = self.connection.lock().take()?;

        connection.base().clear_callbacks();
        if let Connection::Sctp(association) = &mut connection {
            // Waits for a chunk that is being handled.
            association.inlet = self.inlet.lock().take();
        }
        Some(connection)
    }

    /// Returns the transport of the connection.
    pub(crate) fn transport(&self) -> Result<Transport> {
        self.with(|connection| Ok(connection.transport()))
    }

    /// Starts to connect; does not wait for the peer. [`LinkEvents::state_changed`] reports the
    /// result. Fails as `connect()` does.
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

    /// Whether neither side has closed the connection, and nothing has been received that has not been read.
    pub(crate) fn has_received_nothing(&self) -> bool {
        self.with(|connection| Ok(connection.has_received_nothing()))
            .unwrap_or(false)
    }

    /// Returns the local address.
    pub(crate) fn local_addr(&self) -> Result<SocketAddr> {
        self.with(|connection| connection.local_addr())
    }

    /// Makes TCP's receive buffer large enough for `count` unread bytes, within the limits of the
    /// network namespace. The receive buffer of SCTP has its size already.
    pub(crate) fn reserve(&self, count: u32) -> Result {
        self.with(|connection| {
            if let Connection::Tcp(socket) = connection {
                socket.reserve(count);
            }
            Ok(())
        })
    }

    /// Lets no allocation for the connection start or await I/O.
    pub(crate) fn avoid_io(&self) -> Result {
        self.with(|connection| {
            connection.base().avoid_io();
            Ok(())
        })
    }

    /// Sends the frames of `batch`, as many as the connection takes now, and removes them from `batch`.
    ///
    /// `EAGAIN` if there is no room for the rest: [`LinkEvents::room`] reports room later. `ENOBUFS` if
    /// there is no memory, and nothing is in flight: try again later. No event follows any other error.
    /// Such an error need not end the connection, for example if a security module refuses.
    pub(crate) fn send(&self, batch: &mut Batch) -> Result {
        self.with(|connection| match connection {
            Connection::Tcp(socket) => socket.send(&mut batch.buf),
            Connection::Sctp(association) => association.send(batch),
        })
    }

    /// Receives available bytes by TCP, as many as fit into `buf`. Returns the number of bytes; 0 after
    /// the peer's FIN. `EAGAIN` if no bytes are available; otherwise the error that ended the
    /// connection.
    pub(crate) fn receive(&self, buf: &mut [u8]) -> Result<usize> {
        self.with(|connection| match connection {
            Connection::Tcp(socket) => socket.recv(buf),
            Connection::Sctp(_) => Err(ENOTCONN),
        })
    }

    /// Returns the free space in the send buffer and the payload of a full segment or chunk, both in
    /// bytes. The space is 0 if less than a third is free, or over SCTP, if nothing is:
    /// [`LinkEvents::room`] reports room then.
    pub(crate) fn room_and_mss(&self) -> Result<(usize, u32)> {
        self.with(|connection| {
            Ok(match connection {
                Connection::Tcp(socket) => (socket.room(), socket.mss()),
                Connection::Sctp(association) => association.socket.room(),
            })
        })
    }

    /// Requests a larger send buffer from TCP, which enlarges it when it reports room: so
    /// [`LinkEvents::room`] reports the next acknowledgment. The send buffer of SCTP has a fixed size.
    pub(crate) fn notify_room(&self) -> Result {
        self.with(|connection| {
            if let Connection::Tcp(socket) = connection {
                socket.notify_room();
            }
            Ok(())
        })
    }

    /// Returns the payload of a full segment or chunk in bytes.
    pub(crate) fn mss(&self) -> Result<u32> {
        self.with(|connection| {
            Ok(match connection {
                Connection::Tcp(socket) => socket.mss(),
                Connection::Sctp(association) => association.socket.look().chunk,
            })
        })
    }

    /// Returns a number that changes when the peer has acknowledged bytes or sent some; 0 without a
    /// connection.
    pub(crate) fn moved(&self) -> u64 {
        self.with(|connection| {
            Ok(match connection {
                Connection::Tcp(socket) => socket.with_locked(|sk| sk.moved()),
                Connection::Sctp(association) => association.socket.look().moved,
            })
        })
        .unwrap_or(0)
    }

    /// Returns the milliseconds since the peer was heard of, over SCTP. `None` if SCTP waits for an
    /// acknowledgment, and so watches the peer itself; over TCP, which always does; and without a
    /// connection.
    pub(crate) fn silence(&self) -> Option<i64> {
        self.with(|connection| {
            Ok(match connection {
                Connection::Tcp(_) => None,
                Connection::Sctp(association) => {
                    let look = association.socket.look();

                    (look.unacknowledged == 0).then_some(look.silence.into())
                }
            })
        })
        .unwrap_or(None)
    }

    /// Lets `owner` receive what has arrived: calls [`LinkEvents::receive`], and [`LinkEvents::ended`] if the
    /// connection has ended.
    pub(crate) fn poll<T: LinkEvents>(&self, owner: &Arc<T>) {
        if let Some(inlet) = Option::as_mut(&mut self.inlet.lock()) {
            return self.receive_chunks(inlet, owner);
        }
        // Without a connection there is nothing to read.
        let _ = self.with(|connection| match connection {
            Connection::Tcp(socket) => {
                socket.with_locked(|sk| tcp::receive(owner, sk, RxCause::Worker));
                Ok(())
            }
            Connection::Sctp(_) => Err(ENOTCONN),
        });
    }

    /// Calls `f` with the connection. `f` may sleep, but must not wait for the peer: [`Self::take`]
    /// waits for it.
    #[inline]
    fn with<R>(&self, f: impl FnOnce(&mut Connection) -> Result<R>) -> Result<R> {
        f(Option::as_mut(&mut self.connection.lock()).ok_or(ENOTCONN)?)
    }
}
