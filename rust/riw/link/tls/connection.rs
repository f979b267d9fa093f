// SPDX-License-Identifier: GPL-2.0

//! One end of a connection with TLS.

use super::{
    super::{
        batch::Batch,
        budget::READ_TIME,
        deadline::Deadline,
        events::{EventSink, LinkEvents},
        linger::CloseProgress,
        security::TlsTerms,
        tcp::socket::{connect_from_any_port, keepalive, new_socket},
        transport::Carrier,
        types::{AddrPair, LinkDetails, LinkState, Site},
    },
    inlet::{InletMemory, RecordInlet},
    queue::Place,
};
use crate::bounds::RX_ROOM;
use core::net::SocketAddr;
use kernel::{
    prelude::*,
    str::CString,
    sync::Arc,
    time::{msecs_to_jiffies, Jiffies},
};
use kernel_ext::memcg::MemCgroup;
use net::{
    tls::{Cipher, TlsRecord, TlsRole, TlsSocket, RECORD_MAX},
    AnyEvent, Base, Socket, TcpState,
};

/// Reads without data during the startup, each of a ticket or of empty records, that a peer may
/// cause. OpenSSL sends two tickets.
const OTHER_RECORDS: u32 = 64;

/// Milliseconds after which the first connection of a [`HandshakeQueue`](super::HandshakeQueue)
/// requests its handshake again: the kernel keeps 3 to 50 requests of a namespace until a process
/// takes them, of all its users.
const RETRY_TIME: u32 = 10;

/// How far a connection is.
pub(super) enum TlsStage {
    /// TCP connects, or the handshake has yet to begin.
    Connecting,
    /// The handshake cannot begin yet: too many others wait.
    Queued(Place),
    /// The handshake could not begin early enough: the time of the startup is nearly up.
    Late,
    /// The handshake is under way.
    Handshake,
    /// The handshake has succeeded.
    Secured,
}

/// How far the end of this side's half is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CloseStage {
    /// It has not begun.
    Open,
    /// The alert is due, and then the FIN.
    Alert,
    /// The FIN is due, behind the records that TCP has not taken.
    Fin,
    /// The FIN is sent.
    Closed,
}

/// One end of a connection with TLS, or of one to be made.
pub(crate) struct TlsConnection {
    pub(super) socket: TlsSocket,
    pub(super) role: TlsRole,
    pub(super) stage: TlsStage,
    /// Used until the handshake has ended.
    pub(super) terms: TlsTerms,
    /// `None` while a link has it.
    inlet: Option<KBox<RecordInlet>>,
    /// The memory for the inlet, from the start of the stream until the first read.
    pub(super) memory: Option<InletMemory>,
    /// Reads without data that may still come during the startup.
    other_records: u32,
    close: CloseStage,
}

impl TlsConnection {
    /// Creates a connection that is bound to `local` and not connected yet, as
    /// [`Connection::new`](super::super::Connection::new) says.
    pub(in crate::link) fn new(
        site: &Site<'_>,
        local: &SocketAddr,
        remote: &SocketAddr,
        tos: Option<u8>,
        terms: TlsTerms,
    ) -> Result<KBox<Self>> {
        let socket = new_socket(site, local, remote, tos)?;
        let name = match (&terms.name, remote) {
            (Some(name), _) if terms.psk.is_none() => Some(name.clone()),
            // GnuTLS refuses it as a name. The process then looks up the name.
            (None, SocketAddr::V6(_)) if terms.psk.is_none() => None,
            // With a pre-shared key, it is for the log of the process only.
            (_, addr) => Some(Arc::new(
                CString::try_from_fmt(format_args!("{}", addr.ip()))?,
                GFP_KERNEL_ACCOUNT,
            )?),
        };

        Self::with(socket, TlsRole::Client, name.as_deref(), terms)
    }

    /// Takes a connection of TCP that a listener has accepted. May sleep. If that fails, the
    /// connection is reset.
    pub(in crate::link) fn accepted(socket: Socket, terms: TlsTerms) -> Result<KBox<Self>> {
        Self::with(socket, TlsRole::Server, None, terms)
    }

    /// `name` is that of a server.
    fn with(
        socket: Socket,
        role: TlsRole,
        name: Option<&CString>,
        terms: TlsTerms,
    ) -> Result<KBox<Self>> {
        let this = Self {
            socket: TlsSocket::new(socket, name.map(|name| &**name))?,
            role,
            stage: TlsStage::Connecting,
            terms,
            inlet: Some(KBox::new(RecordInlet::new(), GFP_KERNEL_ACCOUNT)?),
            memory: None,
            other_records: OTHER_RECORDS,
            close: CloseStage::Open,
        };

        Ok(KBox::new(this, GFP_KERNEL_ACCOUNT)?)
    }

    /// Sets the options of a connection, and reports its events to `owner`. May sleep.
    pub(in crate::link) fn prepare<T: LinkEvents>(&self, idle: u16, owner: Arc<T>) -> Result {
        self.socket.set_nodelay();
        if idle != 0 {
            let (idle, interval, probes) = keepalive(idle);

            self.socket.set_keepalive(idle, interval, probes)?;
        }
        self.socket.set_callbacks(EventSink::new(owner)?)
    }

    /// Reports the events of the connection to `owner`. May sleep. `ENOTCONN` before the handshake
    /// has succeeded: a process polls the socket meanwhile.
    pub(in crate::link) fn set_callbacks<T: AnyEvent>(&self, owner: Arc<T>) -> Result {
        match self.stage {
            TlsStage::Secured => self.socket.set_callbacks(owner),
            _ => Err(ENOTCONN),
        }
    }

    /// Returns the part that the sockets of all transports have.
    pub(in crate::link) fn base(&self) -> &Base {
        &self.socket
    }

    /// Takes the inlet.
    pub(in crate::link) fn take_inlet(&mut self) -> Option<KBox<RecordInlet>> {
        self.inlet.take()
    }

    /// Gives the inlet back.
    pub(in crate::link) fn return_inlet(&mut self, inlet: KBox<RecordInlet>) {
        self.inlet = Some(inlet);
    }

    /// Returns TCP's state.
    pub(super) fn tcp_state(&self) -> LinkState {
        LinkState::new(self.socket.state(), || self.socket.error())
    }

    /// Continues to end this side's half, as far as there is room. Fails as
    /// [`TlsSocket::send_close_notify`] does, but not for lack of room.
    fn continue_close(&mut self) -> Result {
        if self.close == CloseStage::Alert {
            match self.socket.send_close_notify() {
                Err(e) if e == EAGAIN => return Ok(()),
                other => other?,
            }
            self.close = CloseStage::Fin;
        }
        // TLS sends the rest when it is told of room, and this side when it looks next.
        if self.close == CloseStage::Fin && !self.socket.has_unsent() {
            self.socket.shutdown_write()?;
            self.close = CloseStage::Closed;
        }
        Ok(())
    }

    /// Discards what has arrived. Returns whether there may be more; `None` if the connection is of
    /// no use any more.
    fn drain(&mut self) -> Option<bool> {
        let mut bytes = [0; 512];
        let limit = Deadline::new(READ_TIME);

        while limit.left().is_some() {
            match self.socket.recv(&mut bytes) {
                Ok(TlsRecord::Data(_) | TlsRecord::Handshake | TlsRecord::Empty) => {}
                Ok(TlsRecord::CloseNotify | TlsRecord::Truncation) => return Some(false),
                Err(e) if e == EAGAIN => return Some(false),
                Ok(TlsRecord::Alert(_) | TlsRecord::KeyUpdate) | Err(_) => return None,
            }
        }
        Some(true)
    }
}

impl Carrier for TlsConnection {
    fn connect(&self, remote: &SocketAddr) -> Result {
        connect_from_any_port(
            || self.socket.connect(remote),
            || self.socket.release_ephemeral_port(),
        )
    }

    /// The connection is established once the handshake has succeeded. As long as it is under way,
    /// only its result counts, which has the reason of a failure.
    fn state(&self) -> LinkState {
        match (&self.stage, self.tcp_state()) {
            (TlsStage::Secured, state) => state,
            (TlsStage::Handshake, _) => LinkState::Connecting,
            (_, state @ LinkState::Closed(_)) => state,
            _ => LinkState::Connecting,
        }
    }

    /// TLS does not say. Without the handshake nothing can be read, and afterwards the caller
    /// looks.
    fn has_received(&self) -> bool {
        true
    }

    fn is_handshake_due(&self) -> bool {
        matches!(self.stage, TlsStage::Connecting) && self.tcp_state() != LinkState::Connecting
    }

    fn handshake_retry(&self) -> Option<Jiffies> {
        match &self.stage {
            TlsStage::Queued(place) => place.is_first().then(|| msecs_to_jiffies(RETRY_TIME)),
            _ => None,
        }
    }

    fn local_addr(&self) -> Result<SocketAddr> {
        self.socket.local_addr()
    }

    fn addrs(&self) -> Result<AddrPair> {
        AddrPair::of(&self.socket)
    }

    /// TLS needs room for one record only. But more lets the peer send on.
    fn reserve(&self) {
        self.socket.reserve(RX_ROOM);
    }

    /// Allocates the memory of the inlet. Not when the first octet comes: the peer would decide
    /// when there has to be memory.
    fn charge_to(&mut self, memcg: &MemCgroup) -> Result {
        self.memory = Some(InletMemory::new(memcg)?);
        Ok(())
    }

    #[inline]
    fn send(&mut self, batch: &mut Batch) -> Result {
        self.socket.send(&mut batch.buf)
    }

    /// An alert or a FIN is the end, and the reason does not matter before the stream runs.
    /// `ECONNRESET` after more reads of records without data than a peer may cause.
    fn receive(&mut self, buf: &mut [u8]) -> Result<usize> {
        match self.socket.recv(buf)? {
            TlsRecord::Data(count) => Ok(count),
            TlsRecord::Handshake | TlsRecord::Empty => {
                self.other_records = self.other_records.checked_sub(1).ok_or(ECONNRESET)?;
                Err(EINTR)
            }
            TlsRecord::CloseNotify
            | TlsRecord::Truncation
            | TlsRecord::Alert(_)
            | TlsRecord::KeyUpdate => Ok(0),
        }
    }

    /// Segments of TCP do not matter to the peer, which sees records.
    #[inline]
    fn room_and_emss(&self) -> (usize, u32) {
        (self.socket.room(), RECORD_MAX)
    }

    fn notify_room(&self) {
        self.socket.notify_room();
    }

    fn emss(&self) -> u32 {
        RECORD_MAX
    }

    fn moved(&self) -> u64 {
        self.socket.moved()
    }

    fn details(&self) -> Result<LinkDetails> {
        let (unacked, unsent) = self.socket.unacknowledged();

        Ok(LinkDetails {
            local: self.socket.local_addr()?,
            remote: self.socket.peer_addr()?,
            mss: self.socket.mss(),
            unacked,
            unsent,
            cipher: self.socket.cipher().map(Cipher::name),
            tls_peer: self.socket.peer_name().copied(),
        })
    }

    /// Sends the alert that ends this side's half, and the FIN. If there is no room,
    /// [`Self::progress`] does.
    fn close_write(&mut self) -> Result {
        self.close = CloseStage::Alert;
        self.continue_close()
    }

    fn progress(&mut self) -> CloseProgress {
        if self.continue_close().is_err() {
            return CloseProgress::Closed;
        }
        let Some(more) = self.drain() else {
            return CloseProgress::Closed;
        };

        match self.socket.state() {
            TcpState::Closed => CloseProgress::Closed,
            _ => CloseProgress::Open {
                unacknowledged: self.socket.unacknowledged().0,
                more,
            },
        }
    }
}
