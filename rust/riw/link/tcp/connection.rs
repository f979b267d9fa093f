// SPDX-License-Identifier: GPL-2.0

//! One end of a TCP connection.

use super::{
    super::{
        batch::Batch,
        events::{EventSink, LinkEvents},
        linger::CloseProgress,
        transport::Carrier,
        types::{AddrPair, LinkDetails, LinkState, Site},
    },
    receive,
    socket::{connect_from_any_port, keepalive, new_socket},
    RxCause,
};
use crate::bounds::RX_ROOM;
use core::net::SocketAddr;
use kernel::{prelude::*, sync::Arc};
use net::{Socket, TcpState};

/// One end of a TCP connection, or of one to be made.
pub(crate) struct TcpConnection(pub(in crate::link) Socket);

impl TcpConnection {
    /// Creates a connection that is bound to `local` and not connected yet, as
    /// [`Connection::new`](super::super::Connection::new) says.
    pub(in crate::link) fn new(
        site: &Site<'_>,
        local: &SocketAddr,
        remote: &SocketAddr,
        tos: Option<u8>,
    ) -> Result<Self> {
        new_socket(site, local, remote, tos).map(Self)
    }

    /// Sets the options of a connection, and reports its events to `owner`. May sleep.
    pub(in crate::link) fn prepare<T: LinkEvents>(&self, idle: u16, owner: Arc<T>) -> Result {
        self.0.set_nodelay();
        if idle != 0 {
            let (idle, interval, probes) = keepalive(idle);

            self.0.set_keepalive(idle, interval, probes)?;
        }
        self.0.set_callbacks(EventSink::new(owner)?)
    }

    /// Resets the connection, and returns it as a new one that is bound to the same address. May
    /// sleep.
    pub(in crate::link) fn reset(self) -> Result<Self> {
        match self.0.disconnect() {
            Ok(()) => Ok(self),
            Err(e) => {
                self.0.abort();
                Err(e)
            }
        }
    }

    /// Returns the first octet that has been received, and leaves it; `None` if none has. May
    /// sleep. `ENOTCONN` if there is none, and none can be read any more.
    pub(in crate::link) fn first_octet(&self) -> Result<Option<u8>> {
        self.0.with_locked(|sk| {
            let mut octet = [0];
            let read = sk
                .read()
                .unread()
                .each(0..1, |fragment| fragment.copy_to(&mut octet));
            let [octet] = octet;

            match (read, sk.state()) {
                (Ok(()), _) => Ok(Some(octet)),
                _ if sk.has_urgent() => Err(ENOTCONN),
                (Err(_), TcpState::SynReceived | TcpState::Established) => Ok(None),
                (Err(_), _) => Err(ENOTCONN),
            }
        })
    }

    /// Lets `owner` receive what is in the socket. May sleep.
    pub(in crate::link) fn poll<T: LinkEvents>(&self, owner: &Arc<T>) {
        self.0.with_locked(|sk| receive(owner, sk, RxCause::Worker));
    }
}

impl Carrier for TcpConnection {
    fn connect(&self, remote: &SocketAddr) -> Result {
        connect_from_any_port(
            || self.0.connect(remote),
            || self.0.release_ephemeral_port(),
        )
    }

    fn state(&self) -> LinkState {
        LinkState::new(self.0.state(), || self.0.error())
    }

    fn has_received(&self) -> bool {
        self.0
            .with_locked(|sk| !sk.read().unread().is_empty() || sk.has_urgent())
    }

    fn local_addr(&self) -> Result<SocketAddr> {
        self.0.local_addr()
    }

    fn addrs(&self) -> Result<AddrPair> {
        AddrPair::of(&self.0)
    }

    /// The buffer is as large as the limits of the network namespace allow.
    fn reserve(&self) {
        self.0.reserve(RX_ROOM);
    }

    #[inline]
    fn send(&mut self, batch: &mut Batch) -> Result {
        self.0.send(&mut batch.buf)
    }

    fn receive(&mut self, buf: &mut [u8]) -> Result<usize> {
        self.0.recv(buf)
    }

    /// The space is 0 if less than a third is free.
    #[inline]
    fn room_and_emss(&self) -> (usize, u32) {
        (self.0.room(), self.0.mss())
    }

    fn notify_room(&self) {
        self.0.notify_room();
    }

    fn emss(&self) -> u32 {
        self.0.mss()
    }

    fn moved(&self) -> u64 {
        self.0.with_locked(|sk| sk.moved())
    }

    fn details(&self) -> Result<LinkDetails> {
        let (unacked, unsent) = self.0.with_locked(|sk| (sk.unacknowledged(), sk.unsent()));

        Ok(LinkDetails {
            local: self.0.local_addr()?,
            remote: self.0.peer_addr()?,
            mss: self.0.mss(),
            unacked,
            unsent,
            cipher: None,
            tls_peer: None,
        })
    }

    fn close_write(&mut self) -> Result {
        self.0.shutdown_write()
    }

    fn progress(&mut self) -> CloseProgress {
        self.0.with_locked(|sk| {
            sk.discard();
            match sk.state() {
                TcpState::Closed => CloseProgress::Closed,
                _ => CloseProgress::Open {
                    unacknowledged: sk.unacknowledged(),
                    more: false,
                },
            }
        })
    }
}
