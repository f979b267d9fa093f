// SPDX-License-Identifier: GPL-2.0

//! One end of a TCP connection.

use super::{events::Hook, LinkEvents, LinkState};
use core::net::SocketAddr;
use kernel::{fmt, prelude::*, sync::Arc};
use net::{addr, Family, Netns, Pernet, Socket};

/// Keepalive probes to an idle peer. All of them together take as long as the silence before the
/// first one.
const PROBES: u16 = 5;

/// The addresses of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AddrPair {
    /// The address of this side.
    pub(crate) local: SocketAddr,
    /// The address of the peer.
    pub(crate) remote: SocketAddr,
}

impl fmt::Display for AddrPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        core::fmt::Display::fmt(&self.local, f)?;
        f.write_str(" - ")?;
        core::fmt::Display::fmt(&self.remote, f)
    }
}

/// One end of a TCP connection, or of one to be made.
///
/// Its drop closes it; TCP retransmits nothing after that ([`Socket`]). It **holds no reference to
/// its network namespace**, which waits for the drop.
///
/// All functions need process context and may sleep.
pub(crate) struct Connection(Socket);

impl Connection {
    /// Creates a connection that is bound to `local` and not connected yet. `remote` gives the
    /// address family; `tos` is the type of service, if set. Fails as `socket()` and `bind()` do.
    pub(crate) fn new(
        pernet: &Arc<Pernet>,
        ns: &Netns,
        local: &SocketAddr,
        remote: &SocketAddr,
        tos: Option<u8>,
    ) -> Result<Self> {
        let socket = Socket::new(pernet, ns, Family::from(remote))?;

        socket.set_reuseaddr();
        if let Some(tos) = tos {
            socket.set_tos(tos);
        }
        match socket.bind(local) {
            // rdma_cm chose the port from a port space of its own, and does not know that TCP uses
            // it. The consumer did not ask for this port: it is an ephemeral one.
            Err(e) if e == EADDRINUSE && ns.is_ephemeral(local.port()) => {
                let mut local = *local;

                local.set_port(0);
                socket.bind(&local)?;
            }
            other => other?,
        }
        Ok(Self(socket))
    }

    /// Wraps an accepted socket.
    pub(super) fn accepted(socket: Socket) -> Self {
        Self(socket)
    }

    /// Sets the options of a connection, and reports its events to `owner`.
    pub(super) fn prepare<T: LinkEvents>(&self, idle: u16, owner: Arc<T>) -> Result {
        self.0.set_nodelay();
        if idle != 0 {
            self.0.set_keepalive(idle, (idle / PROBES).max(1), PROBES)?;
        }
        self.0.set_callbacks(Hook::new(owner)?)
    }

    pub(super) fn socket(&self) -> &Socket {
        &self.0
    }

    /// Returns the current state.
    pub(super) fn state(&self) -> LinkState {
        LinkState::new(self.0.state(), || self.0.error())
    }

    /// Returns the local address.
    pub(crate) fn local_addr(&self) -> Result<SocketAddr> {
        self.0.local_addr()
    }

    /// Returns the addresses of both sides. An IPv4-mapped address is returned as IPv4. `ENOTCONN`
    /// if there is no peer.
    pub(crate) fn addrs(&self) -> Result<AddrPair> {
        Ok(AddrPair {
            local: addr::unmapped(self.0.local_addr()?),
            remote: addr::unmapped(self.0.peer_addr()?),
        })
    }

    /// Resets the connection and discards unsent data.
    pub(crate) fn abort(self) {
        self.0.abort();
    }
}
