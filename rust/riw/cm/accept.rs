// SPDX-License-Identifier: GPL-2.0

//! The side that accepts a connection.

use super::{
    incoming::{AwaitedRequest, Incoming, Reported, Request, Responder},
    member::Member,
    pending::PendingEvent,
    phase::{End, Phase, Step},
    reason::EndReason,
    responder::{Prepared, ReceivedRequest},
    subscription::Subscription,
    Endpoint,
};
use crate::{
    limits::{self, check_depths},
    link::{AddrPair, Connection, Deadline},
    qp::{Qp, Role},
};
use kernel::{
    prelude::*,
    sync::{aref::ARef, Arc},
};
use rdma::iw::{CmEvent, CmId, ConnParam, Offer};
use trace::CmPhase;

impl Request {
    /// Returns the addresses of the connection.
    pub(super) fn addrs(&self) -> &AddrPair {
        &self.incoming.addrs
    }

    /// Waits for the request on the link of `endpoint`, which has its connection. May sleep.
    fn new(endpoint: &Endpoint, incoming: Incoming) -> Result<KBox<Self>, EndReason> {
        let settings = &endpoint.dev.settings;
        let request = Self {
            incoming,
            awaited: AwaitedRequest::new(endpoint, &settings.policy())?,
            deadline: Deadline::new(settings.startup_time()),
        };

        KBox::new(request, GFP_KERNEL_ACCOUNT).map_err(|e| EndReason::Local(e.into()))
    }

    /// Adds the connection to the half-open ones of its subscription. May sleep.
    fn enter(&self, endpoint: &Arc<Endpoint>) -> Result {
        let Incoming {
            addrs,
            subscription,
        } = &self.incoming;

        subscription.enter(addrs.remote.ip().into(), endpoint.token, endpoint.clone())
    }

    /// Removes the connection from the half-open ones, if it is one of them. May sleep.
    pub(super) fn leave(&self, endpoint: &Endpoint) {
        let Incoming {
            addrs,
            subscription,
        } = &self.incoming;

        subscription.leave(addrs.remote.ip().into(), endpoint.token);
    }
}

impl Reported {
    /// Returns the addresses of the connection.
    pub(super) fn addrs(&self) -> &AddrPair {
        &self.incoming.addrs
    }

    /// Reports the connect request. Fails as [`Subscription::report_event`] does. May sleep.
    fn report(&self, token: usize) -> Result {
        self.incoming
            .subscription
            .report_event(&CmEvent::ConnectRequest {
                local: self.incoming.addrs.local,
                remote: self.incoming.addrs.remote,
                // Each of the peer's depths limits the other one on this side.
                offer: Offer {
                    ird: self.responder.peer_ird().unwrap_or(limits::MAX_READS),
                    ord: self.responder.peer_ord().unwrap_or(limits::MAX_READS),
                    private_data: &self.responder.private,
                },
                token,
            })
    }
}

/// Takes a connection over from a listener, for `subscription`. Resets the connection if that fails. May
/// sleep.
pub(super) fn incoming(connection: Connection, subscription: Arc<Subscription>) -> Result {
    let dev = subscription.dev.clone();
    let made = connection.addrs().and_then(|addrs| {
        let incoming = Incoming {
            addrs,
            subscription,
        };
        Ok((Endpoint::new(&dev, false)?, incoming))
    });
    let (endpoint, incoming) = match made {
        Ok(made) => made,
        Err(e) => {
            connection.abort();
            return Err(e);
        }
    };

    let mut phase = endpoint.phase.lock();
    let begun = match dev.add(endpoint.token, Member::Endpoint(endpoint.clone())) {
        Ok(()) => endpoint.await_request(connection, incoming),
        Err(e) => {
            connection.abort();
            Err(EndReason::Local(e))
        }
    };
    let begun = begun.map(|request| {
        *phase = Phase::AwaitRequest(request);
        endpoint.note_phase(CmPhase::New, &phase);
    });
    endpoint.proceed(phase, begun)
}

impl Endpoint {
    /// Gives the link its connection, and waits for the request. May sleep.
    fn await_request(
        self: &Arc<Self>,
        connection: Connection,
        incoming: Incoming,
    ) -> Result<KBox<Request>, EndReason> {
        self.set_connection(connection).map_err(EndReason::Local)?;
        let request = Request::new(self, incoming)?;

        request.enter(self).map_err(EndReason::Local)?;
        Ok(request)
    }

    /// Continues with a connection that is not accepted yet. May sleep.
    pub(super) fn step_accept(self: &Arc<Self>, phase: Phase) -> Step {
        if self.events.has(PendingEvent::Evicted) {
            return Step::End(phase, End::abort(EndReason::Evicted));
        }
        match phase {
            Phase::AwaitRequest(request) => self.receive_request(request),
            // The initiator must not send before the answer, but it may give up.
            Phase::Reported(reported) => match reported.responder.check(self) {
                Ok(None) => Step::Next(Phase::Reported(reported)),
                Ok(Some((answered, reason))) => {
                    refused(Phase::Reported(reported), answered, reason)
                }
                Err(reason) => Step::End(Phase::Reported(reported), End::abort(reason)),
            },
            phase => Step::Next(phase),
        }
    }

    /// Receives the request, or a part of it. May sleep.
    fn receive_request(self: &Arc<Self>, mut request: KBox<Request>) -> Step {
        let policy = self.dev.settings.policy();
        let received = match request.awaited.receive(self, &policy) {
            Ok(None) => return Step::Next(Phase::AwaitRequest(request)),
            Ok(Some(received)) => received,
            Err(reason) => return Step::End(Phase::AwaitRequest(request), End::abort(reason)),
        };

        // It is not half-open any more.
        request.leave(self);
        // A chunk behind the request in the same packet causes no event of its own.
        self.kick();
        match received {
            ReceivedRequest::Request(responder) => self.consider(request, responder),
            ReceivedRequest::Refused { answered, reason } => {
                refused(Phase::AwaitRequest(request), answered, reason)
            }
        }
    }

    /// Reports a valid request to iw_cm. May sleep.
    fn consider(&self, request: KBox<Request>, responder: Responder) -> Step {
        let reported = Reported {
            incoming: request.incoming.clone(),
            responder,
            deadline: self.accept_deadline(),
        };

        match KBox::new(reported, GFP_KERNEL_ACCOUNT) {
            // iw_cm would get only a part of the private data.
            Ok(reported) if reported.responder.private.len() > CmId::PRIVATE_DATA_MAX => {
                self.refuse_with(reported, EndReason::Local(EMSGSIZE))
            }
            Ok(reported) => self.report_request(reported),
            Err(e) => Step::End(
                Phase::AwaitRequest(request),
                End::abort(EndReason::Local(e.into())),
            ),
        }
    }

    /// Offers the connect request to the subscription. May sleep.
    fn report_request(&self, reported: KBox<Reported>) -> Step {
        match reported.report(self.token) {
            Ok(()) => Step::Next(Phase::Reported(reported)),
            // It has closed, or its backlog is full.
            Err(_) => self.refuse_with(reported, EndReason::Rejected),
        }
    }

    /// When the consumer has to have decided. iw_cm may have to drop a request that it has taken,
    /// for lack of memory for a new id, without an event.
    fn accept_deadline(&self) -> Deadline {
        Deadline::new(self.dev.settings.accept_time())
    }

    /// Refuses a request on which no consumer has decided, and ends the connection for `reason`. May
    /// sleep.
    pub(super) fn refuse_with(&self, reported: KBox<Reported>, reason: EndReason) -> Step {
        let answered = reported.responder.refuse(self);

        refused(Phase::Reported(reported), answered, reason)
    }

    /// Accepts, as [`CmOperations::accept`](rdma::iw::CmOperations::accept) says. May sleep.
    pub(super) fn accept_by(
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
        let prepared = match self.prepare(&reported.responder, qp, param) {
            Ok(prepared) => prepared,
            Err(e) => return (self.refuse_with(reported, EndReason::Local(e)), Err(e)),
        };
        let started = prepared.send(self).and_then(|parameters| {
            self.start(&parameters, Role::Responder, reported.incoming.addrs)?;
            Ok(parameters)
        });
        let parameters = match started {
            Ok(parameters) => parameters,
            Err(e) => {
                let end = End::abort(EndReason::link(e));

                return (Step::End(Phase::Reported(reported), end), Err(e));
            }
        };

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

    /// Prepares the answer that accepts, and attaches the queue pair. May sleep.
    fn prepare<'a>(
        self: &Arc<Self>,
        responder: &Responder,
        qp: &Arc<Qp>,
        param: &ConnParam<'a>,
    ) -> Result<Prepared<'a>> {
        check_depths(param)?;
        let prepared = responder.accept(param)?;

        self.attach(qp)?;
        Ok(prepared)
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
    pub(super) fn reject_by(self: &Arc<Self>, private_data: &[u8]) -> Result {
        self.step(&mut self.phase.lock(), |phase| match phase {
            Phase::Reported(reported) => {
                let answered = reported.responder.reject(self, private_data);
                let phase = Phase::Reported(reported);

                (refused(phase, answered, EndReason::Rejected), Ok(()))
            }
            phase => (Step::Next(phase), Err(ECONNRESET)),
        })
    }
}

/// Ends a connection that is not accepted. `answered`: the peer has been sent an answer, which it has
/// to get.
fn refused(phase: Phase, answered: bool, reason: EndReason) -> Step {
    let end = match answered {
        true => End::graceful(reason),
        false => End::abort(reason),
    };

    Step::End(phase, end)
}
