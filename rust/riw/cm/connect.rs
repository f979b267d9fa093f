// SPDX-License-Identifier: GPL-2.0

//! The side that connects.

use super::{
    deadline::Deadline,
    device::Member,
    endpoint::{End, Endpoint, Inner, Phase},
    pending::PendingEvent,
    CmDevice, Disconnect, Role,
};
use crate::{limits, qp::Qp};
use core::net::SocketAddr;
use iwarp::{
    startup::{Initiator, Kind, OutFrame, Outcome, Parameters, Policy, Reader, StartupError},
    Mpa,
};
use kernel::{
    prelude::*,
    sync::{aref::ARef, Arc},
};
use net::{Family, Netns, Socket, TcpState};
use rdma::iw::{CmId, ConnParam, Event, Offer, Setup};

/// What an initiator needs until it is connected.
pub(super) struct Opening {
    setup: Setup,
    remote: SocketAddr,
    attempt: Attempt,
    /// The same Request may be sent once more, if the peer closes without an answer.
    repeat: bool,
    /// What is tried if the peer does not know revision 2 of MPA.
    fallback: Option<KBox<Attempt>>,
    reader: Reader,
    /// When the consumer, which may be waiting, is told at the latest, whatever is tried.
    limit: Deadline,
}

/// A Request, and what judges the Reply to it.
struct Attempt {
    initiator: Initiator,
    request: OutFrame,
}

impl Attempt {
    fn new(policy: &Policy, param: &ConnParam<'_>) -> Result<Self> {
        let (initiator, request) =
            Initiator::new(policy, param.ird, param.ord, param.private_data).map_err(|_| EINVAL)?;

        Ok(Self { initiator, request })
    }
}

/// Whether depths are within what the device can do.
pub(super) fn check_depths(param: &ConnParam<'_>) -> Result {
    if param.ird > limits::MAX_READS || param.ord > limits::MAX_READS {
        return Err(EINVAL);
    }
    Ok(())
}

/// Makes a socket that has the address of this end.
fn open(dev: &CmDevice, ns: &Netns, setup: &Setup, remote: &SocketAddr) -> Result<Socket> {
    let socket = Socket::new(&dev.shared.pernet, ns, Family::from(remote))?;

    socket.set_reuseaddr();
    if let Some(tos) = setup.tos {
        socket.set_tos(tos);
    }
    match socket.bind(&setup.local) {
        // rdma_cm has given the port out of a space of its own, not knowing of TCP's. Nobody has
        // asked for this very one, then.
        Err(e) if e == EADDRINUSE && ns.is_ephemeral(setup.local.port()) => {
            let mut local = setup.local;

            local.set_port(0);
            socket.bind(&local)?;
        }
        other => other?,
    }
    Ok(socket)
}

/// Begins to connect, as [`CmOperations::connect`](rdma::iw::CmOperations::connect) says.
pub(super) fn connect(
    dev: &Arc<CmDevice>,
    qp: &Arc<Qp>,
    id: &CmId,
    setup: &Setup,
    remote: &SocketAddr,
    param: &ConnParam<'_>,
) -> Result {
    check_depths(param)?;
    let policy = dev.settings.policy();
    let enhanced = policy.revision > 1;
    // Revision 1 has no peer-to-peer model: a consumer that counts on it would wait for ever for the
    // first message of a responder, which has to wait for one of the initiator's.
    let fallback = if enhanced && !policy.peer_to_peer {
        let policy = Policy {
            revision: 1,
            ..policy
        };
        Some(KBox::new(Attempt::new(&policy, param)?, GFP_KERNEL)?)
    } else {
        None
    };
    let opening = Opening {
        setup: *setup,
        remote: *remote,
        attempt: Attempt::new(&policy, param)?,
        repeat: enhanced,
        fallback,
        reader: Reader::new(Kind::Reply),
        limit: Deadline::new(
            dev.settings
                .connect_time()
                .saturating_add(dev.settings.startup_time()),
        ),
    };

    // Held until the device knows of the socket.
    let ns = dev.netns()?;
    let socket = open(dev, &ns, setup, remote)?;
    let endpoint = Endpoint::new(
        dev,
        Role::Initiator,
        Inner {
            phase: Phase::Connecting,
            id: None,
            deadline: Some(Deadline::new(dev.settings.connect_time())),
            local: setup.local,
            remote: *remote,
            depths: Offer::default(),
            opening: Some(KBox::new(opening, GFP_KERNEL)?),
            request: None,
            ending: None,
        },
    )?;

    let mut inner = endpoint.inner.lock();
    let begun = dev
        .add(endpoint.token, Member::Endpoint(endpoint.clone()))
        .and_then(|()| endpoint.begin(socket, remote))
        .and_then(|()| endpoint.attach(qp));
    if begun.is_ok() {
        // From here on iw_cm is owed a reply.
        inner.id = Some(ARef::from(id));
    }
    endpoint.proceed(inner, begun)
}

impl Endpoint {
    /// Begins to connect by TCP.
    fn begin(self: &Arc<Self>, socket: Socket, remote: &SocketAddr) -> Result {
        self.set_socket(socket)?;
        match self.with_socket(|socket| socket.connect(remote)) {
            Err(e) if e != EINPROGRESS => Err(e),
            _ => Ok(()),
        }
    }

    /// Goes on with connecting, as far as that is possible now. May sleep.
    pub(super) fn step_connect(self: &Arc<Self>, inner: &mut Inner) {
        if self.events.has(PendingEvent::CloseRequested) {
            // The consumer has given the queue pair up, and may be waiting for the reply.
            return self.end(inner, &End::abort(ECONNABORTED));
        }
        let Some(mut opening) = inner.opening.take() else {
            return;
        };

        if let Err(e) = self.open_stream(inner, &mut opening) {
            // Whether the peer's TCP refused or gave up the connection, it was not its consumer.
            let error = if e == ECONNREFUSED { ECONNRESET } else { e };

            if !self.try_again(inner, &mut opening, error) {
                self.end(inner, &End::abort(error));
            }
        }
        if matches!(inner.phase, Phase::Connecting | Phase::AwaitReply) {
            inner.opening = Some(opening);
        }
    }

    /// Looks what has come, and answers. An error means that there is no connection.
    fn open_stream(self: &Arc<Self>, inner: &mut Inner, opening: &mut Opening) -> Result {
        if inner.phase == Phase::Connecting {
            match self.with_socket(|socket| Ok((socket.state(), socket.error())))? {
                (TcpState::SynSent | TcpState::SynReceived, _) => return Ok(()),
                (TcpState::Closed, error) => return Err(error.unwrap_or(ECONNRESET)),
                _ => {}
            }
            inner.local = self.with_socket(Socket::local_addr)?;
            self.send_frame(opening.attempt.request.as_bytes())?;
            inner.phase = Phase::AwaitReply;
            inner.deadline =
                Some(Deadline::new(self.dev.settings.startup_time()).min(opening.limit));
        }
        if !self.receive_frame(&mut opening.reader)? {
            return Ok(());
        }

        match opening.attempt.initiator.reply(&opening.reader) {
            Ok(Outcome::Established(parameters)) => {
                self.connected(inner, &opening.reader, &parameters)
            }
            Ok(Outcome::Rejected) => {
                let end = End {
                    how: Disconnect::Graceful,
                    error: ECONNREFUSED,
                    offer: reply_offer(&opening.reader, None),
                };

                self.end(inner, &end);
                Ok(())
            }
            Err(error) => {
                if let (Some(terminate), Some(reply)) = (error.term(), opening.reader.frame()) {
                    let crc = opening.attempt.initiator.crc(&reply);
                    self.withdraw(inner, terminate, crc, reply.markers, EPROTO);
                }
                match error {
                    StartupError::Revision => Err(EPROTONOSUPPORT),
                    _ => Err(EPROTO),
                }
            }
        }
    }

    /// The connection is there.
    fn connected(
        self: &Arc<Self>,
        inner: &mut Inner,
        reader: &Reader,
        parameters: &Parameters,
    ) -> Result {
        let started = if reader.private_data().len() > CmId::PRIVATE_DATA_MAX {
            // iw_cm could be told a part of them only.
            Err(EMSGSIZE)
        } else {
            self.start(parameters)
        };
        if let Err(e) = started {
            let error = Mpa::LocalCatastrophic.into();
            self.withdraw(inner, error, parameters.crc, parameters.tx_markers, e);
            return Err(e);
        }
        Self::tell(
            inner,
            &Event::ConnectReply {
                status: Ok(()),
                local: inner.local,
                remote: inner.remote,
                offer: reply_offer(reader, Some(parameters)),
            },
        )?;
        inner.phase = Phase::Rdma;
        inner.deadline = None;
        Ok(())
    }

    /// Tries again if the peer has closed the connection before it answered, or has answered in
    /// another revision of MPA. Returns whether it does. May sleep.
    ///
    /// A peer that knows no revision but 1 closes (RFC 6581, section 10). But a peer also closes when
    /// it is short of memory or of room for connections that are being set up. So the same Request
    /// is sent a second time, before revision 1 is tried.
    fn try_again(self: &Arc<Self>, inner: &mut Inner, opening: &mut Opening, error: Error) -> bool {
        let nothing = opening.reader.wanted() == Reader::new(Kind::Reply).wanted();
        let closed = error == ECONNRESET && nothing;

        if inner.phase != Phase::AwaitReply || !(closed || error == EPROTONOSUPPORT) {
            return false;
        }
        if !(closed && core::mem::replace(&mut opening.repeat, false)) {
            let Some(attempt) = opening.fallback.take() else {
                return false;
            };
            opening.attempt = KBox::into_inner(attempt);
            opening.repeat = false;
        }
        if let Some(socket) = self.take_socket() {
            socket.abort();
        }

        let begun = self.dev.netns().and_then(|ns| {
            let socket = open(&self.dev, &ns, &opening.setup, &opening.remote)?;

            // If the device was shut down meanwhile, so will be this endpoint: it is one of its
            // members, and `inner` is locked.
            self.begin(socket, &opening.remote)
        });
        if begun.is_err() {
            return false;
        }
        opening.reader = Reader::new(Kind::Reply);
        inner.phase = Phase::Connecting;
        inner.deadline = Some(Deadline::new(self.dev.settings.connect_time()).min(opening.limit));
        self.kick();
        true
    }

    /// Ends the connection for `reason`, after a Terminate to the peer, which believes it to be up.
    fn withdraw(
        self: &Arc<Self>,
        inner: &mut Inner,
        error: iwarp::Error,
        crc: bool,
        markers: bool,
        reason: Error,
    ) {
        // Without memory the peer learns no more than that the connection ends.
        let _ = self.send_terminate(error, crc, markers);
        self.end(inner, &End::graceful(reason));
    }
}

/// Depths and private data of a Reply, as consumers expect them of an iWARP device: the depths as
/// the peer means them.
fn reply_offer<'a>(reader: &'a Reader, parameters: Option<&Parameters>) -> Offer<'a> {
    let said = reader.frame().and_then(|reply| reply.depths);
    let (ird, ord) = parameters.map_or((0, 0), |p| (p.ird, p.ord));
    let (ird, ord) = (
        said.and_then(|d| d.negotiated_ord()).unwrap_or(ird),
        said.and_then(|d| d.negotiated_ird()).unwrap_or(ord),
    );

    Offer {
        ird,
        ord,
        private_data: reader.private_data(),
    }
}
