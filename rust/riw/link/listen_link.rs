// SPDX-License-Identifier: GPL-2.0

//! Listening links.

use super::{
    sctp::{SctpListener, UnboundSctp},
    tcp::TcpConnection,
    transport::{Connection, Transport},
    types::Site,
};
use core::net::SocketAddr;
use kernel::prelude::*;
use net::{Base, Family, ListenSocket, ListenerHook, Socket};

/// A link that will listen.
pub(crate) enum UnboundLink {
    Tcp(Socket),
    Sctp(UnboundSctp),
}

/// A link that listens.
///
/// Its drop closes it, and waits for an event that is being reported. It **holds no reference to
/// its network namespace**, which waits for the drop. All functions need process context and may
/// sleep.
pub(crate) enum ListenLink {
    Tcp(ListenSocket),
    Sctp(SctpListener),
}

impl UnboundLink {
    /// Creates a link for a local address like `addr`; if connections can have several addresses,
    /// also for those of `more` that can be used. Process context, may sleep; may load the module
    /// of the address family. Fails as `socket()` does.
    pub(crate) fn new(
        transport: Transport,
        site: &Site<'_>,
        addr: &SocketAddr,
        more: KVec<SocketAddr>,
    ) -> Result<Self> {
        let this = match transport {
            Transport::Tcp | Transport::Tls => {
                Self::Tcp(Socket::new(site.pernet, site.ns, Family::from(addr))?)
            }
            Transport::Sctp => Self::Sctp(UnboundSctp::new(site, addr, more)?),
        };

        site.bind_to_vrf(this.base())?;
        Ok(this)
    }

    /// Returns the part that the sockets of all transports have.
    fn base(&self) -> &Base {
        match self {
            Self::Tcp(socket) => socket,
            Self::Sctp(socket) => socket,
        }
    }

    /// Binds the link and listens, with up to `backlog` connections in the accept queue.
    /// `family_only` excludes IPv4 from an IPv6 address; `tos` is the type of service, if set.
    /// Process context, may sleep; riw allocates nothing. Fails as `bind()` and `listen()` do.
    ///
    /// Events go to `hook`. Earlier connections are not reported: call [`ListenLink::accept`] once
    /// afterwards.
    pub(crate) fn listen(
        self,
        addr: &SocketAddr,
        family_only: bool,
        tos: Option<u8>,
        backlog: u32,
        hook: ListenerHook,
    ) -> Result<ListenLink> {
        let base = self.base();

        if addr.is_ipv6() {
            base.set_v6only(family_only);
        }
        if let Some(tos) = tos {
            base.set_tos(tos);
        }
        match self {
            Self::Tcp(socket) => {
                socket.set_reuseaddr();
                socket.bind(addr)?;
                let socket = ListenSocket::new(socket, backlog)?;

                socket.set_listener(hook)?;
                Ok(ListenLink::Tcp(socket))
            }
            Self::Sctp(socket) => Ok(ListenLink::Sctp(socket.listen(addr, backlog, hook)?)),
        }
    }
}

impl ListenLink {
    /// Accepts a connection. `EAGAIN` if there is none; otherwise fails as
    /// [`ListenSocket::accept`] does.
    pub(crate) fn accept(&self) -> Result<Connection> {
        match self {
            Self::Tcp(socket) => Ok(Connection::Tcp(TcpConnection(socket.accept()?))),
            Self::Sctp(listener) => Ok(Connection::Sctp(listener.accept()?)),
        }
    }
}
