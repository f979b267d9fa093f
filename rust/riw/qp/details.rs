// SPDX-License-Identifier: GPL-2.0

//! The state of a queue pair and its connection, for an administrator to see.

use super::{state::QpStartup, traits::Role, Qp};
use crate::{link::LinkDetails, stream::details::StreamDetails};
use iwarp::qp::State;
use kernel::prelude::*;
use rdma::restrack::{Details, DetailsWriter, MessageFull};

/// The details of a queue pair. The parts are taken one after the other, so they may be of slightly
/// different moments.
pub(crate) struct QpDetails {
    state: State,
    /// The startup of the present connection, or of the last one.
    startup: Option<QpStartup>,
    /// `None` if the queue pair is not connected.
    link: Option<LinkDetails>,
    stream: StreamDetails,
}

impl Qp {
    /// Returns the details. Process context; may sleep.
    pub(crate) fn details(&self) -> QpDetails {
        let (snapshot, startup) = (self.snapshot(), self.startup());

        QpDetails {
            state: snapshot.state,
            startup,
            link: snapshot
                .connection
                .and_then(|connection| connection.link().with(|link| link.details()).ok()),
            stream: self.stream.details(),
        }
    }
}

impl Details for QpDetails {
    fn write(&self, to: &mut DetailsWriter<'_>) -> Result<(), MessageFull> {
        to.text(c"state", state_name(self.state))?;
        if let Some(startup) = &self.startup {
            startup.write(to)?;
        }
        if let Some(link) = &self.link {
            link.write(to)?;
        }
        self.stream.write(to)
    }
}

impl Details for LinkDetails {
    fn write(&self, to: &mut DetailsWriter<'_>) -> Result<(), MessageFull> {
        to.display(c"local_addr", &self.local)?;
        to.display(c"remote_addr", &self.remote)?;
        to.u32(c"mss", self.mss)?;
        to.u32(c"unacked_bytes", self.unacked)?;
        to.u32(c"unsent_bytes", self.unsent)?;
        if let Some(cipher) = self.cipher {
            to.text(c"cipher", cipher)?;
        }
        if let Some(peer) = &self.tls_peer {
            to.text(c"tls_peer", peer.text())?;
        }
        Ok(())
    }
}

impl Details for QpStartup {
    fn write(&self, to: &mut DetailsWriter<'_>) -> Result<(), MessageFull> {
        let Self {
            transport,
            parameters,
            role,
        } = self;
        let role: &CStr = match role {
            Role::Initiator => c"initiator",
            Role::Responder => c"responder",
        };

        to.text(c"role", role)?;
        to.text(c"transport", transport.name())?;
        if transport.has_mpa() {
            to.u32(c"mpa_revision", parameters.revision.into())?;
            to.u32(c"crc", parameters.crc.into())?;
            to.u32(c"tx_markers", parameters.tx_markers.into())?;
            to.u32(c"rx_markers", parameters.rx_markers.into())?;
        }
        to.u32(c"ord", parameters.ord)?;
        to.u32(c"ird", parameters.ird)
    }
}

/// Returns the name of a state as the documentation has it.
fn state_name(state: State) -> &'static CStr {
    match state {
        State::Idle => c"IDLE",
        State::Rts => c"RTS",
        State::Draining => c"DRAINING",
        State::Closing => c"CLOSING",
        State::Terminate => c"TERMINATE",
        State::Error => c"ERROR",
    }
}
