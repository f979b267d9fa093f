// SPDX-License-Identifier: GPL-2.0

//! The handshake, which a process makes.

use super::{
    super::{
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
    ) -> Result<bool, StartupFailure> {
        match &self.stage {
            TlsStage::Secured => Ok(true),
            TlsStage::Handshake => self.end_handshake(owner),
            TlsStage::Connecting | TlsStage::Queued(_) => match self.tcp_state() {
                LinkState::Connecting => Ok(false),
                // It has ended before there was one.
                LinkState::Closed(_) => Ok(true),
                _ => self.request_handshake(owner).map(|()| false),
            },
        }
    }

    /// Requests the handshake, if no other connection waits for that, or when this one is the
    /// first that does.
    fn request_handshake<T: LinkEvents>(&mut self, owner: &Arc<T>) -> Result<(), StartupFailure> {
        let owner = EventSink::new(owner.clone()).map_err(StartupFailure::Local)?;
        let is_its_turn = match &self.stage {
            TlsStage::Queued(place) => place.is_first(),
            _ => self.terms.queue.is_empty(),
        };
        let begun = match is_its_turn {
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
                if matches!(self.stage, TlsStage::Connecting) {
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
