// SPDX-License-Identifier: GPL-2.0

//! Sockets.

use super::{
    handshake::{HandshakeDone, PendingHandshake, TlsRole},
    hook::{self, ReadLimit},
    name::PeerName,
    psk::Psk,
};
use crate::{AnyEvent, Base, SendBuf, Socket, TcpState};
use core::ops::Deref;
use kernel::{error::to_result, prelude::*, sync::Arc};
use riw_bindings as bindings;

/// Maximum octets of a record's content.
pub const RECORD_MAX: u32 = 16_384;

/// The cipher of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Cipher {
    Aes128Gcm,
    Aes256Gcm,
    Aes128Ccm,
    ChaCha20Poly1305,
    Other,
}

impl Cipher {
    /// Returns the cipher of this number; `None` if it is 0.
    fn new(number: u16) -> Option<Self> {
        Some(match number.into() {
            0 => return None,
            bindings::TLS_CIPHER_AES_GCM_128 => Self::Aes128Gcm,
            bindings::TLS_CIPHER_AES_GCM_256 => Self::Aes256Gcm,
            bindings::TLS_CIPHER_AES_CCM_128 => Self::Aes128Ccm,
            bindings::TLS_CIPHER_CHACHA20_POLY1305 => Self::ChaCha20Poly1305,
            _ => Self::Other,
        })
    }

    /// Returns the name. Any context.
    pub fn name(self) -> &'static CStr {
        match self {
            Self::Aes128Gcm => c"aes-128-gcm",
            Self::Aes256Gcm => c"aes-256-gcm",
            Self::Aes128Ccm => c"aes-128-ccm",
            Self::ChaCha20Poly1305 => c"chacha20-poly1305",
            Self::Other => c"other",
        }
    }
}

/// The result of a receive: octets of data, or a control record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsRecord {
    /// So many octets of data.
    Data(usize),
    /// The alert that ends the peer's direction: all that it has sent has been received.
    CloseNotify,
    /// Another alert, with this description (RFC 8446, section 6).
    Alert(u8),
    /// The peer's FIN without an alert before it: anybody may have sent it.
    Truncation,
    /// The peer uses new keys, which this side has no way to agree on.
    KeyUpdate,
    /// Another handshake message, such as a ticket. It is of no use here.
    Handshake,
    /// A record of data that has no octets (RFC 8446, section 5.1).
    Empty,
}

/// A TCP socket that gets TLS: [`Base`] has the part that all protocols share.
///
/// First it is a TCP socket to connect by. Once [`poll_handshake`](Self::poll_handshake) has
/// returned success, it sends and receives, only encrypted.
///
/// It has a file, since a process makes the handshake, and a reference to its network namespace. So
/// its drop resets the connection, and cancels the handshake, but the socket may last until that
/// process closes the file.
pub struct TlsSocket {
    /// The handshake that is under way. Dropped before the socket.
    handshake: Option<PendingHandshake>,
    /// `None` before the handshake has succeeded.
    cipher: Option<Cipher>,
    /// The name of the peer, if it is known.
    peer: Option<PeerName>,
    /// The file of the socket has the name that the certificate of the peer must have.
    is_named: bool,
    read_limit: Arc<ReadLimit>,
    socket: Socket,
}

impl Deref for TlsSocket {
    type Target = Base;

    fn deref(&self) -> &Base {
        &self.socket
    }
}

impl TlsSocket {
    /// Takes a socket, connected or not, and removes its callbacks. The certificate of the peer
    /// must have `name`, unless this is the server; without one, the name that the process finds
    /// for the address of the peer. May sleep. `ENONET` if the namespace of the socket is being
    /// dismantled, `ENOMEM` without memory, `ENFILE` at the limit of open files; the socket is
    /// released then.
    pub fn new(socket: Socket, name: Option<&CStr>) -> Result<Self> {
        Ok(Self {
            handshake: None,
            cipher: None,
            peer: None,
            is_named: name.is_some(),
            read_limit: ReadLimit::none()?,
            socket: socket.share(name)?,
        })
    }

    /// Requests a handshake on a connection, which takes `timeout` milliseconds at most, and
    /// removes the callbacks. With `psk`, the sides authenticate each other by a pre-shared key: a
    /// client offers this one, and a server accepts this one, or each key of this keyring. Without,
    /// they do so by certificates. There is no other way then. May sleep.
    ///
    /// `owner` is told when the handshake has ended. It is not if this fails: `ESRCH` if no process
    /// takes requests in the namespace, `EOPNOTSUPP` if the kernel has failed to set handshakes up,
    /// `EAGAIN` if too many requests wait for that process, `EBUSY` if a handshake is under way or
    /// has been; `EKEYREVOKED` if the pre-shared key is revoked or has expired, `ENOKEY` for a
    /// client with a keyring; `ENOMEM`.
    pub fn begin_handshake(
        &mut self,
        role: TlsRole,
        psk: Option<Arc<Psk>>,
        timeout: u32,
        owner: Arc<dyn HandshakeDone>,
    ) -> Result {
        if self.handshake.is_some() || self.cipher.is_some() {
            return Err(EBUSY);
        }
        // That process polls the socket.
        self.clear_callbacks();
        // SAFETY: By the invariants of `Socket` the socket is valid; it has a file. `self.socket`
        // is dropped after the handshake.
        let handshake = unsafe {
            PendingHandshake::begin(&self.socket, role, self.is_named, psk, timeout, owner)?
        };

        self.handshake = Some(handshake);
        Ok(())
    }

    /// Returns the result of the handshake once it has ended; otherwise `None`. May sleep.
    ///
    /// After success, returns whether the peer is authentic: it has presented a certificate, which
    /// is valid, or has used a pre-shared key that [`TlsAuth::Psk`] accepts. A server lets others
    /// pass: the caller decides. After a failure, the connection is of no use: the error is that of
    /// the process, such as `EACCES` for a certificate or a key that it does not accept, or
    /// `EPROTO` if the connection has no TLS 1.3 all the same.
    pub fn poll_handshake(&mut self) -> Option<Result<bool>> {
        let ended = self.handshake.take_if(|handshake| handshake.has_ended())?;
        let result = ended.result();

        self.peer = ended.peer_name();
        // The callback is over after this.
        drop(ended);
        // SAFETY: `begin_handshake` has removed the callbacks, and `set_callbacks` has installed
        // none meanwhile. So these are those of TCP or TLS.
        unsafe { self.socket.note_callbacks() };
        Some(result.and_then(|is_authentic| {
            // SAFETY: By the invariants of `Socket` it is a valid TCP socket. The helper locks it.
            let cipher = unsafe { bindings::tls_cipher(self.sk().as_ptr()) };

            self.cipher = Cipher::new(cipher);
            self.cipher.map(|_| is_authentic).ok_or(EPROTO)
        }))
    }

    /// Returns the cipher; `None` before the handshake has succeeded.
    pub fn cipher(&self) -> Option<Cipher> {
        self.cipher
    }

    /// Returns the name of the peer after the handshake; `None` if the kernel does not know it. It
    /// may not know the subject of a certificate if the peer has sent further certificates with it,
    /// or if another handshake with the same address has ended at the same time: the process has
    /// one key for an address, that of the last certificate.
    pub fn peer_name(&self) -> Option<&PeerName> {
        self.peer.as_ref()
    }

    /// Installs `owner` for the callbacks of the connection. `EBUSY` if callbacks are installed or
    /// a handshake is under way. Otherwise as [`Socket::set_callbacks`].
    pub fn set_callbacks<T: AnyEvent>(&self, owner: Arc<T>) -> Result {
        if self.handshake.is_some() {
            return Err(EBUSY);
        }
        // SAFETY: By the invariants of `Socket` it is a valid TCP socket, which does not listen.
        // `original` are the callbacks that it has without a hook.
        unsafe { hook::install(self.sk(), owner, self.original(), self.read_limit.clone()) }
    }

    /// Sends the bytes of `buf`, as [`Socket::send`] does. `ENOTCONN` before the handshake has
    /// succeeded.
    pub fn send(&self, buf: &mut SendBuf) -> Result {
        self.cipher.ok_or(ENOTCONN)?;
        match self.socket.send(buf) {
            // A worker of TLS is sending, and the task has a signal: TLS waits for a lock then.
            Err(e) if e == EINTR => Err(ENOBUFS),
            other => other,
        }
    }

    /// Receives available octets of one type. May sleep. `to` must not be empty; with 2 octets, it
    /// has room for each alert. What does not fit of a record that is no data is discarded.
    ///
    /// `EAGAIN` if no octets are available, `ENOTCONN` before the handshake has succeeded;
    /// otherwise the error that ended the connection, such as `EBADMSG` for a record that is not
    /// authentic, or `EKEYEXPIRED` for very many without content.
    pub fn recv(&mut self, to: &mut [u8]) -> Result<TlsRecord> {
        self.cipher.ok_or(ENOTCONN)?;
        // SAFETY: By the invariants of `Socket` it is a valid TCP socket. The helper locks it.
        let limit = unsafe { bindings::tls_read_limit(self.sk().as_ptr(), to.len()) };
        let (record, len) = self.read_limit.during(limit, || self.recv_record(to))?;

        /// RFC 8446, section 6.
        const CLOSE_NOTIFY: u8 = 0;
        /// RFC 8446, section 4.
        const KEY_UPDATE: u8 = 24;

        Ok(match (record, to.get(..len).unwrap_or_default()) {
            (bindings::riw_tls_record_RIW_TLS_NONE, []) => TlsRecord::Truncation,
            (bindings::riw_tls_record_RIW_TLS_DATA, []) => TlsRecord::Empty,
            (bindings::riw_tls_record_RIW_TLS_DATA, _) => TlsRecord::Data(len),
            (bindings::riw_tls_record_RIW_TLS_ALERT, [_, CLOSE_NOTIFY]) => TlsRecord::CloseNotify,
            (bindings::riw_tls_record_RIW_TLS_ALERT, [_, description]) => {
                TlsRecord::Alert(*description)
            }
            (bindings::riw_tls_record_RIW_TLS_HANDSHAKE, [KEY_UPDATE, ..]) => TlsRecord::KeyUpdate,
            (bindings::riw_tls_record_RIW_TLS_HANDSHAKE, [_, ..]) => TlsRecord::Handshake,
            _ => return Err(EBADMSG),
        })
    }

    /// Receives octets of one type of record. Returns the type and the number of octets. May sleep.
    ///
    /// Of a record that is no data, only what fits in `to` is returned. The rest is discarded: the
    /// next read would take it for a record of its own.
    fn recv_record(&self, to: &mut [u8]) -> Result<(bindings::riw_tls_record, usize)> {
        let (record, len, mut whole) = self.recv_part(to)?;

        if record != bindings::riw_tls_record_RIW_TLS_DATA && len != 0 {
            while !whole {
                match self.recv_part(&mut [0; 64]) {
                    Ok((_, 1.., last)) => whole = last,
                    _ => break,
                }
            }
        }
        Ok((record, len))
    }

    /// Receives octets. Returns the type of their record, their number, and whether they are the
    /// last ones of the record. May sleep. Fails as [`recv`](Self::recv) does.
    fn recv_part(&self, to: &mut [u8]) -> Result<(bindings::riw_tls_record, usize, bool)> {
        let (mut record, mut whole) = (0, false);

        // SAFETY: By the invariants of `Socket` it is a valid TCP socket. `to` is borrowed
        // exclusively and so valid for writes of its length.
        let ret = unsafe {
            bindings::tls_recv(
                self.sock().as_ptr(),
                to.as_mut_ptr(),
                to.len(),
                &mut record,
                &mut whole,
            )
        };
        let len = usize::try_from(ret).map_err(|_| Error::from_errno(ret))?;

        Ok((record.into(), len, whole))
    }

    /// Ends this side's direction behind all that was sent, by an alert. A FIN may follow once
    /// [`has_unsent`](Self::has_unsent) is false. May sleep. `EAGAIN` if there is no room:
    /// [`AnyEvent::room`] reports room later. `ENOTCONN` before the handshake has succeeded.
    pub fn send_close_notify(&self) -> Result {
        self.cipher.ok_or(ENOTCONN)?;
        // SAFETY: By the invariants of `Socket` it is a valid TCP socket, with TLS.
        let ret = unsafe { bindings::tls_send_close_notify(self.sock().as_ptr()) };

        match to_result(ret.min(0)) {
            // As in `send`.
            Err(e) if e == EINTR => Err(EAGAIN),
            other => other,
        }
    }

    /// Whether records wait until TCP takes them. May sleep.
    pub fn has_unsent(&self) -> bool {
        // SAFETY: By the invariants of `Socket` it is a valid TCP socket. The helper locks it.
        unsafe { bindings::tls_has_unsent(self.sk().as_ptr()) }
    }

    /// Turns Nagle's algorithm off, as [`Socket::set_nodelay`] does.
    pub fn set_nodelay(&self) {
        self.socket.set_nodelay();
    }

    /// Turns keepalive on, as [`Socket::set_keepalive`] does.
    pub fn set_keepalive(&self, idle: u16, interval: u16, probes: u16) -> Result {
        self.socket.set_keepalive(idle, interval, probes)
    }

    /// Gives up the local port, as [`Socket::release_ephemeral_port`] does.
    pub fn release_ephemeral_port(&self) -> bool {
        self.socket.release_ephemeral_port()
    }

    /// Makes the receive buffer larger, as [`Socket::reserve`] does.
    pub fn reserve(&self, count: u32) {
        self.socket.reserve(count);
    }

    /// Returns the current state of the TCP connection.
    pub fn state(&self) -> TcpState {
        self.socket.state()
    }

    /// Returns the maximum payload of a TCP segment, as [`Socket::mss`] does.
    pub fn mss(&self) -> u32 {
        self.socket.mss()
    }

    /// Returns the free space in the send buffer, as [`Socket::room`] does; for records, which are
    /// a little longer than their content.
    pub fn room(&self) -> usize {
        self.socket.room()
    }

    /// Lets [`AnyEvent::room`] report the next acknowledgment, as [`Socket::notify_room`] does.
    pub fn notify_room(&self) {
        self.socket.notify_room();
    }

    /// Returns the bytes of TCP that the peer has not acknowledged, and those of them that are not
    /// sent yet. May sleep.
    pub fn unacknowledged(&self) -> (u32, u32) {
        self.socket
            .with_locked(|sk| (sk.unacknowledged(), sk.unsent()))
    }

    /// Returns a number that grows while bytes move, as [`LockedSock::moved`] does. May sleep.
    ///
    /// [`LockedSock::moved`]: crate::LockedSock::moved
    pub fn moved(&self) -> u64 {
        self.socket.with_locked(|sk| sk.moved())
    }
}
