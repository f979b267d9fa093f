// SPDX-License-Identifier: GPL-2.0

//! A socket that listens for associations.

use super::{
    super::types::Site,
    association::{bind_more, new_listener},
    Association,
};
use core::{net::SocketAddr, ops::Deref};
use kernel::prelude::*;
use net::{
    sctp::{SctpListenSocket, SctpSocket},
    Base, ListenerHook,
};

/// A socket that will listen.
pub(crate) struct UnboundSctp {
    socket: SctpSocket,
    /// Further addresses to listen at.
    more: KVec<SocketAddr>,
}

impl Deref for UnboundSctp {
    type Target = Base;

    fn deref(&self) -> &Base {
        &self.socket
    }
}

impl UnboundSctp {
    /// Makes a socket, as [`UnboundLink::new`](super::super::UnboundLink::new) says.
    pub(in crate::link) fn new(
        site: &Site<'_>,
        addr: &SocketAddr,
        more: KVec<SocketAddr>,
    ) -> Result<Self> {
        Ok(Self {
            socket: new_listener(site, addr)?,
            more,
        })
    }

    /// Binds the socket and listens, as [`UnboundLink::listen`](super::super::UnboundLink::listen)
    /// says.
    pub(in crate::link) fn listen(
        self,
        addr: &SocketAddr,
        backlog: u32,
        hook: ListenerHook,
    ) -> Result<SctpListener> {
        self.socket.bind_listener(addr)?;
        bind_more(&self.socket, &self.more);
        let socket = SctpListenSocket::new(self.socket, backlog)?;

        socket.set_listener(hook)?;
        Ok(SctpListener(socket))
    }
}

/// A socket that listens.
pub(crate) struct SctpListener(SctpListenSocket);

impl SctpListener {
    /// Accepts an association. May sleep. Fails as [`SctpListenSocket::accept`] does.
    pub(in crate::link) fn accept(&self) -> Result<KBox<Association>> {
        Association::new(self.0.accept()?)
    }
}
