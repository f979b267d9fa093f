// SPDX-License-Identifier: GPL-2.0

//! Sockets of connections over TCP, with TLS or without.

use super::super::{transport::bind, types::Site};
use core::net::SocketAddr;
use kernel::prelude::*;
use net::{Family, Socket};

/// Creates a socket that is bound to `local` and not connected yet, as
/// [`Connection::new`](super::super::Connection::new) says.
pub(in crate::link) fn new_socket(
    site: &Site<'_>,
    local: &SocketAddr,
    remote: &SocketAddr,
    tos: Option<u8>,
) -> Result<Socket> {
    let socket = Socket::new(site.pernet, site.ns, Family::from(remote))?;

    socket.set_reuseaddr();
    bind(&socket, site, local, tos)?;
    Ok(socket)
}

/// Returns the parameters of [`Socket::set_keepalive`] for a peer that is probed after `idle`
/// seconds of silence. All probes together take as long as that silence.
pub(in crate::link) fn keepalive(idle: u16) -> (u16, u16, u16) {
    const PROBES: u16 = 5;

    (idle, (idle / PROBES).max(1), PROBES)
}

/// Calls `connect`, and once more if it fails because of the port, and `release` gives up that
/// port.
pub(in crate::link) fn connect_from_any_port(
    connect: impl Fn() -> Result,
    release: impl FnOnce() -> bool,
) -> Result {
    match connect() {
        // The port was chosen as in `bind()`, and an earlier connection to the same peer still has
        // it, most often in TIME_WAIT. TCP looks for that when it connects, not when it binds.
        Err(e) if e == EADDRNOTAVAIL && release() => connect(),
        result => result,
    }
}
