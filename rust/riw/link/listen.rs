// SPDX-License-Identifier: GPL-2.0

//! Listening links.

use super::{events::Hook, Connection};
use core::net::SocketAddr;
use kernel::{prelude::*, sync::Arc};
use net::{Family, ListenSocket, Listener, Netns, Pernet, Socket};

/// Receives the events of a listening link.
pub(crate) trait ListenEvents: Sized + Send + Sync + 'static {
    /// The accept queue may have a connection. Atomic context, must not sleep; nothing is locked.
    fn connection_ready(self: &Arc<Self>);
}

/// A link that will listen.
pub(crate) struct UnboundLink(Socket);

/// A link that listens.
///
/// Its drop closes it, and waits for an event that is being reported. It **holds no reference to
/// its network namespace**, which waits for the drop. All functions need process context and may
/// sleep.
pub(crate) struct ListenLink(ListenSocket);

impl UnboundLink {
    /// Creates a link for a local address like `addr`. Process context, may sleep; may load the
    /// module of the address family. Fails as `socket()` does.
    pub(crate) fn new(pernet: &Arc<Pernet>, ns: &Netns, addr: &SocketAddr) -> Result<Self> {
        Ok(Self(Socket::new(pernet, ns, Family::from(addr))?))
    }

    /// Binds the link and listens, with up to `backlog` connections in the accept queue.
    /// `family_only` excludes IPv4 from an IPv6 address; `tos` is the type of service, if set.
    /// Process context, may sleep. Fails as `bind()` and `listen()` do.
    ///
    /// Events go to `owner`. Earlier connections are not reported: call [`ListenLink::accept`] once
    /// afterwards.
    pub(crate) fn listen<T: ListenEvents>(
        self,
        addr: &SocketAddr,
        family_only: bool,
        tos: Option<u8>,
        backlog: u32,
        owner: Arc<T>,
    ) -> Result<ListenLink> {
        self.0.set_reuseaddr();
        if addr.is_ipv6() {
            self.0.set_v6only(family_only);
        }
        if let Some(tos) = tos {
            self.0.set_tos(tos);
        }
        self.0.bind(addr)?;

        let socket = ListenSocket::new(self.0, backlog)?;
        socket.set_listener(Hook::new(owner)?)?;
        Ok(ListenLink(socket))
    }
}

impl ListenLink {
    /// Accepts a connection. `EAGAIN` if there is none; otherwise fails as
    /// [`ListenSocket::accept`] does.
    pub(crate) fn accept(&self) -> Result<Connection> {
        self.0.accept().map(Connection::accepted)
    }
}

impl<T: ListenEvents> Listener for Hook<T> {
    fn connection_ready(self: &Arc<Self>) {
        self.owner().connection_ready();
    }
}
