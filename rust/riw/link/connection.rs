// SPDX-License-Identifier: GPL-2.0

//! One end of a connection.

use super::{
    events::{Hook, LinkEvents},
    sctp::{self, Association},
    types::{AddrPair, LinkState, Site, Transport},
};
use core::net::SocketAddr;
use kernel::{prelude::*, sync::Arc};
use net::{addr, Base, Family, SctpSocket, Socket};

/// Keepalive probes to an idle peer. All of them together take as long as the silence before the
/// first one.
const PROBES: u16 = 5;

/// One end of a connection, or of one to be made.
///
/// Its drop closes it; nothing is retransmitted after that ([`net::Base`]). It **holds no reference to
/// its network namespace**, which waits for the drop.
///
/// All functions need process context and may sleep.
pub(crate) enum Connection {
    Tcp(Socket),
    Sctp(KBox<Association>),
}

impl Connection {
    /// Creates a connection that is bound to `local` and not connected yet; over SCTP also to the
    /// addresses of `more` that can be used. `remote` gives the address family; `tos` is the type of
    /// service, if set. Fails as `socket()` and `bind()` do.
    pub(crate) fn new(
        transport: Transport,
        site: &Site<'_>,
        local: &SocketAddr,
        more: &[SocketAddr],
        remote: &SocketAddr,
        tos: Option<u8>,
    ) -> Result<Self> {
        Ok(match transport {
            Transport::Tcp => {
                let socket = Socket::new(site.pernet, site.ns, Family::from(remote))?;

                socket.set_reuseaddr();
                bind(&socket, site, local, tos)?;
                Self::Tcp(socket)
            }
            Transport::Sctp => {
                let socket = sctp::new_socket(site, remote)?;

                bind(&socket, site, local, tos)?;
                sctp::bind_more(&socket, more);
                Self::accepted_sctp(socket)?
            }
        })
    }

    /// Wraps an accepted socket.
    pub(super) fn accepted(socket: Socket) -> Self {
        Self::Tcp(socket)
    }

    /// Wraps an SCTP socket. May sleep.
    pub(super) fn accepted_sctp(socket: SctpSocket) -> Result<Self> {
        Ok(Self::Sctp(KBox::new(
            Association::new(socket)?,
            GFP_KERNEL_ACCOUNT,
        )?))
    }

    /// Sets the options of a connection, and reports its events to `owner`.
    pub(super) fn prepare<T: LinkEvents>(&mut self, idle: u16, owner: Arc<T>) -> Result {
        match self {
            Self::Tcp(socket) => {
                socket.set_nodelay();
                if idle != 0 {
                    socket.set_keepalive(idle, (idle / PROBES).max(1), PROBES)?;
                }
                socket.set_callbacks(Hook::new(owner)?)
            }
            Self::Sctp(association) => association.prepare(idle, owner),
        }
    }

    /// Lets the connection send and receive with memory from the reserves, as reclaim may wait for it.
    /// Over SCTP, memory from the reserves only serves chunks that a transmit run or the peer sends, not
    /// chunks that a timer of SCTP retransmits.
    pub(crate) fn use_reserves(&self) {
        self.base().use_reserves();
    }

    /// Returns the part that the sockets of all transports have.
    pub(super) fn base(&self) -> &Base {
        match self {
            Self::Tcp(socket) => socket,
            Self::Sctp(association) => &association.socket,
        }
    }

    /// Starts to connect; does not wait for the peer. Fails as `connect()` does.
    pub(super) fn connect(&self, remote: &SocketAddr) -> Result {
        match (self.base().connect(remote), self) {
            // The port was chosen as in `bind()`, and an earlier connection to the same peer still has it,
            // most often in TIME_WAIT. TCP looks for that when it connects, not when it binds.
            (Err(e), Self::Tcp(socket))
                if e == EADDRNOTAVAIL && socket.release_ephemeral_port() =>
            {
                socket.connect(remote)
            }
            (result, _) => result,
        }
    }

    /// Returns the transport.
    pub(crate) fn transport(&self) -> Transport {
        match self {
            Self::Tcp(_) => Transport::Tcp,
            Self::Sctp(_) => Transport::Sctp,
        }
    }

    /// Returns the current state. The state of an SCTP session is not considered.
    pub(super) fn state(&self) -> LinkState {
        match self {
            Self::Tcp(socket) => LinkState::new(socket.state(), || socket.error()),
            Self::Sctp(association) => association.state(),
        }
    }

    /// Whether neither side has closed it, and nothing has been received that has not been read.
    pub(super) fn has_received_nothing(&self) -> bool {
        match self.state() {
            LinkState::Connecting => true,
            LinkState::Established => match self {
                Self::Tcp(socket) => {
                    socket.with_locked(|sk| sk.read().unread().is_empty() && !sk.has_urgent())
                }
                Self::Sctp(association) => !association.has_received(),
            },
            _ => false,
        }
    }

    /// Returns the local address.
    pub(crate) fn local_addr(&self) -> Result<SocketAddr> {
        match self {
            Self::Tcp(socket) => socket.local_addr(),
            Self::Sctp(association) => Ok(association.addrs()?.local),
        }
    }

    /// Returns the addresses of both sides. An IPv4-mapped address is returned as IPv4. `ENOTCONN`
    /// if there is no peer.
    pub(crate) fn addrs(&self) -> Result<AddrPair> {
        match self {
            Self::Tcp(socket) => Ok(AddrPair {
                local: addr::unmapped(socket.local_addr()?),
                remote: addr::unmapped(socket.peer_addr()?),
            }),
            Self::Sctp(association) => association.addrs(),
        }
    }

    /// Resets the connection and discards unsent data.
    pub(crate) fn abort(self) {
        match self {
            Self::Tcp(socket) => socket.abort(),
            // So does the drop.
            Self::Sctp(_) => {}
        }
    }

    /// Resets the connection, and returns it as a new one that is bound to the same address. Only TCP can do
    /// that: `EOPNOTSUPP` over SCTP.
    pub(crate) fn reset(self) -> Result<Self> {
        match self {
            Self::Tcp(socket) => match socket.disconnect() {
                Ok(()) => Ok(Self::Tcp(socket)),
                Err(e) => {
                    socket.abort();
                    Err(e)
                }
            },
            Self::Sctp(_) => Err(EOPNOTSUPP),
        }
    }

    /// Ends this side's half: sends a FIN or, over SCTP, the end of the session.
    pub(super) fn close_write(&mut self) -> Result {
        match self {
            Self::Tcp(socket) => socket.shutdown_write(),
            Self::Sctp(association) => association.close(),
        }
    }
}

/// Binds a socket to `local`.
fn bind(socket: &Base, site: &Site<'_>, local: &SocketAddr, tos: Option<u8>) -> Result {
    site.bind_to_vrf(socket)?;
    if let Some(tos) = tos {
        socket.set_tos(tos);
    }
    match socket.bind(local) {
        // rdma_cm chose the port from a port space of its own, and does not know that the transport
        // uses it. A port that is not ephemeral was chosen by the consumer. One that is may have been, too:
        // rdma_cm does not say.
        Err(e) if e == EADDRINUSE && site.ns.is_ephemeral(local.port()) => {
            let mut local = *local;

            local.set_port(0);
            socket.bind(&local)
        }
        other => other,
    }
}
