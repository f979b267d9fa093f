// SPDX-License-Identifier: GPL-2.0

//! The startup of a stream: MPA's frames over TCP, session control over SCTP.
//!
//! - The initiator has a [`Startup`], which sends its request and receives the [`Answer`].
//! - The responder has an [`AwaitedRequest`], and once the request has arrived a [`Responder`],
//!   which answers it.
//!
//! Functions need process context and may sleep, but never wait for the peer.

use super::{
    sctp::{self, AwaitedInitiate, SctpResponder, SctpStartup},
    tcp::{self, MpaStartup},
    tls::TlsFault,
    Batch, Connection, Deadline, Framer, Link, LinkEvents, LinkState, Reorder, Security, TlsMode,
    TlsTerms, Transport,
};
use iwarp::{
    startup::{self, Kind, OutFrame, Parameters, Policy, Reader, StartupError},
    Crc, Gather, Message, Quote, Segmenter, Terminate, TxConfig,
};
use kernel::{prelude::*, sync::Arc, time::Jiffies};
use kernel_ext::memcg::MemCgroup;
use net::SendBuf;

/// The offer of this side's consumer.
#[derive(Clone, Copy)]
pub(crate) struct Terms<'a> {
    /// Read Requests of the peer that this side accepts at a time.
    pub(crate) ird: u32,
    /// Read Requests of this side that are outstanding at a time.
    pub(crate) ord: u32,
    pub(crate) private_data: &'a [u8],
}

/// IRD and ORD of the peer's frame, as the peer means them, if it negotiates them.
pub(crate) type PeerDepths = (Option<u32>, Option<u32>);

/// A fault of the peer, or a request that this side refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StartupFault {
    /// Its startup frame breaks a rule, or requests something that this side refuses.
    Frame(StartupError),
    /// Its session control breaks a rule.
    Session(iwarp::Error),
    /// It does not announce DDP.
    Adaptation,
    /// It has too many addresses.
    TooManyAddrs,
    /// There is no TLS: this is a fault of either side, or of its certificates.
    Tls(TlsFault),
}

impl StartupFault {
    /// Returns the fault in words.
    pub(crate) fn rule(self) -> &'static str {
        match self {
            Self::Frame(error) => error.rule(),
            Self::Session(error) => error.rule(),
            Self::Adaptation => "the peer does not announce DDP over SCTP",
            Self::TooManyAddrs => "the peer has too many addresses",
            Self::Tls(fault) => fault.rule(),
        }
    }
}

/// Why a startup fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StartupFailure {
    Fault(StartupFault),
    /// Sending or receiving failed, or the peer closed the connection.
    Link(Error),
    /// This side failed.
    Local(Error),
}

impl From<StartupFault> for StartupFailure {
    fn from(fault: StartupFault) -> Self {
        Self::Fault(fault)
    }
}

impl From<TlsFault> for StartupFailure {
    fn from(fault: TlsFault) -> Self {
        Self::Fault(StartupFault::Tls(fault))
    }
}

/// The answer of the peer.
pub(crate) enum Answer {
    /// It accepts.
    Established(Parameters),
    /// Its consumer rejects.
    Rejected,
    /// It accepts, but this side cannot follow, and has to send it a Terminate.
    Withdraw {
        error: iwarp::Error,
        crc: bool,
        markers: bool,
        reason: StartupFailure,
    },
    /// Nothing that means a connection.
    Failed(StartupFailure),
}

/// The startup of a connection that is being opened.
pub(crate) enum Startup {
    Mpa(MpaStartup),
    Sctp(SctpStartup),
}

impl Startup {
    /// Prepares a startup. `reorder` is the treatment of segments that arrive out of order.
    /// `EINVAL` if the private data does not fit.
    pub(crate) fn new(
        transport: Transport,
        policy: &Policy,
        terms: Terms<'_>,
        reorder: Reorder,
    ) -> Result<Self> {
        Ok(match transport {
            Transport::Tcp | Transport::Tls => Self::Mpa(MpaStartup::new(policy, terms)?),
            Transport::Sctp => Self::Sctp(SctpStartup::new(policy, terms, reorder)?),
        })
    }

    /// Sends the request of this side, on a connection that is established.
    pub(crate) fn send_request(&self, link: &Link) -> Result<(), StartupFailure> {
        match self {
            Self::Mpa(mpa) => mpa.send_request(link),
            Self::Sctp(sctp) => sctp.send_request(link),
        }
    }

    /// Receives the answer, or a part of it, on the link of `owner`. Returns `None` if it is not
    /// complete, or why it never will be.
    pub(crate) fn receive<T: LinkEvents>(
        &mut self,
        link: &Link,
        owner: &Arc<T>,
    ) -> Result<Option<Answer>, StartupFailure> {
        match self {
            Self::Mpa(mpa) => mpa.receive(link, owner),
            Self::Sctp(sctp) => sctp.receive(link, owner),
        }
    }

    /// Chooses the next attempt after a failure, on a new connection. Returns false if nothing is
    /// left.
    pub(crate) fn next_attempt(&mut self, failure: StartupFailure) -> bool {
        match self {
            Self::Mpa(mpa) => mpa.next_attempt(failure),
            Self::Sctp(_) => false,
        }
    }

    /// Returns the private data of the answer.
    pub(crate) fn private_data(&self) -> &[u8] {
        match self {
            Self::Mpa(mpa) => mpa.private_data(),
            Self::Sctp(sctp) => sctp.private_data(),
        }
    }

    /// Returns the depths of the answer.
    pub(crate) fn peer_depths(&self) -> PeerDepths {
        match self {
            Self::Mpa(mpa) => mpa.peer_depths(),
            Self::Sctp(sctp) => sctp.peer_depths(),
        }
    }
}

/// Waits for the request of the peer.
pub(crate) enum AwaitedRequest {
    Mpa {
        reader: KBox<Reader>,
        /// The peer may begin with a handshake of TLS, on these terms, or with its Request in the
        /// open.
        choice: Option<TlsTerms>,
    },
    Sctp(AwaitedInitiate),
}

/// The outcome of a request that is complete.
pub(crate) enum ReceivedRequest {
    /// It is valid.
    Request(Responder),
    /// It is not. `answered`: the peer has been sent an answer.
    Refused {
        answered: bool,
        reason: StartupFault,
    },
}

impl AwaitedRequest {
    /// Waits on a link that has its connection, which is [secured](Connection::secured).
    pub(crate) fn new(
        link: &Link,
        policy: &Policy,
        security: Security,
    ) -> Result<Self, StartupFailure> {
        match link
            .with(|connection| Ok(connection.transport()))
            .map_err(StartupFailure::Local)?
        {
            Transport::Tcp | Transport::Tls => Ok(Self::Mpa {
                reader: tcp::new_reader(Kind::Request).map_err(StartupFailure::Local)?,
                choice: (security.tls == TlsMode::Accept).then_some(security.terms),
            }),
            Transport::Sctp => AwaitedInitiate::new(link, policy).map(Self::Sctp),
        }
    }

    /// Receives the request, or a part of it, on the link of `owner`, after a handshake if the
    /// connection needs one. `deadline` is that of the startup. Returns `None` if it is not
    /// complete, or why it never will be.
    pub(crate) fn receive<T: LinkEvents>(
        &mut self,
        link: &Link,
        owner: &Arc<T>,
        policy: &Policy,
        deadline: &Deadline,
    ) -> Result<Option<ReceivedRequest>, StartupFailure> {
        match self {
            Self::Mpa { reader, choice } => {
                if choice.is_some() {
                    let Some(has_tls) = link.begins_with_tls() else {
                        return Ok(None);
                    };

                    if let Some(terms) = choice.take().filter(|_| has_tls) {
                        link.require_tls(terms, owner)
                            .map_err(StartupFailure::Local)?;
                    }
                }
                match link.secure(owner, deadline)? {
                    true => tcp::receive_request(link, owner, reader, policy),
                    false => Ok(None),
                }
            }
            Self::Sctp(initiate) => initiate.receive(link, owner),
        }
    }
}

impl ReceivedRequest {
    /// Takes a valid request, and copies its private data.
    pub(super) fn valid(
        request: ValidRequest,
        private_data: &[u8],
    ) -> Result<Self, StartupFailure> {
        let private_data = copy_of(private_data).map_err(StartupFailure::Local)?;

        Ok(Self::Request(Responder {
            request,
            private_data,
        }))
    }
}

/// A valid request, and the state for its answer.
pub(crate) struct Responder {
    request: ValidRequest,
    /// The private data of the request.
    pub(crate) private_data: KVec<u8>,
}

/// A valid request without its private data.
pub(super) enum ValidRequest {
    Mpa(startup::Responder),
    Sctp(SctpResponder),
}

/// An answer that accepts and is not sent.
pub(crate) enum Prepared<'a> {
    Mpa(OutFrame<'a>, Parameters),
    Sctp(Terms<'a>),
}

impl Responder {
    /// Checks that the connection still waits for the answer. If the peer has sent a chunk that is
    /// not allowed now, returns the fault, and whether this side has answered that chunk.
    pub(crate) fn check<T: LinkEvents>(
        &self,
        link: &Link,
        owner: &Arc<T>,
    ) -> Result<Option<(bool, StartupFault)>, StartupFailure> {
        let fault = match &self.request {
            ValidRequest::Mpa(_) => None,
            ValidRequest::Sctp(sctp) => sctp.check(link, owner)?,
        };

        match link.state() {
            _ if fault.is_some() => Ok(fault),
            LinkState::Established => Ok(None),
            _ => Err(StartupFailure::Link(ECONNRESET)),
        }
    }

    /// Returns the depths of the request.
    pub(crate) fn peer_depths(&self) -> PeerDepths {
        match &self.request {
            ValidRequest::Mpa(mpa) => (mpa.peer_ird(), mpa.peer_ord()),
            ValidRequest::Sctp(sctp) => sctp.peer_depths(),
        }
    }

    /// Prepares the answer that accepts. `EINVAL` if the private data does not fit.
    pub(crate) fn accept<'a>(&self, terms: Terms<'a>) -> Result<Prepared<'a>> {
        Ok(match &self.request {
            ValidRequest::Mpa(mpa) => {
                let (reply, parameters) = mpa
                    .accept(terms.ird, terms.ord, terms.private_data)
                    .map_err(|_| EINVAL)?;
                Prepared::Mpa(reply, parameters)
            }
            ValidRequest::Sctp(_) => Prepared::Sctp(terms),
        })
    }

    /// Sends the answer of a consumer that rejects. Returns whether it is sent.
    pub(crate) fn reject(&self, link: &Link, private: &[u8]) -> bool {
        match &self.request {
            ValidRequest::Mpa(mpa) => mpa
                .reject(private)
                .is_ok_and(|reply| link.send_octets(reply.parts()).is_ok()),
            ValidRequest::Sctp(sctp) => sctp.reject(link, private),
        }
    }

    /// Sends the answer for a consumer that does not decide. Returns whether it is sent.
    pub(crate) fn refuse(&self, link: &Link) -> bool {
        match &self.request {
            ValidRequest::Mpa(_) => self.reject(link, &[]),
            ValidRequest::Sctp(sctp) => sctp.refuse(link),
        }
    }
}

impl Prepared<'_> {
    /// Sends the answer. `reorder` is the treatment of segments that arrive out of order. Returns
    /// the result of the negotiation.
    pub(crate) fn send(self, link: &Link, reorder: Reorder) -> Result<Parameters> {
        match self {
            Self::Mpa(reply, parameters) => {
                link.send_octets(reply.parts())?;
                Ok(parameters)
            }
            Self::Sctp(terms) => sctp::accept(link, terms, reorder),
        }
    }
}

/// Copies private data.
pub(super) fn copy_of(private_data: &[u8]) -> Result<KVec<u8>> {
    let mut copy = KVec::new();

    copy.extend_from_slice(private_data, GFP_KERNEL_ACCOUNT)?;
    Ok(copy)
}

impl Link {
    /// Returns whether the peer of a new connection begins with a handshake of TLS; `None` if it
    /// has not begun. A connection that has no choice, or has ended, counts as one without.
    fn begins_with_tls(&self) -> Option<bool> {
        /// The type of a record with a handshake message (RFC 8446, section 5.1). A Request of MPA
        /// begins with a letter.
        const HANDSHAKE: u8 = 22;

        self.with(|connection| match connection {
            Connection::Tcp(tcp) => tcp.first_octet(),
            Connection::Tls(_) | Connection::Sctp(_) => Err(EOPNOTSUPP),
        })
        .map_or(Some(false), |octet| octet.map(|octet| octet == HANDSHAKE))
    }

    /// Requires TLS of the connection on these terms. Its events go to `owner`. If it fails, the
    /// connection is reset.
    fn require_tls<T: LinkEvents>(&self, terms: TlsTerms, owner: &Arc<T>) -> Result {
        let connection = self.take().ok_or(ENOTCONN)?.require_tls(terms)?;

        // TCP probes the peer already, if it is to.
        self.attach(connection, 0, owner.clone())
    }

    /// Makes the handshake on the connection, if it needs one, as far as that is possible now.
    /// `owner` gets the events of the link. Returns whether no handshake is left to wait for, or
    /// why it has failed. `deadline` is that of the startup.
    pub(crate) fn secure<T: LinkEvents>(
        &self,
        owner: &Arc<T>,
        deadline: &Deadline,
    ) -> Result<bool, StartupFailure> {
        let mut secured = Ok(false);

        self.with(|connection| {
            secured = match connection {
                Connection::Tls(tls) => tls.secure(owner, deadline),
                Connection::Tcp(_) | Connection::Sctp(_) => Ok(true),
            };
            Ok(())
        })
        .map_err(StartupFailure::Local)?;
        secured
    }

    /// Returns the time after which to call [`Self::secure`] again, if no event will follow.
    pub(crate) fn retry_time(&self) -> Option<Jiffies> {
        self.with(|connection| Ok(connection.handshake_retry()))
            .unwrap_or(None)
    }

    /// Sends a startup frame, which `parts` make up. `ENOBUFS` if there is no memory for it;
    /// otherwise fails as [`Carrier::send`](super::transport::Carrier::send).
    pub(super) fn send_octets(&self, parts: [&[u8]; 2]) -> Result {
        let mut batch = Batch::charged_to(MemCgroup::none());

        for part in parts {
            batch.buf.append(part)?;
        }
        self.send_first(&mut batch)
    }

    /// Sends a Terminate, as the first and only segment. `crc` and `markers` are for MPA. `ENOBUFS`
    /// if there is no memory for it; otherwise fails as
    /// [`Carrier::send`](super::transport::Carrier::send).
    pub(crate) fn send_terminate(&self, error: iwarp::Error, crc: bool, markers: bool) -> Result {
        let message = Message::Terminate(Terminate::new(error, Quote::NONE));
        let framer = self.with(|connection| {
            let emss = connection.emss();
            let config = TxConfig { crc, markers, emss };

            Ok(Framer::new(connection.transport(), config, None))
        })?;
        let mut batch = Batch::charged_to(MemCgroup::none());

        batch.clear(framer.has_messages());
        batch.begin_frame()?;
        let mut segmenter = Segmenter::new(framer);
        segmenter.start(message, 0).map_err(|_| EIO)?;
        let emitted = segmenter.poll_transmit(&mut Headers(&mut batch.buf))?;
        batch.end_frame(emitted.ok_or(EIO)?.bytes);
        self.send_first(&mut batch)
    }

    /// Sends what `batch` has, before the stream starts.
    fn send_first(&self, batch: &mut Batch) -> Result {
        // At most one such frame has been sent before, so only a lack of memory keeps this one out.
        self.with(|connection| connection.send(batch)).map_err(|e| {
            if e == EAGAIN {
                ENOBUFS
            } else {
                e
            }
        })
    }
}

/// Gathers a frame without payload.
struct Headers<'a>(&'a mut SendBuf);

impl Gather for Headers<'_> {
    type Error = Error;

    fn bytes(&mut self, bytes: &[u8]) -> Result {
        self.0.append(bytes)
    }

    fn payload(&mut self, _offset: u32, _len: u32, crc: Option<Crc>) -> Result<Option<Crc>> {
        Ok(crc)
    }
}
