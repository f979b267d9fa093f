// SPDX-License-Identifier: GPL-2.0

//! TCP sockets with TLS 1.3: the kernel encrypts and decrypts (kTLS), and a process makes the
//! handshake (tlshd), with the certificates of its configuration, or with pre-shared keys.
//!
//! C headers: [`include/net/handshake.h`](srctree/include/net/handshake.h),
//! [`include/net/tls.h`](srctree/include/net/tls.h)

mod callbacks;
mod handshake;
mod hook;
mod name;
mod psk;
mod socket;
mod subject;

pub(crate) use callbacks::wait_for_callbacks;
pub use handshake::{HandshakeDone, TlsRole};
pub use name::PeerName;
pub use psk::Psk;
pub use socket::{Cipher, TlsRecord, TlsSocket, RECORD_MAX};
