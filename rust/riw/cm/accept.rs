// SPDX-License-Identifier: GPL-2.0

//! The side that accepts a connection.

use super::{
    connect::check_depths,
    device::{CmDevice, Member},
    end::End,
    pending::PendingEvent,
    phase::{Phase, Step},
    reason::EndReason,
    subscription::Subscription,
    Endpoint,
};
use crate::{
    limits,
    link::{AddrPair, Connection, Deadline, LinkState},
    qp::{Qp, Role},
};
use iwarp::startup::{Kind, OutFrame, Parameters, Reader, Responder};
use kernel::{
    prelude::*,
    sync::{aref::ARef, Arc},
};
use rdma::iw::{CmEvent, CmId, ConnParam, Offer};
use trace::CmPhase;

/// A connection that a listener has accepted.
struct Incoming {
    addrs: AddrPair,
    /// The subscriptions that may decide on it. The first one is asked.
    candidates: KVec<Arc<Subscription>>,
}

/// A connection whose Request has not arrived in full. It counts among the half-open ones of its
/// first candidate.
pub(super) struct Request {
    incoming: Incoming,
    reader: Reader,
    pub(super) deadline: Deadline,
}

/// A connection with a valid Request that waits for the decision of a consumer.
pub(super) struct Reported {
    incoming: Incoming,
    responder: Responder,
    pub(super) deadline: Deadline,
}

impl Incoming {
    /// Takes the connection over, and leaves no candidates behind.
    fn take(&mut self) -> Self {
        Self {
            candidates: core::mem::take(&mut self.candidates),
            ..*self
        }
    }
}

impl Request {
    /// Returns the addresses of the connection.
    pub(super) fn addrs(&self) -> &AddrPair {
        &self.incoming.addrs
    }

    fn new(
        dev: &CmDevice,
        connection: &Connection,
        candidates: KVec<Arc<Subscription>>,
    ) -> Result<KBox<Self>> {
        let request = Self {
            incoming: Incoming {
                addrs: connection.addrs()?,
                candidates,
            },
            reader: Reader::new(Kind::Request),
            deadline: Deadline::new(dev.settings.startup_time()),
        };

        Ok(KBox::new(request, GFP_KERNEL)?)
    }

    /// Adds the connection to the half-open ones of its subscription. May sleep.
    fn enter(&self, endpoint: &Arc<Endpoint>) -> Result {
        let Incoming { addrs, candidates } = &self.incoming;

        candidates
            .first()
            .ok_or(ECONNREFUSED)?
            .enter(addrs.remote.ip().into(), endpoint)
    }

    /// Removes the connection from the half-open ones, if it is one of them. May sleep.
    pub(super) fn leave(&self, endpoint: &Endpoint) {
        if let Some(subscription) = self.incoming.candidates.first() {
            subscription.leave(self.incoming.addrs.remote.ip().into(), endpoint);
        }
    }
}

impl Reported {
    /// Returns the addresses of the connection.
    pub(super) fn addrs(&self) -> &AddrPair {
        &self.incoming.addrs
    }

    /// Reports the connect request to the first candidate. Fails if there is none, or if it does
    /// not take the request. May sleep.
    fn report(&self, token: usize) -> Result {
        self.incoming
            .candidates
            .first()
            .ok_or(ENOENT)?
            .report_event(&CmEvent::ConnectRequest {
                local: self.incoming.addrs.local,
                remote: self.incoming.addrs.remote,
                // Each of the peer's depths limits the other one on this side.
                offer: Offer {
                    ird: self.responder.peer_ird().unwrap_or(limits::MAX_READS),
                    ord: self.responder.peer_ord().unwrap_or(limits::MAX_READS),
                    private_data: self.responder.private_data(),
                },
                token,
            })
    }

    /// Removes the first candidate. Returns whether there is another.
    fn next_candidate(&mut self) -> bool {
        let candidates = &mut self.incoming.candidates;

        if !candidates.is_empty() {
            // It is in range.
            let _ = candidates.remove(0);
        }
        !candidates.is_empty()
    }
}

/// Takes a connection over from a listener, for one of `candidates`, which are all of `dev`. Resets
/// the connection if that fails. May sleep.
pub(super) fn incoming(
    dev: &Arc<CmDevice>,
    connection: Connection,
    candidates: KVec<Arc<Subscription>>,
) -> Result {
    let made = Request::new(dev, &connection, candidates)
        .and_then(|request| Ok((Endpoint::new(dev)?, request)));
    let (endpoint, request) = match made {
        Ok(made) => made,
        Err(e) => {
            connection.abort();
            return Err(e);
        }
    };

    let mut phase = endpoint.phase.lock();
    let begun = match dev.add(endpoint.token, Member::Endpoint(endpoint.clone())) {
        Ok(()) => endpoint
            .set_connection(connection)
            .and_then(|()| request.enter(&endpoint)),
        Err(e) => {
            connection.abort();
            Err(e)
        }
    };
    if begun.is_ok() {
        *phase = Phase::AwaitRequest(request);
        endpoint.note_phase(CmPhase::New, &phase);
    }
    endpoint.proceed(phase, begun.map_err(EndReason::Local))
}

impl Endpoint {
    /// Continues with a connection that is not accepted yet. May sleep.
    pub(super) fn step_accept(self: &Arc<Self>, phase: Phase) -> Step {
        if self.events.has(PendingEvent::Evicted) {
            return Step::End(phase, End::abort(EndReason::Evicted));
        }
        match phase {
            Phase::AwaitRequest(request) => self.receive_request(request),
            Phase::Reported(_) => {
                // The initiator must not send before the Reply, but it may give up.
                match self.link.state() {
                    LinkState::Established => Step::Next(phase),
                    _ => Step::End(phase, End::abort(EndReason::Closed(ECONNRESET))),
                }
            }
            phase => Step::Next(phase),
        }
    }

    /// Receives the Request, or a part of it. May sleep.
    fn receive_request(&self, mut request: KBox<Request>) -> Step {
        match self.receive_frame(&mut request.reader) {
            Ok(true) => {
                // It is not half-open any more.
                request.leave(self);
                self.check_request(request)
            }
            Ok(false) => Step::Next(Phase::AwaitRequest(request)),
            Err(reason) => Step::End(Phase::AwaitRequest(request), End::abort(reason)),
        }
    }

    /// Checks the Request, and reports it to iw_cm if it is valid. May sleep.
    fn check_request(&self, mut request: KBox<Request>) -> Step {
        let responder = match Responder::request(&request.reader, &self.dev.settings.policy()) {
            Ok(responder) => responder,
            Err(refusal) => {
                let reason = EndReason::Startup(refusal.error);

                return self.refuse(Phase::AwaitRequest(request), refusal.reply, reason);
            }
        };
        let reported = Reported {
            incoming: request.incoming.take(),
            responder,
            deadline: self.accept_deadline(),
        };

        match KBox::new(reported, GFP_KERNEL) {
            // iw_cm would get only a part of the private data.
            Ok(reported) if reported.responder.private_data().len() > CmId::PRIVATE_DATA_MAX => {
                self.reject_with(reported, &[], EndReason::Local(EMSGSIZE))
            }
            Ok(reported) => self.report_request(reported),
            Err(e) => Step::End(
                Phase::AwaitRequest(request),
                End::abort(EndReason::Local(e.into())),
            ),
        }
    }

    /// Asks the candidates in turn until one takes the connect request. May sleep.
    fn report_request(&self, mut reported: KBox<Reported>) -> Step {
        loop {
            if reported.report(self.token).is_ok() {
                return Step::Next(Phase::Reported(reported));
            }
            if !reported.next_candidate() {
                // All have closed, or their backlogs are full.
                return self.reject_with(reported, &[], EndReason::Rejected);
            }
        }
    }

    /// When the consumer has to have decided. iw_cm may have to drop a request that it has taken,
    /// for lack of memory for a new id, without an event.
    fn accept_deadline(&self) -> Deadline {
        Deadline::new(self.dev.settings.accept_time())
    }

    /// Sends a rejecting Reply, and ends the connection for `reason`. May sleep.
    pub(super) fn reject_with(
        &self,
        reported: KBox<Reported>,
        private_data: &[u8],
        reason: EndReason,
    ) -> Step {
        let reply = reported.responder.reject(private_data).ok();

        self.refuse(Phase::Reported(reported), reply, reason)
    }

    /// Ends a connection that is not accepted, after a Reply if there is one. May sleep.
    fn refuse(&self, phase: Phase, reply: Option<OutFrame>, reason: EndReason) -> Step {
        let sent = reply.is_some_and(|reply| self.send_frame(reply.as_bytes()).is_ok());
        let end = match sent {
            true => End::graceful(reason),
            false => End::abort(reason),
        };

        Step::End(phase, end)
    }

    /// Accepts, as [`CmOperations::accept`](rdma::iw::CmOperations::accept) says. May sleep.
    pub(super) fn accept(
        self: &Arc<Self>,
        qp: &Arc<Qp>,
        id: &CmId,
        param: &ConnParam<'_>,
    ) -> Result {
        self.step(&mut self.phase.lock(), |phase| match phase {
            Phase::Reported(reported) => self.accept_reported(reported, qp, id, param),
            phase => (Step::Next(phase), Err(ECONNRESET)),
        })
    }

    fn accept_reported(
        self: &Arc<Self>,
        reported: KBox<Reported>,
        qp: &Arc<Qp>,
        id: &CmId,
        param: &ConnParam<'_>,
    ) -> (Step, Result) {
        // Until the Reply is sent, a rejecting one can be sent instead.
        let (reply, parameters) = match self.prepare(&reported.responder, qp, param) {
            Ok(prepared) => prepared,
            Err(e) => return (self.reject_with(reported, &[], EndReason::Local(e)), Err(e)),
        };
        let started = self
            .send_frame(reply.as_bytes())
            .and_then(|()| self.start(&parameters, Role::Responder, reported.incoming.addrs));
        if let Err(e) = started {
            let end = End::abort(EndReason::link(e));

            return (Step::End(Phase::Reported(reported), end), Err(e));
        }

        // It cannot fail any more, so iw_cm gets its event in any case.
        let id = ARef::from(id);
        let depths = Offer {
            ird: parameters.ird,
            ord: parameters.ord,
            private_data: &[],
        };
        let next = match parameters.rtr {
            Some(_) => Phase::AwaitFirst {
                id,
                depths,
                deadline: Deadline::new(self.dev.settings.startup_time()),
            },
            None => self.established(id, depths),
        };
        (Step::Next(next), Ok(()))
    }

    /// Makes the Reply that accepts, and attaches the queue pair. May sleep.
    fn prepare(
        self: &Arc<Self>,
        responder: &Responder,
        qp: &Arc<Qp>,
        param: &ConnParam<'_>,
    ) -> Result<(OutFrame, Parameters)> {
        check_depths(param)?;
        let accepted = responder
            .accept(param.ird, param.ord, param.private_data)
            .map_err(|_| EINVAL)?;

        self.attach(qp)?;
        Ok(accepted)
    }

    /// Ends the connection that was accepted by `id`, as
    /// [`CmOperations::abandon`](rdma::iw::CmOperations::abandon) says. May sleep.
    pub(super) fn abandon_accept(self: &Arc<Self>, id: &CmId) -> bool {
        let mut phase = self.phase.lock();
        let (own, established) = match &*phase {
            Phase::AwaitFirst { id, .. } => (id, false),
            Phase::Rdma { id, .. } => (id, true),
            // It has ended, and the queue pair may have another connection by now.
            _ => return true,
        };

        if !core::ptr::eq(&**own, id) {
            // As above.
            return true;
        }
        let reason = match established {
            true => EndReason::Local(ECONNABORTED),
            false => EndReason::Abandoned,
        };
        self.end(&mut phase, &End::abort(reason));
        established
    }

    /// Rejects, as [`CmOperations::reject`](rdma::iw::CmOperations::reject) says. May sleep.
    pub(super) fn reject(self: &Arc<Self>, private_data: &[u8]) -> Result {
        self.step(&mut self.phase.lock(), |phase| match phase {
            Phase::Reported(reported) => (self.reject_reported(reported, private_data), Ok(())),
            phase => (Step::Next(phase), Err(ECONNRESET)),
        })
    }

    fn reject_reported(
        self: &Arc<Self>,
        mut reported: KBox<Reported>,
        private_data: &[u8],
    ) -> Step {
        // rdma_cm rejects for a consumer that listens on all devices, but in another network
        // namespace: it must not accept. Another candidate may be able to.
        if private_data.is_empty() && reported.next_candidate() {
            reported.deadline = self.accept_deadline();
            self.report_request(reported)
        } else {
            self.reject_with(reported, private_data, EndReason::Rejected)
        }
    }
}
