// SPDX-License-Identifier: GPL-2.0

//! The transports, and one end of a connection of any of them.

use super::{
    batch::Batch,
    crc,
    events::LinkEvents,
    linger::CloseProgress,
    sctp::{self, Association, Inlet},
    security::{Security, TlsMode, TlsTerms},
    segments::LinkRx,
    tcp::{MpaRx, TcpConnection},
    tls::{RecordInlet, TlsConnection},
    types::{AddrPair, LinkDetails, LinkState, Site},
};
use core::{
    net::SocketAddr,
    ops::{Deref, DerefMut},
};
use iwarp::{mpa::FpduFramer, sctp::ChunkFramer, startup::Parameters, Framing, Gather, TxConfig};
use kernel::{prelude::*, sync::Arc, time::Jiffies};
use kernel_ext::memcg::MemCgroup;
use net::{AnyEvent, Base, Callbacks, Netns, Pernet};

/// A transport protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Transport {
    /// TCP, with MPA above it.
    Tcp,
    /// TCP with TLS, and MPA above it.
    Tls,
    /// SCTP, with DDP's adaptation to it.
    Sctp,
}

impl Transport {
    /// Returns the name.
    pub(crate) fn name(self) -> &'static CStr {
        match self {
            Self::Tcp => c"tcp",
            Self::Tls => c"tls",
            Self::Sctp => c"sctp",
        }
    }

    /// Whether riw is built with the transport.
    pub(crate) fn is_built(self) -> bool {
        match self {
            Self::Tcp => true,
            Self::Tls => cfg!(CONFIG_RDMA_RIW_TLS),
            Self::Sctp => cfg!(CONFIG_RDMA_RIW_SCTP),
        }
    }

    /// Returns the name of the protocol, for the log.
    pub(crate) fn protocol(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Tls => "TLS",
            Self::Sctp => "SCTP",
        }
    }

    /// Whether the transport needs a module: see [`Self::load`].
    pub(crate) fn has_module(self) -> bool {
        self == Self::Sctp
    }

    /// Loads the module of the transport, if it has one. Process context; waits for `modprobe`.
    /// Fails as `Pernet::load_sctp` does.
    pub(crate) fn load(self, pernet: &Pernet) -> Result {
        match self {
            Self::Tcp | Self::Tls => Ok(()),
            Self::Sctp => sctp::load(pernet),
        }
    }

    /// Whether an error says that riw or the kernel lacks the transport. They cannot lack TCP.
    pub(crate) fn is_missing(error: Error) -> bool {
        error == EPROTONOSUPPORT || error == ESOCKTNOSUPPORT
    }

    /// Whether the startup negotiates CRC, markers and a revision of MPA.
    pub(crate) fn has_mpa(self) -> bool {
        self != Self::Sctp
    }

    /// Returns the transport of a listener whose connections may have this one.
    pub(crate) fn listener(self) -> Self {
        match self {
            // A connection gets TLS once its device is known.
            Self::Tcp | Self::Tls => Self::Tcp,
            Self::Sctp => Self::Sctp,
        }
    }

    /// Whether a responder may send before it has received something: over TCP not (RFC 5044,
    /// section 7.1.2); over SCTP unless the initiator has requested to send first (RFC 6581,
    /// section 7).
    pub(crate) fn lets_responder_begin(self, parameters: &Parameters) -> bool {
        self == Self::Sctp && parameters.rtr.is_none()
    }

    /// Whether the transport gives up a peer that does not answer its probes in the time of the
    /// setting `keepalive`.
    pub(crate) fn gives_up_peer(self) -> bool {
        self != Self::Sctp
    }

    /// Whether a connection can have several addresses at each end.
    pub(crate) fn is_multihomed(self) -> bool {
        self == Self::Sctp
    }

    /// Whether a wildcard listener in `ns` cannot be bound to a VRF. SCTP has no ports of a VRF: it
    /// refuses a port in a VRF that a listener outside has, and the other way round. One of TCP may
    /// get the connections of all VRFs.
    pub(crate) fn listens_outside_vrfs(self, ns: &Netns) -> bool {
        self == Self::Sctp || ns.tcp_listens_in_vrfs()
    }
}

/// One end of a connection of some transport. All functions need process context and may sleep.
pub(crate) trait Carrier {
    /// Starts to connect; does not wait for the peer. Fails as `connect()` does.
    fn connect(&self, remote: &SocketAddr) -> Result;

    /// Returns the current state.
    fn state(&self) -> LinkState;

    /// Whether something has been received that has not been read.
    fn has_received(&self) -> bool;

    /// Whether a handshake can begin, without which the connection is not established.
    fn is_handshake_due(&self) -> bool {
        false
    }

    /// Returns the time after which the handshake can be tried again, if no event will follow.
    fn handshake_retry(&self) -> Option<Jiffies> {
        None
    }

    /// Returns the local address.
    fn local_addr(&self) -> Result<SocketAddr> {
        Ok(self.addrs()?.local)
    }

    /// Returns the addresses of both sides. An IPv4-mapped address is returned as IPv4. `ENOTCONN`
    /// if there is no peer.
    fn addrs(&self) -> Result<AddrPair>;

    /// Makes the receive buffer large enough for frames of any size, within the limits of the
    /// network namespace.
    fn reserve(&self) {}

    /// Allocates the memory that the connection needs to receive, charged to `memcg`. `ENOMEM`.
    fn charge_to(&mut self, _memcg: &MemCgroup) -> Result {
        Ok(())
    }

    /// Sends the frames of `batch`, as many as the connection takes now, and removes them from
    /// `batch`.
    ///
    /// `EAGAIN` if there is no room for the rest: [`LinkEvents::room`] reports room later.
    /// `ENOBUFS` if there is no memory, and nothing is in flight: try again later. No event follows
    /// any other error. Such an error need not end the connection, for example if a security module
    /// refuses.
    fn send(&mut self, batch: &mut Batch) -> Result;

    /// Receives available octets of MPA's startup frames, as many as fit into `buf`. Returns the
    /// number of octets; 0 after the peer's FIN. `EAGAIN` if no octets are available, `EINTR` if
    /// only records without octets were; otherwise the error that ended the connection.
    fn receive(&mut self, _buf: &mut [u8]) -> Result<usize> {
        Err(ENOTCONN)
    }

    /// Returns the free space in the send buffer in bytes, and [`Self::emss`]. The space is 0 if
    /// too little is free: [`LinkEvents::room`] reports room then.
    fn room_and_emss(&self) -> (usize, u32);

    /// Requests a larger send buffer, if it can have another size: [`LinkEvents::room`] reports the
    /// next acknowledgment then.
    fn notify_room(&self) {}

    /// Returns the octets that a frame may have (EMSS, RFC 5044, section 2): those of a full
    /// segment of TCP, of a record of TLS, or of a chunk in a full packet of SCTP.
    fn emss(&self) -> u32;

    /// Returns a number that changes when the peer has acknowledged bytes or sent some.
    fn moved(&self) -> u64;

    /// Returns the milliseconds since the peer was heard of; `None` while the transport watches the
    /// peer itself.
    fn silence(&self) -> Option<i64> {
        None
    }

    /// Returns the details. Allocates nothing: a process that reads details does so under the
    /// lock of a connection that reclaim may wait for.
    fn details(&self) -> Result<LinkDetails>;

    /// Ends this side's half, behind all that was sent.
    fn close_write(&mut self) -> Result;

    /// Continues to end a connection whose half of this side is closed: discards what arrives.
    fn progress(&mut self) -> CloseProgress;
}

/// One end of a connection, or of one to be made.
///
/// Its drop closes it; nothing is retransmitted after that ([`net::Base`]). It **holds no reference
/// to its network namespace**, which waits for the drop; with TLS it has one, and is dropped at the
/// same time nevertheless.
///
/// All functions need process context and may sleep.
pub(crate) enum Connection {
    Tcp(TcpConnection),
    Tls(KBox<TlsConnection>),
    Sctp(KBox<Association>),
}

/// Receives for a connection that does so in process context.
pub(super) enum AnyInlet {
    Tls(KBox<RecordInlet>),
    Sctp(KBox<Inlet>),
}

impl Deref for Connection {
    type Target = dyn Carrier;

    #[inline]
    fn deref(&self) -> &Self::Target {
        match self {
            Self::Tcp(connection) => connection,
            Self::Tls(connection) => &**connection,
            Self::Sctp(association) => &**association,
        }
    }
}

impl DerefMut for Connection {
    #[inline]
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            Self::Tcp(connection) => connection,
            Self::Tls(connection) => &mut **connection,
            Self::Sctp(association) => &mut **association,
        }
    }
}

impl Connection {
    /// Creates a connection that is bound to `local` and not connected yet; if it can have several
    /// addresses, also to those of `more` that can be used. `remote` gives the address family;
    /// `tos` is the type of service, if set. `transport` says whether there is TLS, `security` how.
    /// Fails as `socket()` and `bind()` do.
    pub(crate) fn new(
        transport: Transport,
        site: &Site<'_>,
        local: &SocketAddr,
        more: &[SocketAddr],
        remote: &SocketAddr,
        tos: Option<u8>,
        security: Security,
    ) -> Result<Self> {
        Ok(match transport {
            Transport::Tcp => Self::Tcp(TcpConnection::new(site, local, remote, tos)?),
            Transport::Tls => Self::Tls(TlsConnection::new(
                site,
                local,
                remote,
                tos,
                security.terms,
            )?),
            Transport::Sctp => Self::Sctp(Association::connecting(site, local, more, remote, tos)?),
        })
    }

    /// Secures a connection that a listener has accepted, as far as `security` says before the peer
    /// has chosen. Only TCP can have TLS; otherwise `EPROTONOSUPPORT`. If it fails, the connection
    /// is reset.
    pub(crate) fn secured(self, security: &Security) -> Result<Self> {
        match security.tls {
            TlsMode::Required => self.require_tls(security.terms.clone()),
            TlsMode::Off | TlsMode::Accept => Ok(self),
        }
    }

    /// Requires TLS of a connection that a listener has accepted, on these terms. Fails as
    /// [`Self::secured`] does.
    pub(super) fn require_tls(self, terms: TlsTerms) -> Result<Self> {
        match self {
            Self::Tcp(connection) => TlsConnection::accepted(connection.0, terms).map(Self::Tls),
            Self::Tls(_) => Ok(self),
            Self::Sctp(_) => Err(EPROTONOSUPPORT),
        }
    }

    /// Returns the part that the sockets of all transports have.
    pub(super) fn base(&self) -> &Base {
        match self {
            Self::Tcp(connection) => &connection.0,
            Self::Tls(connection) => connection.base(),
            Self::Sctp(association) => association.base(),
        }
    }

    /// Sets the options of a connection, and reports its events to `owner`.
    pub(super) fn prepare<T: LinkEvents>(&mut self, idle: u16, owner: Arc<T>) -> Result {
        match self {
            Self::Tcp(connection) => connection.prepare(idle, owner),
            Self::Tls(connection) => connection.prepare(idle, owner),
            Self::Sctp(association) => association.prepare(idle, owner),
        }
    }

    /// Reports the events of the socket to `owner`.
    pub(super) fn set_callbacks<T: Callbacks + AnyEvent>(&self, owner: Arc<T>) -> Result {
        match self {
            Self::Tcp(connection) => connection.0.set_callbacks(owner),
            Self::Tls(connection) => connection.set_callbacks(owner),
            Self::Sctp(association) => association.set_callbacks(owner),
        }
    }

    /// Lets `owner` receive what has arrived, if there is no inlet for it.
    pub(super) fn poll<T: LinkEvents>(&self, owner: &Arc<T>) {
        match self {
            Self::Tcp(connection) => connection.poll(owner),
            Self::Tls(_) | Self::Sctp(_) => {}
        }
    }

    /// Takes the inlet, if the connection has one.
    pub(super) fn take_inlet(&mut self) -> Option<AnyInlet> {
        match self {
            Self::Tcp(_) => None,
            Self::Tls(connection) => connection.take_inlet().map(AnyInlet::Tls),
            Self::Sctp(association) => association.take_inlet().map(AnyInlet::Sctp),
        }
    }

    /// Gives the connection back the inlet that was taken from it.
    pub(super) fn return_inlet(&mut self, inlet: Option<AnyInlet>) {
        match (self, inlet) {
            (Self::Tls(tls), Some(AnyInlet::Tls(inlet))) => tls.return_inlet(inlet),
            (Self::Sctp(sctp), Some(AnyInlet::Sctp(inlet))) => sctp.return_inlet(inlet),
            // It has none, or not this one.
            (Self::Tcp(_) | Self::Tls(_) | Self::Sctp(_), _) => {}
        }
    }

    /// Lets the connection send and receive with memory from the reserves, as reclaim may wait for
    /// it. A timer of the transport may not use them: that of SCTP does not.
    pub(crate) fn use_reserves(&self) {
        self.base().use_reserves();
    }

    /// Lets the connection allocate no memory that would wait for I/O, as it is a kernel user's.
    pub(crate) fn avoid_io(&self) {
        self.base().avoid_io();
    }

    /// Returns the transport.
    pub(crate) fn transport(&self) -> Transport {
        match self {
            Self::Tcp(_) => Transport::Tcp,
            Self::Tls(_) => Transport::Tls,
            Self::Sctp(_) => Transport::Sctp,
        }
    }

    /// Resets the connection and discards unsent data.
    pub(crate) fn abort(self) {
        match self {
            Self::Tcp(connection) => connection.0.abort(),
            // So does the drop.
            Self::Tls(_) | Self::Sctp(_) => {}
        }
    }

    /// Resets the connection, and returns it as a new one that is bound to the same address. Only
    /// TCP can do that; otherwise `EOPNOTSUPP`.
    pub(crate) fn reset(self) -> Result<Self> {
        match self {
            Self::Tcp(connection) => connection.reset().map(Self::Tcp),
            Self::Tls(_) | Self::Sctp(_) => Err(EOPNOTSUPP),
        }
    }
}

/// Binds a socket to `local`.
pub(super) fn bind(socket: &Base, site: &Site<'_>, local: &SocketAddr, tos: Option<u8>) -> Result {
    site.bind_to_vrf(socket)?;
    if let Some(tos) = tos {
        socket.set_tos(tos);
    }
    match socket.bind(local) {
        // rdma_cm chose the port from a port space of its own, and does not know that the transport
        // uses it. A port that is not ephemeral was chosen by the consumer. One that is may have
        // been, too: rdma_cm does not say.
        Err(e) if e == EADDRINUSE && site.ns.is_ephemeral(local.port()) => {
            let mut local = *local;

            local.set_port(0);
            socket.bind(&local)
        }
        other => other,
    }
}

impl LinkRx {
    /// The state at the start of a stream. Any context.
    pub(crate) fn new(transport: Transport, parameters: &Parameters) -> Self {
        match transport {
            Transport::Tcp | Transport::Tls => Self::Mpa(MpaRx::new(parameters)),
            Transport::Sctp => Self::Sctp,
        }
    }
}

/// Frames the segments of a stream.
pub(crate) enum Framer {
    /// The longest FPDU fits in [`Carrier::emss`], or has the length that is set.
    Mpa {
        framer: FpduFramer<crc::Kernel>,
        fpdu_max: Option<u32>,
    },
    Sctp(ChunkFramer),
}

impl Framer {
    /// A framer at the start of a stream. The length of the longest FPDU, if it is set, takes
    /// precedence over [`Carrier::emss`].
    pub(crate) fn new(transport: Transport, config: TxConfig, fpdu_max: Option<u32>) -> Self {
        match transport {
            Transport::Tcp | Transport::Tls => Self::Mpa {
                framer: FpduFramer::new(TxConfig {
                    emss: fpdu_max.unwrap_or(config.emss),
                    ..config
                }),
                fpdu_max,
            },
            Transport::Sctp => Self::Sctp(ChunkFramer::new(config.emss)),
        }
    }

    /// Sets the octets that a frame may have: see [`Carrier::emss`].
    #[inline]
    pub(crate) fn set_emss(&mut self, emss: u32) {
        match self {
            Self::Mpa { framer, fpdu_max } => framer.set_emss(fpdu_max.unwrap_or(emss)),
            Self::Sctp(framer) => framer.set_chunk(emss),
        }
    }

    /// Whether the lower layer sends each frame as a message.
    pub(crate) fn has_messages(&self) -> bool {
        match self {
            Self::Mpa { .. } => false,
            Self::Sctp(_) => true,
        }
    }
}

impl Framing for Framer {
    const PREFIX_LEN: usize = {
        assert!(<FpduFramer<crc::Kernel>>::PREFIX_LEN == ChunkFramer::PREFIX_LEN);
        ChunkFramer::PREFIX_LEN
    };

    #[inline]
    fn mulpdu(&self) -> u16 {
        match self {
            Self::Mpa { framer, .. } => framer.mulpdu(),
            Self::Sctp(framer) => framer.mulpdu(),
        }
    }

    #[inline]
    fn emit<G: Gather>(
        &mut self,
        head: &mut [u8],
        offset: u32,
        len: u32,
        out: &mut G,
    ) -> Result<u32, G::Error> {
        match self {
            Self::Mpa { framer, .. } => framer.emit(head, offset, len, out),
            Self::Sctp(framer) => framer.emit(head, offset, len, out),
        }
    }
}
