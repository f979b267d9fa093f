// SPDX-License-Identifier: GPL-2.0

//! The side that connects.

use super::{
    device::{CmDevice, Member},
    end::End,
    endpoint::{Opening, PeerWatch, Phase},
    pending::PendingEvent,
    reason::EndReason,
    steps::Step,
    Endpoint,
};
use crate::{
    counters::Counter,
    link::{
        AddrPair, Answer, Connection, Deadline, LinkState, Site, Startup, StartupFailure, Transport,
    },
    qp::{Qp, Role},
};
use core::net::SocketAddr;
use iwarp::{startup::Parameters, Mpa};
use kernel::{
    prelude::*,
    sync::{aref::ARef, Arc},
};
use net::Netns;
use rdma::iw::{CmEvent, CmId, ConnParam, Offer, Setup};
use trace::CmPhase;

/// Milliseconds to connect if another transport can be tried afterwards.
const FALLBACK_TIME: i64 = 3_000;

impl Opening {
    /// Prepares to connect. Also returns the connection of the first attempt, bound to the address
    /// of this end: over the first transport that can have one. May sleep.
    ///
    /// Every socket of the attempts is made here, by the task that connects: it belongs to the user
    /// and to the cgroups of that task.
    fn new(
        dev: &CmDevice,
        ns: &Netns,
        qp: &Qp,
        id: &CmId,
        setup: &Setup,
        remote: &SocketAddr,
        param: &ConnParam<'_>,
    ) -> Result<(KBox<Self>, Connection)> {
        // First: this also checks the depths, before any socket is made.
        let room = qp.start_room(param, Role::Initiator)?;
        let ((startup, connection), fallback) = attempts(dev, ns, qp, setup, remote, param)?;
        let connect_time = dev.settings.connect_time();
        let time = match fallback {
            Some(_) => (connect_time / 2).min(FALLBACK_TIME),
            None => connect_time,
        };
        let opening = Self {
            id: ARef::from(id),
            addrs: AddrPair {
                local: setup.local,
                remote: *remote,
            },
            startup,
            fallback,
            room: Some(room),
            deadline: Deadline::new(time),
            limit: Deadline::new(connect_time.saturating_add(dev.settings.startup_time())),
        };

        Ok((KBox::new(opening, GFP_KERNEL_ACCOUNT)?, connection))
    }

    /// Chooses the next transport, if there is one. Returns its connection.
    fn take_fallback(&mut self) -> Option<Connection> {
        let (startup, connection) = self.fallback.take()?;

        self.startup = startup;
        Some(connection)
    }

    /// Returns depths and private data of the answer as consumers expect them from an iWARP device:
    /// the depths as the peer means them.
    fn offer(&self, parameters: Option<&Parameters>) -> Offer<'_> {
        let (ird, ord) = parameters.map_or((0, 0), |p| (p.ird, p.ord));
        let (peer_ird, peer_ord) = self.startup.peer_depths();

        Offer {
            ird: peer_ord.unwrap_or(ird),
            ord: peer_ird.unwrap_or(ord),
            private_data: self.startup.private_data(),
        }
    }

    /// Reports the connect reply to iw_cm. May sleep.
    fn report(&self, status: Result, offer: Offer<'_>) -> Result {
        self.id.event(&CmEvent::ConnectReply {
            status,
            local: self.addrs.local,
            remote: self.addrs.remote,
            offer,
        })
    }

    /// Reports to iw_cm that there is no connection. May sleep.
    pub(super) fn report_failure(&self, reason: EndReason) {
        let error = reason.to_error();
        let offer = match reason {
            EndReason::Refused => self.offer(None),
            _ => Offer::default(),
        };

        if self.report(Err(error), offer).is_err() {
            // No memory for the private data, or too much of them. The consumer waits for the
            // event, and without private data it does not fail.
            let _ = self.report(Err(error), Offer::default());
        }
    }
}

/// An attempt to connect.
type Attempt = (Startup, Connection);

/// Prepares the attempts, over the transports in their order: the first one, and another one if
/// there is. May sleep. Not in the frame of the caller, below which TCP connects.
#[inline(never)]
fn attempts(
    dev: &CmDevice,
    ns: &Netns,
    qp: &Qp,
    setup: &Setup,
    remote: &SocketAddr,
    param: &ConnParam<'_>,
) -> Result<(Attempt, Option<Attempt>)> {
    let policy = dev.settings.policy();
    let below_reclaim = qp.is_below_reclaim(Role::Initiator);
    let bind = |transport| bind(transport, dev, ns, setup, remote, below_reclaim);

    // The request has to suit each transport that riw has. One that has no socket is left out.
    let wanted = dev.settings.transports().iter();
    let transports = wanted.filter(|transport| transport.is_built());
    let mut attempts = transports.map(|transport| -> Result<_> {
        let startup = Startup::new(*transport, &policy, param.into(), dev.reorder(qp))?;

        Ok((startup, bind(*transport)))
    });
    let (startup, first) = attempts.next().ok_or(EPROTONOSUPPORT)??;
    let second = attempts.next().transpose()?;

    Ok(match (first, second) {
        (Ok(first), Some((other, Ok(second)))) => ((startup, first), Some((other, second))),
        (Err(_), Some((other, second))) => ((other, second?), None),
        (first, _) => ((startup, first?), None),
    })
}

/// Makes a connection that is bound to the address of this end. May sleep.
fn bind(
    transport: Transport,
    dev: &CmDevice,
    ns: &Netns,
    setup: &Setup,
    remote: &SocketAddr,
    below_reclaim: bool,
) -> Result<Connection> {
    let Setup { local, tos, .. } = setup;
    let more = dev.further_addrs(transport, local)?;
    let site = Site {
        pernet: &dev.shared.pernet,
        ns,
        vrf: dev.vrf(local)?,
    };
    let security = dev.settings.security();
    let connection = Connection::new(transport, &site, local, &more, remote, *tos, security)?;

    if below_reclaim {
        // Now, and not when the stream starts: a consumer also connects again to get memory.
        connection.use_reserves();
    }
    Ok(connection)
}

/// Starts to connect, as [`CmOperations::connect`](rdma::iw::CmOperations::connect) says. May
/// sleep.
pub(super) fn connect(
    dev: &Arc<CmDevice>,
    qp: &Arc<Qp>,
    id: &CmId,
    setup: &Setup,
    home: Option<&Netns>,
    remote: &SocketAddr,
    param: &ConnParam<'_>,
) -> Result {
    // Held until the device knows of the connections.
    let ns = dev.netns_of(home)?;
    let (mut opening, connection) = Opening::new(dev, &ns, qp, id, setup, remote, param)?;
    let endpoint = Endpoint::new(dev, qp.is_below_reclaim(Role::Initiator))?;

    let mut phase = endpoint.lock_phase();
    let begun = dev
        .add(endpoint.token, Member::Endpoint(endpoint.clone()))
        .map_err(EndReason::Local)
        .and_then(|()| endpoint.begin_first(connection, &mut opening))
        .and_then(|()| endpoint.attach(qp).map_err(EndReason::Local));
    if begun.is_ok() {
        // From here on iw_cm gets a connect reply in any case.
        *phase = Phase::Connecting(opening);
        endpoint.note_phase(CmPhase::New, &phase);
    }
    endpoint.proceed(phase, begun)
}

impl Endpoint {
    /// Starts to connect. May sleep.
    fn begin(
        self: &Arc<Self>,
        connection: Connection,
        remote: &SocketAddr,
    ) -> Result<(), EndReason> {
        self.set_connection(connection).map_err(EndReason::Local)?;
        self.link.connect(remote).map_err(EndReason::Unreachable)
    }

    /// Starts to connect, by the next transport if the first one fails at once. May sleep.
    fn begin_first(
        self: &Arc<Self>,
        connection: Connection,
        opening: &mut Opening,
    ) -> Result<(), EndReason> {
        self.begin(connection, &opening.addrs.remote)
            .or_else(|reason| self.begin_fallback(opening, reason))
    }

    /// Starts to connect by the next transport, after an attempt that has failed for `reason`.
    /// Returns that reason if there is none. May sleep.
    fn begin_fallback(
        self: &Arc<Self>,
        opening: &mut Opening,
        reason: EndReason,
    ) -> Result<(), EndReason> {
        let connection = opening.take_fallback().ok_or(reason)?;

        if let Some(failed) = self.link.take() {
            failed.abort();
        }
        self.begin_next(connection, opening)
    }

    /// Starts another attempt to connect. May sleep.
    fn begin_next(
        self: &Arc<Self>,
        connection: Connection,
        opening: &mut Opening,
    ) -> Result<(), EndReason> {
        self.begin(connection, &opening.addrs.remote)?;
        opening.deadline = Deadline::new(self.dev.settings.connect_time()).min(opening.limit);
        Ok(())
    }

    /// Continues to connect, as far as that is possible now. May sleep.
    pub(super) fn step_connect(self: &Arc<Self>, phase: Phase) -> Step {
        if self.events.has(PendingEvent::CloseRequested) {
            // The consumer has given the queue pair up, and may wait for the connect reply.
            return Step::End(phase, End::abort(EndReason::Local(ECONNABORTED)));
        }
        match phase {
            Phase::Connecting(opening) => self.send_request(opening),
            Phase::AwaitReply(opening) => self.receive_reply(opening),
            phase => Step::Next(phase),
        }
    }

    /// Sends the request of this side if the transport has connected. May sleep.
    fn send_request(self: &Arc<Self>, mut opening: KBox<Opening>) -> Step {
        match self.try_send_request(&mut opening) {
            Ok(false) => Step::Next(Phase::Connecting(opening)),
            Ok(true) => {
                opening.deadline =
                    Deadline::new(self.dev.settings.startup_time()).min(opening.limit);
                // The peer may have sent something before the Request.
                self.kick();
                Step::Next(Phase::AwaitReply(opening))
            }
            Err(reason) => self.fall_back(opening, reason),
        }
    }

    /// Connects by the next transport, if there is one. Otherwise ends the connection. May sleep.
    pub(super) fn fall_back(
        self: &Arc<Self>,
        mut opening: KBox<Opening>,
        reason: EndReason,
    ) -> Step {
        if self.begin_fallback(&mut opening, reason).is_err() {
            return Step::End(Phase::Connecting(opening), End::abort(reason));
        }
        // It may have connected already.
        self.kick();
        Step::Next(Phase::Connecting(opening))
    }

    /// Returns whether the transport has connected and the request is sent. May sleep.
    fn try_send_request(self: &Arc<Self>, opening: &mut Opening) -> Result<bool, EndReason> {
        if !self.link.secure(self, &opening.deadline)? {
            return Ok(false);
        }
        match self.link.state() {
            LinkState::Connecting => return Ok(false),
            LinkState::ShuttingDown => return Err(EndReason::Unreachable(ECONNRESET)),
            LinkState::Closed(error) => return Err(EndReason::Unreachable(error)),
            LinkState::Established | LinkState::PeerClosed | LinkState::Closing => {}
        }
        opening.addrs.local = self
            .link
            .with(|connection| connection.local_addr())
            .map_err(EndReason::link)?;
        opening.startup.send_request(&self.link)?;
        Ok(true)
    }

    /// Receives the answer, or a part of it, and acts on it. May sleep.
    fn receive_reply(self: &Arc<Self>, mut opening: KBox<Opening>) -> Step {
        let answer = match opening.startup.receive(&self.link, self) {
            Ok(None) => return Step::Next(Phase::AwaitReply(opening)),
            Ok(Some(answer)) => answer,
            Err(failure) => Answer::Failed(failure),
        };

        match answer {
            Answer::Established(parameters) => self.connected(opening, &parameters),
            Answer::Rejected => Step::End(
                Phase::AwaitReply(opening),
                End::graceful(EndReason::Refused),
            ),
            Answer::Withdraw {
                error,
                crc,
                markers,
                reason,
            } => self.withdraw(opening, error, crc, markers, reason.into()),
            Answer::Failed(failure) => self.try_again(opening, failure),
        }
    }

    /// Starts the stream and reports the connection. May sleep.
    fn connected(self: &Arc<Self>, mut opening: KBox<Opening>, parameters: &Parameters) -> Step {
        let started = match opening.room.take() {
            // iw_cm would get only a part of them.
            _ if opening.startup.private_data().len() > CmId::PRIVATE_DATA_MAX => Err(EMSGSIZE),
            Some(room) => self.start(parameters, Role::Initiator, opening.addrs, room),
            None => Err(ENOTCONN),
        };
        if let Err(e) = started {
            let error = Mpa::LocalCatastrophic.into();

            let reason = EndReason::Local(e);

            return self.withdraw(
                opening,
                error,
                parameters.crc,
                parameters.tx_markers,
                reason,
            );
        }

        match opening.report(Ok(()), opening.offer(Some(parameters))) {
            Ok(()) => {
                self.dev.counters.inc(Counter::ConnectionsOpened);
                Step::Next(Phase::Rdma {
                    id: KBox::into_inner(opening).id,
                    ending: None,
                    watch: PeerWatch::new(self),
                })
            }
            Err(e) => Step::End(Phase::AwaitReply(opening), End::abort(EndReason::Local(e))),
        }
    }

    /// Connects once more, if the peer has closed without a Reply or has replied in another
    /// revision of MPA, and an attempt is left. Otherwise ends the connection. May sleep.
    fn try_again(self: &Arc<Self>, mut opening: KBox<Opening>, failure: StartupFailure) -> Step {
        if !opening.startup.next_attempt(failure) || self.reconnect(&mut opening).is_err() {
            return Step::End(Phase::AwaitReply(opening), End::abort(failure.into()));
        }
        // It may have connected already.
        self.kick();
        Step::Next(Phase::Connecting(opening))
    }

    /// Resets the connection and connects once more, from the same socket. May sleep.
    fn reconnect(self: &Arc<Self>, opening: &mut Opening) -> Result<(), EndReason> {
        let connection = self.link.take().ok_or(EndReason::Local(ENOTCONN))?;

        self.begin_next(connection.reset().map_err(EndReason::Local)?, opening)
    }

    /// Ends the connection for `reason`, after a Terminate: the peer believes it established. May
    /// sleep.
    fn withdraw(
        &self,
        opening: KBox<Opening>,
        error: iwarp::Error,
        crc: bool,
        markers: bool,
        reason: EndReason,
    ) -> Step {
        // Without memory for it the peer learns no more than the end.
        let _ = self.send_terminate(error, crc, markers);
        Step::End(Phase::AwaitReply(opening), End::graceful(reason))
    }
}
