// SPDX-License-Identifier: GPL-2.0

//! The handshake, which a process makes.

use super::{
    super::{
        deadline::Deadline,
        events::{EventSink, LinkEvents},
        startup::StartupFailure,
        types::LinkState,
    },
    connection::{TlsConnection, TlsStage},
    fault::TlsFault,
};
use kernel::{
    prelude::*,
    sync::{Arc, ArcBorrow},
};
use net::tls::HandshakeDone;

/// Milliseconds that a handshake takes, at most. riw ends it earlier if the time of a setting is
/// over.
const HANDSHAKE_TIME: u32 = 30_000;

impl<T: LinkEvents> HandshakeDone for EventSink<T> {
    fn handshake_done(self: ArcBorrow<'_, Self>) {
        self.owner().changed();
    }
}

impl TlsConnection {
    /// Makes the handshake, as far as that is possible now, as
    /// [`Link::secure`](super::super::Link::secure) says.
    pub(in crate::link) fn secure<T: LinkEvents>(
        &mut self,
        owner: &Arc<T>,
        deadline: &Deadline,
    ) -> Result<bool, StartupFailure> {
        match (&self.stage, self.tcp_state()) {
            (TlsStage::Secured, _) => Ok(true),
            (TlsStage::Late, _) => Ok(false),
            (TlsStage::Handshake, _) => self.end_handshake(owner),
            (_, LinkState::Connecting) => Ok(false),
            // It has ended before there was one.
            (_, LinkState::Closed(_)) => Ok(true),
            (TlsStage::Queued(place), LinkState::Established) => {
                match (place.is_first(), deadline.is_near()) {
                    (false, _) => {}
                    (true, false) => self.request_handshake(owner)?,
                    // If there are more connections than handshakes for long, all would get their
                    // turn when it is too late.
                    (true, true) => self.stage = TlsStage::Late,
                }
                Ok(false)
            }
            // The peer has not waited for its turn.
            (TlsStage::Queued(_), _) => Err(StartupFailure::Link(ECONNRESET)),
            (TlsStage::Connecting, _) => self.request_handshake(owner).map(|()| false),
        }
    }

    /// Requests the handshake. If there is no room for it, or other connections wait for that, the
    /// connection waits for its turn.
    fn request_handshake<T: LinkEvents>(&mut self, owner: &Arc<T>) -> Result<(), StartupFailure> {
        let owner = EventSink::new(owner.clone()).map_err(StartupFailure::Local)?;
        let has_place = matches!(self.stage, TlsStage::Queued(_));
        let begun = match has_place || self.terms.queue.is_empty() {
            true => {
                let psk = self.terms.psk.clone();

                (self.socket).begin_handshake(self.role, psk, HANDSHAKE_TIME, owner.clone())
            }
            false => Err(EAGAIN),
        };

        match begun {
            // A place is given up: the next connection tries.
            Ok(()) => self.stage = TlsStage::Handshake,
            Err(e) if e == EAGAIN => {
                if !has_place {
                    let place = self.terms.queue.join(owner);

                    self.stage = TlsStage::Queued(place.map_err(StartupFailure::Local)?);
                }
            }
            Err(e) => {
                return Err(
                    TlsFault::of_request(e).map_or(StartupFailure::Local(e), StartupFailure::from)
                );
            }
        }
        Ok(())
    }

    /// Acts on the result of the handshake, if it has ended.
    fn end_handshake<T: LinkEvents>(&mut self, owner: &Arc<T>) -> Result<bool, StartupFailure> {
        let has_psk = self.terms.psk.is_some();
        let is_authentic = match self.socket.poll_handshake() {
            None => return Ok(false),
            Some(result) => result.map_err(|e| TlsFault::new(e, has_psk))?,
        };

        if !is_authentic {
            return Err(match has_psk {
                true => TlsFault::OtherKey.into(),
                false => TlsFault::NoCertificate.into(),
            });
        }
        self.socket
            .set_callbacks(EventSink::new(owner.clone()).map_err(StartupFailure::Local)?)
            .map_err(StartupFailure::Local)?;
        self.stage = TlsStage::Secured;
        // An administrator may want the key to go.
        self.terms.psk = None;
        Ok(true)
    }
}
