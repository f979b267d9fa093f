// SPDX-License-Identifier: GPL-2.0

//! The terms of a link: addresses, states, details for an administrator to see.

use super::security::PeerName;
use core::net::SocketAddr;
use kernel::{fmt, prelude::*, sync::Arc};
use net::{addr, Base, Netns, Pernet, TcpState};

/// Where the sockets of a device are made.
pub(crate) struct Site<'a> {
    pub(crate) pernet: &'a Arc<Pernet>,
    pub(crate) ns: &'a Netns,
    /// The index of the VRF device, if they are in a VRF.
    pub(crate) vrf: Option<u32>,
}

impl Site<'_> {
    /// Moves a new socket into the VRF: it has a local address and routes only there. May sleep.
    pub(super) fn bind_to_vrf(&self, socket: &Base) -> Result {
        self.vrf.map_or(Ok(()), |vrf| socket.bind_to(vrf))
    }
}

/// The addresses of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AddrPair {
    /// The address of this side.
    pub(crate) local: SocketAddr,
    /// The address of the peer.
    pub(crate) remote: SocketAddr,
}

impl AddrPair {
    /// Returns the addresses of a socket, IPv4-mapped ones as IPv4. `ENOTCONN` if there is no peer.
    pub(super) fn of(socket: &Base) -> Result<Self> {
        Ok(Self {
            local: addr::unmapped(socket.local_addr()?),
            remote: addr::unmapped(socket.peer_addr()?),
        })
    }
}

impl fmt::Display for AddrPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        core::fmt::Display::fmt(&self.local, f)?;
        f.write_str(" - ")?;
        core::fmt::Display::fmt(&self.remote, f)
    }
}

/// The details of a connection. The addresses are the socket's own, so that `ss` finds the socket
/// by them: IPv4 addresses of an IPv6 socket stay mapped.
pub(crate) struct LinkDetails {
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
    /// The payload of a full segment, in bytes.
    pub(crate) mss: u32,
    /// Bytes that the socket has taken and the peer has not acknowledged.
    pub(crate) unacked: u32,
    /// The part of `unacked` that the socket has not sent.
    pub(crate) unsent: u32,
    /// The name of the cipher of TLS.
    pub(crate) cipher: Option<&'static CStr>,
    /// The name of the peer of TLS, if it is known: the subject of its certificate, or the identity
    /// of the pre-shared key that it has used.
    pub(crate) tls_peer: Option<PeerName>,
}

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkState {
    /// It is not established yet.
    Connecting,
    /// Both sides may send.
    Established,
    /// The peer has closed its half. This side may still send.
    PeerClosed,
    /// This side has closed its half, and the peer may have, too.
    Closing,
    /// The peer has closed both halves: this side can send nothing more, and nothing more will
    /// arrive. What has been sent is still delivered.
    ShuttingDown,
    /// There is no connection. The reason: `ECONNRESET` if the transport does not know one,
    /// `ENOTCONN` if the connection has been taken away.
    Closed(Error),
}

impl LinkState {
    /// Translates TCP's state. `error` returns the error that ended the connection.
    pub(super) fn new(state: TcpState, error: impl FnOnce() -> Option<Error>) -> Self {
        match state {
            TcpState::SynSent | TcpState::SynReceived => Self::Connecting,
            TcpState::Established => Self::Established,
            TcpState::CloseWait => Self::PeerClosed,
            TcpState::FinWait1
            | TcpState::FinWait2
            | TcpState::Closing
            | TcpState::LastAck
            | TcpState::TimeWait => Self::Closing,
            // A connection never listens.
            TcpState::Closed | TcpState::Listen => Self::Closed(error().unwrap_or(ECONNRESET)),
        }
    }
}
