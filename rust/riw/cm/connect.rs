// SPDX-License-Identifier: GPL-2.0

//! The side that connects.

use super::{
    device::{CmDevice, Member},
    end::End,
    pending::PendingEvent,
    phase::{Phase, Step},
    reason::EndReason,
    Endpoint,
};
use crate::{
    counters::Counter,
    limits,
    link::{AddrPair, Connection, Deadline, LinkState},
    qp::{Qp, Role},
};
use core::net::SocketAddr;
use iwarp::{
    startup::{Initiator, Kind, OutFrame, Outcome, Parameters, Policy, Reader, StartupError},
    Mpa,
};
use kernel::{
    prelude::*,
    sync::{aref::ARef, Arc},
};
use net::Netns;
use rdma::iw::{CmEvent, CmId, ConnParam, Offer, Setup};
use trace::CmPhase;

/// A connection that is being opened.
pub(super) struct Opening {
    /// iw_cm's id, which waits for the connect reply.
    id: ARef<CmId>,
    setup: Setup,
    /// The addresses, that of this side as far as it is known.
    pub(super) addrs: AddrPair,
    attempt: Attempt,
    /// The same Request may be sent once more, if the peer closes without a Reply.
    repeat: bool,
    /// For a peer that does not know revision 2 of MPA.
    fallback: Option<KBox<Attempt>>,
    reader: Reader,
    /// The deadline of the phase.
    pub(super) deadline: Deadline,
    /// When the consumer, which may wait, gets the connect reply at the latest, over all attempts.
    limit: Deadline,
}

/// A Request, and what checks the Reply to it.
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

impl Opening {
    fn new(
        dev: &CmDevice,
        id: &CmId,
        setup: &Setup,
        remote: &SocketAddr,
        param: &ConnParam<'_>,
    ) -> Result<KBox<Self>> {
        let policy = dev.settings.policy();
        let enhanced = policy.revision > 1;
        // Revision 1 lacks the peer-to-peer model. A responder has to wait for the initiator's
        // first message there, so a consumer that expects the first message from it would hang.
        let fallback = if enhanced && !policy.peer_to_peer {
            let policy = Policy {
                revision: 1,
                ..policy
            };
            Some(KBox::new(Attempt::new(&policy, param)?, GFP_KERNEL)?)
        } else {
            None
        };
        let connect_time = dev.settings.connect_time();
        let opening = Self {
            id: ARef::from(id),
            setup: *setup,
            addrs: AddrPair {
                local: setup.local,
                remote: *remote,
            },
            attempt: Attempt::new(&policy, param)?,
            repeat: enhanced,
            fallback,
            reader: Reader::new(Kind::Reply),
            deadline: Deadline::new(connect_time),
            limit: Deadline::new(connect_time.saturating_add(dev.settings.startup_time())),
        };

        Ok(KBox::new(opening, GFP_KERNEL)?)
    }

    /// Makes a connection bound to the address of this end. May sleep.
    fn bind(&self, dev: &CmDevice, ns: &Netns) -> Result<Connection> {
        let Setup { local, tos, .. } = &self.setup;

        Connection::new(&dev.shared.pernet, ns, local, &self.addrs.remote, *tos)
    }

    /// Chooses the Request that follows a failed attempt. Returns false if there is none.
    ///
    /// A peer that knows only revision 1 closes without a Reply (RFC 6581, section 10). But a peer
    /// also closes if it lacks memory, or room for half-open connections. So the same Request is
    /// repeated once before revision 1 is tried.
    fn next_attempt(&mut self, reason: EndReason) -> bool {
        let no_octets = self.reader.wanted() == Reader::new(Kind::Reply).wanted();
        let closed = reason.to_error() == ECONNRESET && no_octets;

        if closed && core::mem::replace(&mut self.repeat, false) {
            return true;
        }
        if !closed && reason != EndReason::Startup(StartupError::Revision) {
            return false;
        }
        let Some(attempt) = self.fallback.take() else {
            return false;
        };
        self.attempt = KBox::into_inner(attempt);
        self.repeat = false;
        true
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
            EndReason::Refused => reply_offer(&self.reader, None),
            _ => Offer::default(),
        };

        if self.report(Err(error), offer).is_err() {
            // No memory for the private data, or too much of them. The consumer waits for the
            // event, and without private data it does not fail.
            let _ = self.report(Err(error), Offer::default());
        }
    }
}

/// Checks that the depths are within the limits of the device.
pub(super) fn check_depths(param: &ConnParam<'_>) -> Result {
    if param.ird > limits::MAX_READS || param.ord > limits::MAX_READS {
        return Err(EINVAL);
    }
    Ok(())
}

/// Starts to connect, as [`CmOperations::connect`](rdma::iw::CmOperations::connect) says. May
/// sleep.
pub(super) fn connect(
    dev: &Arc<CmDevice>,
    qp: &Arc<Qp>,
    id: &CmId,
    setup: &Setup,
    remote: &SocketAddr,
    param: &ConnParam<'_>,
) -> Result {
    check_depths(param)?;
    let opening = Opening::new(dev, id, setup, remote, param)?;
    // Held until the device knows of the connection.
    let ns = dev.netns()?;
    let connection = opening.bind(dev, &ns)?;
    let endpoint = Endpoint::new(dev)?;

    let mut phase = endpoint.phase.lock();
    let begun = dev
        .add(endpoint.token, Member::Endpoint(endpoint.clone()))
        .map_err(EndReason::Local)
        .and_then(|()| endpoint.begin(connection, remote))
        .and_then(|()| endpoint.attach(qp).map_err(EndReason::Local));
    if begun.is_ok() {
        // From here on iw_cm gets a connect reply in any case.
        *phase = Phase::Connecting(opening);
        endpoint.note_phase(CmPhase::New, &phase);
    }
    endpoint.proceed(phase, begun)
}

impl Endpoint {
    /// Starts to connect by TCP. May sleep.
    fn begin(
        self: &Arc<Self>,
        connection: Connection,
        remote: &SocketAddr,
    ) -> Result<(), EndReason> {
        self.set_connection(connection).map_err(EndReason::Local)?;
        self.link.connect(remote).map_err(EndReason::Unreachable)
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

    /// Sends the Request if TCP has connected. May sleep.
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
            Err(reason) => Step::End(Phase::Connecting(opening), End::abort(reason)),
        }
    }

    /// Returns whether TCP has connected and the Request is sent. May sleep.
    fn try_send_request(&self, opening: &mut Opening) -> Result<bool, EndReason> {
        match self.link.state() {
            LinkState::Connecting => return Ok(false),
            LinkState::Closed(error) => return Err(EndReason::Unreachable(error)),
            LinkState::Established | LinkState::PeerClosed | LinkState::Closing => {}
        }
        opening.addrs.local = self.link.local_addr().map_err(EndReason::link)?;
        self.send_frame(opening.attempt.request.as_bytes())
            .map_err(EndReason::link)?;
        Ok(true)
    }

    /// Receives the Reply, or a part of it, and acts on it. May sleep.
    fn receive_reply(self: &Arc<Self>, mut opening: KBox<Opening>) -> Step {
        match self.receive_frame(&mut opening.reader) {
            Ok(false) => return Step::Next(Phase::AwaitReply(opening)),
            Ok(true) => {}
            Err(reason) => return self.try_again(opening, reason),
        }

        match opening.attempt.initiator.reply(&opening.reader) {
            Ok(Outcome::Established(parameters)) => self.connected(opening, &parameters),
            Ok(Outcome::Rejected) => Step::End(
                Phase::AwaitReply(opening),
                End::graceful(EndReason::Refused),
            ),
            Err(error) => match (error.term(), opening.reader.frame()) {
                (Some(terminate), Some(reply)) => {
                    let crc = opening.attempt.initiator.crc(&reply);

                    self.withdraw(
                        opening,
                        terminate,
                        crc,
                        reply.markers,
                        EndReason::Startup(error),
                    )
                }
                _ if error == StartupError::Revision => {
                    self.try_again(opening, EndReason::Startup(error))
                }
                _ => Step::End(
                    Phase::AwaitReply(opening),
                    End::abort(EndReason::Startup(error)),
                ),
            },
        }
    }

    /// Starts the stream and reports the connection. May sleep.
    fn connected(self: &Arc<Self>, opening: KBox<Opening>, parameters: &Parameters) -> Step {
        let started = if opening.reader.private_data().len() > CmId::PRIVATE_DATA_MAX {
            // iw_cm would get only a part of them.
            Err(EMSGSIZE)
        } else {
            self.start(parameters, Role::Initiator, opening.addrs)
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

        match opening.report(Ok(()), reply_offer(&opening.reader, Some(parameters))) {
            Ok(()) => {
                self.dev.counters.inc(Counter::ConnectionsOpened);
                Step::Next(Phase::Rdma {
                    id: KBox::into_inner(opening).id,
                    ending: None,
                })
            }
            Err(e) => Step::End(Phase::AwaitReply(opening), End::abort(EndReason::Local(e))),
        }
    }

    /// Connects once more, if the peer has closed without a Reply or has replied in another
    /// revision of MPA, and an attempt is left. Otherwise ends the connection. May sleep.
    fn try_again(self: &Arc<Self>, mut opening: KBox<Opening>, reason: EndReason) -> Step {
        if !opening.next_attempt(reason) || self.reconnect(&mut opening).is_err() {
            return Step::End(Phase::AwaitReply(opening), End::abort(reason));
        }
        // TCP may have connected already.
        self.kick();
        Step::Next(Phase::Connecting(opening))
    }

    /// Resets the connection and connects once more. May sleep.
    fn reconnect(self: &Arc<Self>, opening: &mut Opening) -> Result {
        if let Some(connection) = self.link.take() {
            connection.abort();
        }

        let ns = self.dev.netns()?;
        let connection = opening.bind(&self.dev, &ns)?;
        // A shutdown of the device that begins now also ends this endpoint: it is a member, and the
        // shutdown waits for `phase`, which is locked.
        self.begin(connection, &opening.addrs.remote)
            .map_err(EndReason::to_error)?;

        opening.reader = Reader::new(Kind::Reply);
        opening.deadline = Deadline::new(self.dev.settings.connect_time()).min(opening.limit);
        Ok(())
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

/// Returns depths and private data of a Reply as consumers expect them from an iWARP device: the
/// depths as the peer means them.
fn reply_offer<'a>(reader: &'a Reader, parameters: Option<&Parameters>) -> Offer<'a> {
    let depths = reader.frame().and_then(|reply| reply.depths);
    let (ird, ord) = parameters.map_or((0, 0), |p| (p.ird, p.ord));
    let (ird, ord) = (
        depths.and_then(|d| d.negotiated_ord()).unwrap_or(ird),
        depths.and_then(|d| d.negotiated_ird()).unwrap_or(ord),
    );

    Offer {
        ird,
        ord,
        private_data: reader.private_data(),
    }
}
