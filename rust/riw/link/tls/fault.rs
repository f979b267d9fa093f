// SPDX-License-Identifier: GPL-2.0

//! Why there is no TLS.

use kernel::prelude::*;

/// Why a handshake has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TlsFault {
    /// No process makes handshakes.
    NoAgent,
    /// A certificate is not accepted, or the peer does not accept that of this side; or the peer
    /// has ended the handshake, for which tlshd has no other number.
    Certificate,
    /// The peer has presented no certificate.
    NoCertificate,
    /// The sides do not have the same pre-shared key, or one of them has none.
    Key,
    /// The peer has used a pre-shared key that the setting does not allow.
    OtherKey,
    /// The pre-shared key of this side may not be used any more.
    KeyRevoked,
    /// The setting has a keyring, and this side has to offer one key.
    Keyring,
    /// The process has given the handshake up, or the peer has: for an early end, GnuTLS has the
    /// number that tlshd takes for that of a time limit.
    Timeout,
    /// Anything else, such as a peer that does not use TLS. The process has logged it.
    Failed,
}

impl TlsFault {
    /// Returns the fault in words.
    pub(in crate::link) fn rule(self) -> &'static str {
        match self {
            Self::NoAgent => "no tlshd runs in this network namespace",
            Self::Certificate => {
                "a certificate was not accepted in the TLS handshake, or the peer has ended it"
            }
            Self::NoCertificate => "the peer has no certificate for TLS",
            Self::Key => "the TLS handshake found no pre-shared key that both sides have",
            Self::OtherKey => "the peer has a pre-shared key that tls_psk does not allow",
            Self::KeyRevoked => "the key of tls_psk is revoked or has expired",
            Self::Keyring => "tls_psk is a keyring, so there is no key to connect with",
            Self::Timeout => "the TLS handshake took too long, or the peer has ended it",
            Self::Failed => "the TLS handshake failed: tlshd may have logged the reason",
        }
    }

    /// Returns the fault of a handshake that has ended in an error. `has_psk`: it was to use a
    /// pre-shared key.
    pub(super) fn new(error: Error, has_psk: bool) -> Self {
        match error {
            e if (e == EACCES || e == EPERM) && has_psk => Self::Key,
            e if e == EACCES || e == EPERM => Self::Certificate,
            e if e == ETIMEDOUT => Self::Timeout,
            _ => Self::Failed,
        }
    }

    /// Returns the fault of a handshake that did not begin; `None` if it may begin later, or the
    /// error is no fault.
    pub(super) fn of_request(error: Error) -> Option<Self> {
        match error {
            e if e == ESRCH || e == EOPNOTSUPP => Some(Self::NoAgent),
            e if e == EKEYREVOKED => Some(Self::KeyRevoked),
            e if e == ENOKEY => Some(Self::Keyring),
            _ => None,
        }
    }
}
