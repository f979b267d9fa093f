// SPDX-License-Identifier: GPL-2.0

//! The handshake, which a process makes.

use super::{
    super::{
        events::{Hook, LinkEvents},
        startup::StartupFailure,
        transport::{Carrier, Connection},
        types::LinkState,
        Link,
    },
    connection::{TlsConnection, TlsStage},
    fault::TlsFault,
};
use kernel::{
    prelude::*,
    sync::{Arc, ArcBorrow},
    time::{msecs_to_jiffies, Jiffies},
};
use net::tls::{HandshakeDone, TlsRole};

/// Milliseconds that a handshake takes, at most. riw ends it earlier if the time of a setting is
/// over.
const HANDSHAKE_TIME: u32 = 30_000;
/// Milliseconds after which a handshake is requested again for which there was no room: the kernel
/// keeps 3 to 50 requests of a namespace until a process takes them, of all its users. So each user
/// has the same chance, and thousands of connections that wait cost little.
const RETRY_TIME: u32 = 50;

impl<T: LinkEvents> HandshakeDone for Hook<T> {
    fn handshake_done(self: ArcBorrow<'_, Self>) {
        self.owner().changed();
    }
}

impl Link {
    /// Makes the handshake on the connection, if it needs one, as far as that is possible now.
    /// `owner` gets the events of the link. Returns whether no handshake is left to wait for, or
    /// why it has failed.
    pub(crate) fn secure<T: LinkEvents>(&self, owner: &Arc<T>) -> Result<bool, StartupFailure> {
        let mut secured = Ok(false);

        self.with(|connection| {
            secured = match connection {
                Connection::Tls(tls) => tls.secure(owner),
                Connection::Tcp(_) | Connection::Sctp(_) => Ok(true),
            };
            Ok(())
        })
        .map_err(StartupFailure::Local)?;
        secured
    }

    /// Returns the time after which to call [`Self::secure`] again, if no event will follow.
    pub(crate) fn retry_time(&self) -> Option<Jiffies> {
        let queued = self
            .with(|connection| {
                Ok(matches!(connection, Connection::Tls(tls) if tls.stage == TlsStage::Queued))
            })
            .unwrap_or(false);

        queued.then(|| msecs_to_jiffies(RETRY_TIME))
    }
}

impl TlsConnection {
    fn secure<T: LinkEvents>(&mut self, owner: &Arc<T>) -> Result<bool, StartupFailure> {
        match self.stage {
            TlsStage::Secured => Ok(true),
            TlsStage::Handshake => self.end_handshake(owner),
            TlsStage::Connecting | TlsStage::Queued => match self.tcp_state() {
                LinkState::Connecting => Ok(false),
                // It has ended before there was one.
                LinkState::Closed(_) => Ok(true),
                _ => self.request_handshake(owner).map(|()| false),
            },
        }
    }

    /// Requests the handshake.
    fn request_handshake<T: LinkEvents>(&mut self, owner: &Arc<T>) -> Result<(), StartupFailure> {
        let peer = self.addrs().map_err(StartupFailure::Link)?.remote.ip();
        let owner = Hook::new(owner.clone()).map_err(StartupFailure::Local)?;
        let begun = (self.socket).begin_handshake(self.role, peer, HANDSHAKE_TIME, owner);

        self.stage = match begun {
            Ok(()) => TlsStage::Handshake,
            Err(e) if e == EAGAIN => TlsStage::Queued,
            Err(e) if e == ESRCH || e == EOPNOTSUPP => return Err(TlsFault::NoAgent.into()),
            Err(e) => return Err(StartupFailure::Local(e)),
        };
        Ok(())
    }

    /// Acts on the result of the handshake, if it has ended.
    fn end_handshake<T: LinkEvents>(&mut self, owner: &Arc<T>) -> Result<bool, StartupFailure> {
        let has_certificate = match self.socket.poll_handshake() {
            None => return Ok(false),
            Some(result) => result.map_err(TlsFault::new)?,
        };

        // A client has checked the certificate of the server, and a server only requests one.
        if self.role == TlsRole::Server && !has_certificate {
            return Err(TlsFault::NoCertificate.into());
        }
        self.socket
            .set_callbacks(Hook::new(owner.clone()).map_err(StartupFailure::Local)?)
            .map_err(StartupFailure::Local)?;
        self.stage = TlsStage::Secured;
        Ok(true)
    }
}
