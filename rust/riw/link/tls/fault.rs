// SPDX-License-Identifier: GPL-2.0

//! Why there is no TLS.

use kernel::prelude::*;

/// Why a handshake has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TlsFault {
    /// No process makes handshakes.
    NoAgent,
    /// A certificate is not accepted, or the peer does not accept that of this side.
    Certificate,
    /// The peer has presented no certificate.
    NoCertificate,
    /// The process has given the handshake up.
    Timeout,
    /// Anything else, such as a peer that does not use TLS. The process has logged it.
    Failed,
}

impl TlsFault {
    /// Returns the fault in words.
    pub(in crate::link) fn rule(self) -> &'static str {
        match self {
            Self::NoAgent => "no tlshd runs in this network namespace",
            Self::Certificate => "a certificate was not accepted in the TLS handshake",
            Self::NoCertificate => "the peer has no certificate for TLS",
            Self::Timeout => "the TLS handshake took too long",
            Self::Failed => "the TLS handshake failed: tlshd may have logged the reason",
        }
    }

    /// Returns the fault of a handshake that has ended in an error.
    pub(super) fn new(error: Error) -> Self {
        match error {
            e if e == EACCES || e == EPERM => Self::Certificate,
            e if e == ETIMEDOUT => Self::Timeout,
            _ => Self::Failed,
        }
    }
}
