// SPDX-License-Identifier: GPL-2.0

//! One end of an association.

use super::{
    super::{
        batch::Batch,
        events::{EventSink, LinkEvents},
        linger::CloseProgress,
        transport::{bind, Carrier},
        types::{AddrPair, LinkDetails, LinkState, Site},
    },
    inlet::{Fetched, Inlet},
};
use core::net::SocketAddr;
use iwarp::sctp::{
    wire::{ADAPTATION_DDP, PPID_CONTROL, PPID_SEGMENT},
    Encoded, Session, SessionAction, SessionEvent,
};
use kernel::{prelude::*, sync::Arc};
use net::{
    addr,
    sctp::{Phase, SctpSocket},
    AnyEvent, Base, Family, Pernet,
};

/// Bytes of a socket's send buffer, which also holds SCTP's overhead for each chunk. A chunk takes
/// more than 512 of them, so fewer than 4096 chunks are unacknowledged: Linux drops chunks that are
/// farther ahead, and RFC 5043 allows 32767.
const SEND_BUFFER: u32 = 2 * 1024 * 1024;
/// Bytes that a socket receives into. Half of it is the window.
const RECEIVE_BUFFER: u32 = 2 * SEND_BUFFER;
/// The same before the session is accepted. Until then, the peer has one chunk to send, of some 500
/// bytes, and nobody has vouched for it.
const LISTEN_BUFFER: u32 = 64 * 1024;

/// Heartbeats in the time that the setting `keepalive` gives a silent peer, until the first one is
/// lost: SCTP then sends them less often. It would take minutes to give the peer up, so riw does.
const HEARTBEATS: u32 = 5;

/// Loads the module of SCTP, as [`Pernet::load_sctp`] does.
pub(in crate::link) fn load(pernet: &Pernet) -> Result {
    pernet.load_sctp()
}

/// Makes a socket for DDP that will listen. Process context, may sleep. Fails as
/// [`SctpSocket::new`] does.
pub(super) fn new_listener(site: &Site<'_>, addr: &SocketAddr) -> Result<SctpSocket> {
    new_socket(site, addr, LISTEN_BUFFER)
}

fn new_socket(site: &Site<'_>, addr: &SocketAddr, receive: u32) -> Result<SctpSocket> {
    let (pernet, ns, family) = (site.pernet, site.ns, Family::from(addr));
    let socket = SctpSocket::new(pernet, ns, family, ADAPTATION_DDP, SEND_BUFFER, receive)?;

    // Until `Association::tune`: the peer chooses the addresses to which they go.
    socket.set_heartbeat(0)?;
    Ok(socket)
}

/// The support of a peer for DDP over SCTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PeerSupport {
    /// It has announced DDP (RFC 5043, section 7.1).
    Ddp,
    /// It has not.
    NotDdp,
    /// It has too many addresses.
    TooManyAddrs,
}

/// Binds a bound socket to further addresses. One that cannot be used is left out: there are
/// others. May sleep.
pub(super) fn bind_more(socket: &SctpSocket, more: &[SocketAddr]) {
    for addr in more {
        // For example, another socket listens there.
        let _ = socket.bind_more(addr);
    }
}

/// One end of an association, or of one to be made.
pub(crate) struct Association {
    pub(super) socket: SctpSocket,
    /// Milliseconds between heartbeats, for [`Self::tune`].
    heartbeat: u32,
    /// The DDP-SSN of the next chunk: the number of chunks that SCTP has taken.
    pub(super) next_ssn: u16,
    /// `None` while a link has it.
    inlet: Option<KBox<Inlet>>,
    /// The last chunk of this side, which could not be sent yet.
    last: Option<Encoded<'static>>,
    /// The association is being shut down: this side has sent its last chunk and expects no more
    /// from the peer, or the peer has begun to.
    shutting_down: bool,
}

impl Association {
    /// Creates an association that is bound to `local` and to those of `more` that can be used, and
    /// not connected yet, as [`Connection::new`](super::super::Connection::new) says.
    pub(in crate::link) fn connecting(
        site: &Site<'_>,
        local: &SocketAddr,
        more: &[SocketAddr],
        remote: &SocketAddr,
        tos: Option<u8>,
    ) -> Result<KBox<Self>> {
        let socket = new_socket(site, remote, RECEIVE_BUFFER)?;

        bind(&socket, site, local, tos)?;
        bind_more(&socket, more);
        Self::new(socket)
    }

    /// Wraps a socket. May sleep.
    pub(super) fn new(socket: SctpSocket) -> Result<KBox<Self>> {
        let this = Self {
            socket,
            heartbeat: 0,
            next_ssn: 0,
            inlet: Some(KBox::new(Inlet::new(), GFP_KERNEL_ACCOUNT)?),
            last: None,
            shutting_down: false,
        };

        Ok(KBox::new(this, GFP_KERNEL_ACCOUNT)?)
    }

    /// Notes the seconds of silence after which the peer is probed, and reports the events of an
    /// association to `owner`. May sleep.
    pub(in crate::link) fn prepare<T: LinkEvents>(&mut self, idle: u16, owner: Arc<T>) -> Result {
        self.heartbeat = u32::from(idle).saturating_mul(1000 / HEARTBEATS);
        self.socket.set_callbacks(EventSink::new(owner)?)
    }

    /// Reports the events of the socket to `owner`. May sleep.
    pub(in crate::link) fn set_callbacks<T: AnyEvent>(&self, owner: Arc<T>) -> Result {
        self.socket.set_callbacks(owner)
    }

    /// Returns the part that the sockets of all transports have.
    pub(in crate::link) fn base(&self) -> &Base {
        &self.socket
    }

    /// Takes the inlet.
    pub(in crate::link) fn take_inlet(&mut self) -> Option<KBox<Inlet>> {
        self.inlet.take()
    }

    /// Gives the inlet back.
    pub(in crate::link) fn return_inlet(&mut self, inlet: KBox<Inlet>) {
        self.inlet = Some(inlet);
    }

    /// Sets the options that depend on an established association, and begins to probe the peer's
    /// addresses. May sleep.
    pub(super) fn tune(&self) -> Result {
        self.socket.set_heartbeat(self.heartbeat)?;
        self.socket.tune()
    }

    /// Returns the support of the peer, which may have `addrs` addresses: SCTP keeps about 1 KiB
    /// for each, and takes thousands of them. May sleep. Without an association, fails with the
    /// error that ended it.
    pub(super) fn peer_support(&self, addrs: u32) -> Result<PeerSupport> {
        let look = self.socket.look();

        Ok(match look.phase {
            Phase::Gone => return Err(look.error.unwrap_or(ECONNRESET)),
            _ if look.addrs > addrs => PeerSupport::TooManyAddrs,
            _ if look.adaptation != ADAPTATION_DDP => PeerSupport::NotDdp,
            _ => PeerSupport::Ddp,
        })
    }

    /// Lets the peer send as much as an established session may. May sleep.
    pub(super) fn open_window(&self) {
        self.socket.widen(RECEIVE_BUFFER);
    }

    /// Sends a session control chunk. Fails as [`SctpSocket::send`].
    pub(super) fn send_control(&mut self, chunk: &Encoded<'_>) -> Result {
        self.socket.send(chunk.parts(), PPID_CONTROL)?;
        self.next_ssn = self.next_ssn.wrapping_add(1);
        Ok(())
    }

    /// Notes whether the peer shuts the association down. It takes no chunk then, also not the last
    /// one; SCTP still delivers what has been sent.
    fn note_shutdown(&mut self) {
        if self.socket.look().phase == Phase::ShuttingDown {
            self.last = None;
            self.shutting_down = true;
        }
    }

    /// Whether the last chunk could overtake the Accept of this side, which RFC 5043, section 6.6,
    /// forbids: nothing says that the initiator has the Accept. If so, a callback follows the next
    /// acknowledgment.
    fn may_overtake(&self) -> bool {
        let unanswered = |inlet: &KBox<Inlet>| inlet.is_accept_unanswered();

        if !self.inlet.as_ref().is_some_and(unanswered) {
            return false;
        }
        // Before the look, so that no acknowledgment comes in between.
        self.socket.notify_room();
        self.socket.look().unacknowledged != 0
    }

    /// Sends the last chunk of this side, if it is due and there is room. Fails as
    /// [`SctpSocket::send`], but not for lack of room.
    fn send_last(&mut self) -> Result {
        if self.last.is_none() || self.may_overtake() {
            return Ok(());
        }
        if let Some(chunk) = self.last {
            match self.send_control(&chunk) {
                Err(e) if e == EAGAIN => {}
                Err(e) => return Err(e),
                Ok(()) => self.last = None,
            }
        }
        Ok(())
    }

    /// Discards the messages that have arrived. May sleep.
    fn drain(&mut self) -> Drained {
        let Self { socket, inlet, .. } = self;
        let Some(inlet) = inlet else {
            return Drained::Ended;
        };

        let mut budget = DRAIN_BATCH;

        for _ in 0..DRAIN_BATCH {
            if inlet.session == Session::Ended {
                return Drained::Ended;
            }
            match inlet.fetch(&mut budget, |f| f(socket), |_| {}) {
                Fetched::Chunk => {
                    inlet.handle(|_, _| (true, ()));
                }
                Fetched::Nothing => return Drained::All,
                Fetched::Spent => return Drained::More,
                Fetched::ShutDown | Fetched::Closed(_) => return Drained::Ended,
            }
        }
        Drained::More
    }
}

impl Carrier for Association {
    fn connect(&self, remote: &SocketAddr) -> Result {
        self.socket.connect(remote)
    }

    /// The state of the session is not considered, unless it is broken and no link has the inlet.
    fn state(&self) -> LinkState {
        let look = self.socket.look();

        if self.inlet.as_ref().is_some_and(|inlet| inlet.is_broken()) {
            return LinkState::Closed(ECONNRESET);
        }
        match look.phase {
            Phase::Connecting => LinkState::Connecting,
            Phase::Established => LinkState::Established,
            Phase::ShuttingDown => LinkState::ShuttingDown,
            Phase::Gone => LinkState::Closed(look.error.unwrap_or(ECONNRESET)),
        }
    }

    /// The event that the association is up does not count.
    fn has_received(&self) -> bool {
        self.socket.look().has_received
    }

    fn addrs(&self) -> Result<AddrPair> {
        let (local, remote) = self.socket.addrs()?;

        Ok(AddrPair {
            local: addr::unmapped(local),
            remote: addr::unmapped(remote),
        })
    }

    fn send(&mut self, batch: &mut Batch) -> Result {
        while let Some(len) = batch.first() {
            self.socket.send_from(&mut batch.buf, len, PPID_SEGMENT)?;
            batch.remove_first();
            self.next_ssn = self.next_ssn.wrapping_add(1);
        }
        Ok(())
    }

    fn room_and_emss(&self) -> (usize, u32) {
        self.socket.room()
    }

    fn emss(&self) -> u32 {
        self.socket.look().chunk
    }

    fn moved(&self) -> u64 {
        self.socket.look().moved
    }

    /// SCTP watches the peer itself while it waits for an acknowledgment.
    fn silence(&self) -> Option<i64> {
        let look = self.socket.look();

        (look.unacknowledged == 0).then_some(look.silence.into())
    }

    fn details(&self) -> Result<LinkDetails> {
        let (local, remote) = self.socket.addrs()?;
        let look = self.socket.look();

        Ok(LinkDetails {
            local,
            remote,
            mss: look.chunk,
            unacked: look.unacknowledged,
            unsent: look.unsent,
            cipher: None,
            tls_peer: None,
        })
    }

    /// Ends this side's direction of the session: all has been sent. May sleep. If there is no room
    /// for the last chunk, or if it is not due, [`Self::progress`] sends it. Fails as
    /// [`SctpSocket::send`]; `ENOTCONN` if a link has the inlet, or if the peer has not answered
    /// the Initiate: it would accept a session that nobody may end before it is open.
    fn close_write(&mut self) -> Result {
        self.note_shutdown();
        let ssn = self.next_ssn;
        let inlet = self.inlet.as_mut().ok_or(ENOTCONN)?;

        if let Session::Requested { .. } = inlet.session {
            return Err(ENOTCONN);
        }
        if self.shutting_down {
            return Ok(());
        }
        // Otherwise it was over before it began.
        if let Ok(SessionAction::Send(chunk)) = inlet.session.handle(SessionEvent::Close { ssn }) {
            self.last = Some(chunk);
        }
        self.send_last()
    }

    /// Discards the peer's messages, until it has ended its direction of the session, too; then
    /// shuts the association down, which nobody else uses. May sleep.
    fn progress(&mut self) -> CloseProgress {
        let mut more = false;

        self.note_shutdown();
        if self.send_last().is_err() {
            return CloseProgress::Closed;
        }
        if !self.shutting_down {
            let drained = self.drain();

            more = drained == Drained::More;
            if drained == Drained::Ended && self.last.is_none() {
                self.shutting_down = true;
                // Without effect if the peer has done so.
                let _ = self.socket.shutdown_write();
            }
        }
        if self.shutting_down {
            // The chunks that it holds have no use any more.
            self.inlet = None;
        }
        let look = self.socket.look();

        match look.phase {
            Phase::Gone => CloseProgress::Closed,
            _ => CloseProgress::Open {
                unacknowledged: look.unacknowledged,
                more,
            },
        }
    }
}

/// Messages that are discarded in a row before other work items run.
const DRAIN_BATCH: usize = 256;

/// The result of discarding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Drained {
    /// Nothing is left, and more may come.
    All,
    /// There may be more.
    More,
    /// Nothing more counts.
    Ended,
}
