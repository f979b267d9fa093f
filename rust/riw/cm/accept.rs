// SPDX-License-Identifier: GPL-2.0

//! The side that accepts a connection.

use super::{
    backlog::{QueuedRequest, Share},
    end::End,
    endpoint::{Phase, Request, Undecided},
    pending::PendingEvent,
    reason::EndReason,
    steps::Step,
    Endpoint,
};
use crate::{
    limits,
    link::{Deadline, Prepared, ReceivedRequest, Responder},
    qp::{Qp, Role},
    stream::StartRoom,
};
use kernel::{
    prelude::*,
    sync::{aref::ARef, Arc},
};
use rdma::iw::{CmEvent, CmId, ConnParam, Offer, Rejection};

impl Undecided {
    /// Reports the connect request. `ENOMEM`; otherwise fails as
    /// [`Subscription::report_event`](super::subscription::Subscription::report_event) does. May
    /// sleep.
    fn report(&mut self, token: usize) -> Result {
        let subscription = &self.incoming.subscription;
        let (peer_ird, peer_ord) = self.responder.peer_depths();

        self.report = Some(subscription.backlog.report()?);
        subscription.report_event(&CmEvent::ConnectRequest {
            local: self.incoming.addrs.local,
            remote: self.incoming.addrs.remote,
            // Each of the peer's depths limits the other one on this side.
            offer: Offer {
                ird: peer_ird.unwrap_or(limits::MAX_READS),
                ord: peer_ord.unwrap_or(limits::MAX_READS),
                private_data: &self.responder.private_data,
            },
            token,
        })
    }

    /// The consumer has decided on the request: another one may take its place. May sleep.
    fn decided(&mut self) {
        if let Some(report) = self.report.take() {
            self.backlog().decided(report);
        }
    }

    /// The consumer does not have the request. May sleep.
    fn not_taken(&mut self) {
        if let Some(report) = self.report.take() {
            self.backlog().take_back(report);
        }
    }

    /// Removes the connection from the queue and from the half-open ones, if it is there. May
    /// sleep.
    pub(super) fn leave(&self, endpoint: &Endpoint) {
        self.backlog().dequeue(self.place);
        self.incoming.leave(endpoint);
    }

    fn backlog(&self) -> &Share {
        &self.incoming.subscription.backlog
    }
}

impl Endpoint {
    /// Continues with a connection that is not accepted yet. May sleep.
    pub(super) fn step_accept(self: &Arc<Self>, phase: Phase) -> Step {
        let evicted = self.events.has(PendingEvent::Evicted);

        match phase {
            Phase::AwaitRequest(_) if evicted => Step::End(phase, End::abort(EndReason::Evicted)),
            Phase::Queued(undecided) if evicted => {
                self.refuse_with(undecided, Phase::Queued, EndReason::Evicted)
            }
            Phase::AwaitRequest(request) => self.receive_request(request),
            Phase::Queued(undecided) => self.check(undecided, Phase::Queued),
            // Not evicted: the consumer may have stopped listening just to accept this one.
            Phase::Reported(undecided) => self.check(undecided, Phase::Reported),
            phase => Step::Next(phase),
        }
    }

    /// Checks a connection in `phase`: the initiator must not send before the answer, but it may
    /// give up. May sleep.
    fn check(self: &Arc<Self>, undecided: KBox<Undecided>, phase: UndecidedPhase) -> Step {
        match undecided.responder.check(&self.link, self) {
            Ok(None) => Step::Next(phase(undecided)),
            Ok(Some((answered, fault))) => {
                refused(phase(undecided), answered, EndReason::Startup(fault))
            }
            Err(failure) => Step::End(phase(undecided), End::abort(failure.into())),
        }
    }

    /// Receives the request, or a part of it. May sleep.
    fn receive_request(self: &Arc<Self>, mut request: KBox<Request>) -> Step {
        let (policy, deadline) = (self.dev.settings.policy(), request.deadline);
        let received = match (request.awaited).receive(&self.link, self, &policy, &deadline) {
            Ok(None) => return Step::Next(Phase::AwaitRequest(request)),
            Ok(Some(received)) => received,
            Err(failure) => {
                return Step::End(Phase::AwaitRequest(request), End::abort(failure.into()));
            }
        };

        // A chunk behind the request in the same packet causes no event of its own.
        self.kick();
        match received {
            ReceivedRequest::Request(responder) => self.consider(request, responder),
            ReceivedRequest::Refused { answered, reason } => refused(
                Phase::AwaitRequest(request),
                answered,
                EndReason::Startup(reason),
            ),
        }
    }

    /// Reports a valid request to iw_cm, or queues it behind others. May sleep.
    fn consider(self: &Arc<Self>, request: KBox<Request>, responder: Responder) -> Step {
        let undecided = Undecided {
            incoming: request.incoming.clone(),
            responder,
            deadline: self.accept_deadline(),
            place: request.incoming.subscription.backlog.place(),
            report: None,
        };

        match KBox::new(undecided, GFP_KERNEL_ACCOUNT) {
            // iw_cm would get only a part of the private data.
            Ok(undecided) if undecided.responder.private_data.len() > CmId::PRIVATE_DATA_MAX => {
                self.refuse_with(undecided, Phase::Queued, EndReason::Local(EMSGSIZE))
            }
            Ok(undecided) if undecided.backlog().is_free() => self.report_request(undecided),
            Ok(undecided) => self.enqueue(undecided),
            Err(e) => Step::End(
                Phase::AwaitRequest(request),
                End::abort(EndReason::Local(e.into())),
            ),
        }
    }

    /// Reports a request that is half-open. Queues it if iw_cm has no room, or if the call that
    /// listens has not returned. May sleep.
    fn report_request(self: &Arc<Self>, mut undecided: KBox<Undecided>) -> Step {
        match undecided.report(self.token) {
            Ok(()) => {
                undecided.leave(self);
                undecided.backlog().offer_next();
                Step::Next(Phase::Reported(undecided))
            }
            // It has closed.
            Err(e) if e == ENOENT => {
                undecided.not_taken();
                self.refuse_with(undecided, Phase::Queued, EndReason::Rejected)
            }
            Err(_) => {
                undecided.not_taken();
                self.offer_later(undecided)
            }
        }
    }

    /// Queues a request that is half-open and that the consumer has not taken. May sleep.
    fn offer_later(self: &Arc<Self>, undecided: KBox<Undecided>) -> Step {
        undecided.backlog().back_off();
        self.enqueue(undecided)
    }

    /// Queues a request that is half-open. May sleep.
    fn enqueue(self: &Arc<Self>, undecided: KBox<Undecided>) -> Step {
        match undecided.backlog().enqueue(undecided.place, self.clone()) {
            Ok(()) => Step::Next(Phase::Queued(undecided)),
            Err(e) => self.refuse_with(undecided, Phase::Queued, EndReason::Local(e)),
        }
    }

    /// When the consumer has to have decided. The backlog may stay full, and iw_cm may have to drop
    /// a request that it has taken, for lack of memory for a new id, without an event.
    fn accept_deadline(&self) -> Deadline {
        Deadline::new(self.dev.settings.accept_time())
    }

    /// Refuses a request on which no consumer has decided, and ends the connection, which is in
    /// `phase`, for `reason`. May sleep.
    pub(super) fn refuse_with(
        &self,
        undecided: KBox<Undecided>,
        phase: UndecidedPhase,
        reason: EndReason,
    ) -> Step {
        let answered = undecided.responder.refuse(&self.link);

        refused(phase(undecided), answered, reason)
    }

    /// Accepts, as [`CmOperations::accept`](rdma::iw::CmOperations::accept) says. May sleep.
    pub(super) fn accept(
        self: &Arc<Self>,
        qp: &Arc<Qp>,
        id: &CmId,
        param: &ConnParam<'_>,
    ) -> Result {
        // Before the phase is locked.
        let room = qp.start_room(param, Role::Responder);

        self.step(&mut self.lock_phase(), |phase| match phase {
            Phase::Reported(undecided) => self.accept_reported(undecided, qp, id, param, room),
            phase => (Step::Next(phase), Err(ECONNRESET)),
        })
    }

    fn accept_reported(
        self: &Arc<Self>,
        mut reported: KBox<Undecided>,
        qp: &Arc<Qp>,
        id: &CmId,
        param: &ConnParam<'_>,
        room: Result<StartRoom>,
    ) -> (Step, Result) {
        reported.decided();
        // Until the Reply is sent, a rejecting one can be sent instead.
        let prepared =
            room.and_then(|room| Ok((self.prepare(&reported.responder, qp, param)?, room)));
        let (prepared, room) = match prepared {
            Ok(prepared) => prepared,
            Err(e) => {
                let step = self.refuse_with(reported, Phase::Reported, EndReason::Local(e));

                return (step, Err(e));
            }
        };
        let started = prepared
            .send(&self.link, self.dev.reorder(qp))
            .and_then(|parameters| {
                self.start(&parameters, Role::Responder, reported.incoming.addrs, room)?;
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
        let prepared = responder.accept(param.into())?;

        self.attach(qp)?;
        Ok(prepared)
    }

    /// Ends the connection that was accepted by `id`, as
    /// [`CmOperations::abandon`](rdma::iw::CmOperations::abandon) says. May sleep.
    pub(super) fn abandon_accept(self: &Arc<Self>, id: &CmId) -> bool {
        let mut phase = self.lock_phase();
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
    pub(super) fn reject(self: &Arc<Self>, rejection: &Rejection<'_>) -> Result {
        self.step(&mut self.lock_phase(), |phase| match phase {
            Phase::Reported(undecided) if rejection.by_handler => {
                (self.reject_by_handler(undecided), Ok(()))
            }
            Phase::Reported(undecided) => {
                let step = self.reject_reported(undecided, rejection.private_data);

                (step, Ok(()))
            }
            phase => (Step::Next(phase), Err(ECONNRESET)),
        })
    }

    fn reject_reported(&self, mut undecided: KBox<Undecided>, private_data: &[u8]) -> Step {
        undecided.decided();
        let answered = undecided.responder.reject(&self.link, private_data);

        refused(Phase::Reported(undecided), answered, EndReason::Rejected)
    }

    /// Handles a rejection of which riw cannot say whether the consumer has decided. If there was
    /// room when the request was reported, the backlog was not the reason. Otherwise queues the
    /// request in its old place. May sleep.
    fn reject_by_handler(self: &Arc<Self>, mut undecided: KBox<Undecided>) -> Step {
        if undecided.report.is_some_and(|report| report.had_room) {
            return self.reject_reported(undecided, &[]);
        }
        undecided.not_taken();
        if self.events.has(PendingEvent::Evicted) {
            return self.refuse_with(undecided, Phase::Queued, EndReason::Evicted);
        }
        match undecided.incoming.enter(self) {
            Ok(()) => self.offer_later(undecided),
            // The subscription has closed.
            Err(e) if e == ECONNREFUSED => {
                self.refuse_with(undecided, Phase::Queued, EndReason::Rejected)
            }
            Err(e) => self.refuse_with(undecided, Phase::Queued, EndReason::Local(e)),
        }
    }
}

impl QueuedRequest for Endpoint {
    fn offer(self: Arc<Self>) {
        let Some(mut phase) = self.try_lock_phase() else {
            return;
        };

        self.step_and_arm(&mut phase, |phase| match phase {
            // The work item of the eviction comes after this.
            Phase::Queued(undecided) if self.events.has(PendingEvent::Evicted) => {
                self.refuse_with(undecided, Phase::Queued, EndReason::Evicted)
            }
            Phase::Queued(undecided) => self.report_request(undecided),
            phase => Step::Next(phase),
        });
    }
}

/// [`Phase::Queued`] or [`Phase::Reported`].
pub(super) type UndecidedPhase = fn(KBox<Undecided>) -> Phase;

/// Ends a connection that is not accepted. `answered`: the peer has been sent an answer, which it
/// has to get.
fn refused(phase: Phase, answered: bool, reason: EndReason) -> Step {
    let end = match answered {
        true => End::graceful(reason),
        false => End::abort(reason),
    };

    Step::End(phase, end)
}
