// SPDX-License-Identifier: GPL-2.0

//! How connections are secured, which an administrator chooses.

use super::tls::HandshakeQueue;
use kernel::{prelude::*, str::CString, sync::Arc};
#[cfg(CONFIG_RDMA_RIW_TLS)]
pub(crate) use net::tls::{PeerName, Psk};

/// Stands for a pre-shared key if riw is built without TLS: there is none.
#[cfg(not(CONFIG_RDMA_RIW_TLS))]
pub(crate) enum Psk {}

#[cfg(not(CONFIG_RDMA_RIW_TLS))]
impl Psk {
    pub(crate) fn find(_serial: u32) -> Result<Self> {
        Err(EPROTONOSUPPORT)
    }

    pub(crate) fn serial(&self) -> u32 {
        match *self {}
    }
}

/// Stands for the name of a peer if riw is built without TLS: there is none.
#[cfg(not(CONFIG_RDMA_RIW_TLS))]
#[derive(Clone, Copy)]
pub(crate) enum PeerName {}

#[cfg(not(CONFIG_RDMA_RIW_TLS))]
impl PeerName {
    pub(crate) fn text(&self) -> &CStr {
        match *self {}
    }
}

/// The use of TLS, which only TCP can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TlsMode {
    Off,
    /// Each connection needs it.
    Required,
    /// As responder, the peer chooses. As initiator, there is none.
    Accept,
}

/// How the connections of a device are secured.
pub(crate) struct Security {
    pub(crate) tls: TlsMode,
    pub(crate) terms: TlsTerms,
}

/// The terms of a handshake.
#[derive(Clone)]
pub(crate) struct TlsTerms {
    /// The name that the certificate of a server must have; `None`: its address.
    pub(crate) name: Option<Arc<CString>>,
    /// The pre-shared key that an initiator offers, and that a responder accepts; or a keyring, of
    /// which a responder accepts each key. `None`: certificates authenticate.
    pub(crate) psk: Option<Arc<Psk>>,
    /// Where connections of the device wait for room.
    pub(super) queue: HandshakeQueue,
}

impl TlsTerms {
    /// Returns those of a new device: a server has a certificate for its address. May sleep. Fails
    /// with `ENOMEM` without memory.
    pub(crate) fn new() -> Result<Self> {
        Ok(Self {
            name: None,
            psk: None,
            queue: HandshakeQueue::new()?,
        })
    }
}
