// SPDX-License-Identifier: GPL-2.0

//! The connection below a stream, for an administrator to see.

use super::{Connection, Link};
use core::net::SocketAddr;
use kernel::prelude::*;

/// The details of a connection. The addresses are the socket's own, so that `ss` finds the socket by
/// them: IPv4 addresses of an IPv6 socket stay mapped.
pub(crate) struct LinkDetails {
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
    /// The payload of a full TCP segment, or of a full SCTP chunk, in bytes.
    pub(crate) mss: u32,
    /// Bytes that the socket has taken and the peer has not acknowledged.
    pub(crate) unacked: u32,
    /// The part of `unacked` that the socket has not sent.
    pub(crate) unsent: u32,
}

impl Link {
    /// Returns the details of the connection.
    pub(crate) fn details(&self) -> Result<LinkDetails> {
        self.with(|connection| {
            let socket = match connection {
                Connection::Tcp(socket) => socket,
                Connection::Sctp(association) => {
                    let (local, remote) = association.socket.addrs()?;
                    let look = association.socket.look();

                    return Ok(LinkDetails {
                        local,
                        remote,
                        mss: look.chunk,
                        unacked: look.unacknowledged,
                        unsent: look.unsent,
                    });
                }
            };
            let (unacked, unsent) = socket.with_locked(|sk| (sk.unacknowledged(), sk.unsent()));

            Ok(LinkDetails {
                local: socket.local_addr()?,
                remote: socket.peer_addr()?,
                mss: socket.mss(),
                unacked,
                unsent,
            })
        })
    }
}
