// SPDX-License-Identifier: GPL-2.0

//! The side that is connected to.

use super::{
    connect::check_depths,
    deadline::Deadline,
    device::Member,
    endpoint::{End, Endpoint, Inner, Phase},
    half_open::Source,
    listen::Subscription,
    pending::PendingEvent,
    CmDevice, Role,
};
use crate::{limits, qp::Qp};
use iwarp::startup::{Kind, Reader, Responder};
use kernel::{
    prelude::*,
    sync::{aref::ARef, Arc},
};
use net::{addr, Socket, TcpState};
use rdma::iw::{CmId, ConnParam, Event, Offer};

/// What a responder needs until it is connected.
pub(super) struct Request {
    reader: Reader,
    responder: Option<Responder>,
    /// Who may be asked for the connection. The first one is the one that is.
    candidates: KVec<Arc<Subscription>>,
}

impl Request {
    /// The connection, which comes from `source`, waits for nobody's decision any more.
    pub(super) fn leave(&self, source: Source, endpoint: &Endpoint) {
        if let Some(subscription) = self.candidates.first() {
            subscription.leave(source, endpoint);
        }
    }
}

/// Takes a connection over from a listener, for one of `candidates`, all of them of `dev`. The
/// connection is reset if that fails. May sleep.
pub(super) fn incoming(
    dev: &Arc<CmDevice>,
    socket: Socket,
    candidates: KVec<Arc<Subscription>>,
) -> Result {
    let (endpoint, subscription) = match respond(dev, &socket, candidates) {
        Ok(made) => made,
        Err(e) => {
            socket.abort();
            return Err(e);
        }
    };

    let inner = endpoint.inner.lock();
    let begun = match dev.add(endpoint.token, Member::Endpoint(endpoint.clone())) {
        Ok(()) => endpoint
            .set_socket(socket)
            .and_then(|()| subscription.enter(inner.remote.ip().into(), &endpoint)),
        Err(e) => {
            socket.abort();
            Err(e)
        }
    };
    endpoint.proceed(inner, begun)
}

/// Makes the endpoint for a connection that has come, and finds who is to be asked for it. May
/// sleep.
fn respond(
    dev: &Arc<CmDevice>,
    socket: &Socket,
    candidates: KVec<Arc<Subscription>>,
) -> Result<(Arc<Endpoint>, Arc<Subscription>)> {
    let local = addr::unmapped(socket.local_addr()?);
    let remote = addr::unmapped(socket.peer_addr()?);
    let subscription = candidates.first().ok_or(ECONNREFUSED)?.clone();
    let request = Request {
        reader: Reader::new(Kind::Request),
        responder: None,
        candidates,
    };
    let endpoint = Endpoint::new(
        dev,
        Role::Responder,
        Inner {
            phase: Phase::AwaitRequest,
            id: None,
            deadline: Some(Deadline::new(dev.settings.startup_time())),
            local,
            remote,
            depths: Offer::default(),
            opening: None,
            request: Some(KBox::new(request, GFP_KERNEL)?),
            ending: None,
        },
    )?;

    Ok((endpoint, subscription))
}

impl Endpoint {
    /// Goes on with a connection that is not accepted yet. May sleep.
    pub(super) fn step_accept(self: &Arc<Self>, inner: &mut Inner) {
        if self.events.has(PendingEvent::Evicted) {
            return self.end(inner, &End::abort(ECONNABORTED));
        }
        if inner.phase == Phase::Reported {
            // The initiator has nothing to send now, but may give up.
            let state = self.with_socket(|socket| Ok(socket.state()));
            if state != Ok(TcpState::Established) {
                self.end(inner, &End::abort(ECONNRESET));
            }
            return;
        }

        let Some(mut request) = inner.request.take() else {
            return;
        };
        let complete = self.receive_frame(&mut request.reader);
        match complete {
            Ok(true) => {
                // It is not silent any more.
                request.leave(inner.remote.ip().into(), self);
                let judged = Responder::request(&request.reader, &self.dev.settings.policy());

                inner.deadline = None;
                inner.request = Some(request);
                match judged {
                    Ok(responder) => self.requested(inner, responder),
                    Err(refusal) => {
                        let reply = refusal.reply.as_ref().map(|reply| reply.as_bytes());
                        self.refuse(inner, reply);
                    }
                }
            }
            Ok(false) => inner.request = Some(request),
            Err(e) => {
                inner.request = Some(request);
                self.end(inner, &End::abort(e));
            }
        }
    }

    /// There is a valid Request.
    fn requested(self: &Arc<Self>, inner: &mut Inner, responder: Responder) {
        let too_long = responder.private_data().len() > CmId::PRIVATE_DATA_MAX;

        if let Some(request) = &mut inner.request {
            request.responder = Some(responder);
        }
        if too_long {
            // iw_cm could be told a part of the private data only.
            self.reject_with(inner, &[]);
        } else {
            self.report(inner);
        }
    }

    /// Asks the candidates in turn, until there is one that wants to decide. May sleep.
    fn report(self: &Arc<Self>, inner: &mut Inner) {
        inner.phase = Phase::Reported;
        // iw_cm may have to drop what it has taken, and does not say so: no memory for a new id.
        inner.deadline = Some(Deadline::new(self.dev.settings.accept_time()));
        while let Some(request) = &inner.request {
            let (Some(responder), Some(subscription)) =
                (&request.responder, request.candidates.first())
            else {
                break;
            };
            let event = Event::ConnectRequest {
                local: inner.local,
                remote: inner.remote,
                // Each depth is the most that the other one can become on this side.
                offer: Offer {
                    ird: responder.peer_ird().unwrap_or(limits::MAX_READS),
                    ord: responder.peer_ord().unwrap_or(limits::MAX_READS),
                    private_data: responder.private_data(),
                },
                token: self.token,
            };

            if subscription.tell(&event).is_ok() {
                return;
            }
            self.next_candidate(inner);
        }
        // None of them wants it, or their backlogs are full.
        self.reject_with(inner, &[]);
    }

    /// The candidate that was asked does not want the connection. Returns whether there is another.
    fn next_candidate(&self, inner: &mut Inner) -> bool {
        let Some(request) = &mut inner.request else {
            return false;
        };

        if !request.candidates.is_empty() {
            // It is there.
            let _ = request.candidates.remove(0);
        }
        !request.candidates.is_empty()
    }

    /// Sends a Reply that rejects, and ends the connection.
    pub(super) fn reject_with(self: &Arc<Self>, inner: &mut Inner, private_data: &[u8]) {
        let request = inner.request.take();
        let responder = request
            .as_ref()
            .and_then(|request| request.responder.as_ref());
        let reply = responder.and_then(|responder| responder.reject(private_data).ok());

        self.refuse(inner, reply.as_ref().map(|reply| reply.as_bytes()));
    }

    /// Ends a connection that does not come about, with a Reply if there is one.
    fn refuse(self: &Arc<Self>, inner: &mut Inner, reply: Option<&[u8]>) {
        let sent = reply.is_some_and(|reply| self.send_frame(reply).is_ok());
        let end = match sent {
            true => End::graceful(ECONNREFUSED),
            false => End::abort(ECONNREFUSED),
        };

        self.end(inner, &end);
    }

    /// Accepts, as [`CmOperations::accept`](rdma::iw::CmOperations::accept) says. May sleep.
    pub(super) fn accept(
        self: &Arc<Self>,
        qp: &Arc<Qp>,
        id: &CmId,
        param: &ConnParam<'_>,
    ) -> Result {
        let mut inner = self.inner.lock();

        if inner.phase != Phase::Reported {
            return Err(ECONNRESET);
        }
        let Some(request) = inner.request.take() else {
            return Err(ECONNRESET);
        };
        let Some(responder) = &request.responder else {
            return Err(ECONNRESET);
        };

        // As long as the Reply is not sent the peer can be told.
        let prepared = check_depths(param).and_then(|()| {
            let accepted = responder
                .accept(param.ird, param.ord, param.private_data)
                .map_err(|_| EINVAL)?;

            self.attach(qp)?;
            Ok(accepted)
        });
        let (reply, parameters) = match prepared {
            Ok(accepted) => accepted,
            Err(e) => {
                let reply = responder.reject(&[]).ok();

                self.refuse(&mut inner, reply.as_ref().map(|reply| reply.as_bytes()));
                return Err(e);
            }
        };
        let started = self
            .send_frame(reply.as_bytes())
            .and_then(|()| self.start(&parameters));
        if let Err(e) = started {
            self.end(&mut inner, &End::abort(e));
            return Err(e);
        }

        // It cannot fail any more: iw_cm is owed the event.
        inner.id = Some(ARef::from(id));
        inner.depths = Offer {
            ird: parameters.ird,
            ord: parameters.ord,
            private_data: &[],
        };
        if parameters.rtr.is_some() {
            inner.phase = Phase::AwaitFirst;
            inner.deadline = Some(Deadline::new(self.dev.settings.startup_time()));
        } else {
            self.established(&mut inner);
        }
        Ok(())
    }

    /// Ends the connection that was accepted by `id`, as
    /// [`CmOperations::abandon`](rdma::iw::CmOperations::abandon) says. May sleep.
    pub(super) fn abandon(self: &Arc<Self>, id: &CmId) -> bool {
        let mut inner = self.inner.lock();

        if !inner
            .id
            .as_deref()
            .is_some_and(|own| core::ptr::eq(own, id))
        {
            // It has ended, and the queue pair may have another connection by now.
            return true;
        }
        let reported = inner.phase != Phase::AwaitFirst;
        if !reported {
            inner.id = None;
        }
        self.end(&mut inner, &End::abort(ECONNABORTED));
        reported
    }

    /// Tells iw_cm that the connection is there.
    pub(super) fn established(&self, inner: &mut Inner) {
        inner.phase = Phase::Rdma;
        inner.deadline = None;
        // It is always taken: iw_cm has set room for it aside.
        let _ = Self::tell(
            inner,
            &Event::Established {
                status: Ok(()),
                offer: inner.depths,
            },
        );
    }

    /// Rejects, as [`CmOperations::reject`](rdma::iw::CmOperations::reject) says. May sleep.
    pub(super) fn reject(self: &Arc<Self>, private_data: &[u8]) -> Result {
        let mut inner = self.inner.lock();

        if inner.phase != Phase::Reported {
            return Err(ECONNRESET);
        }
        // A consumer in another network namespace, which listens on all devices, cannot accept;
        // rdma_cm rejects for it. Then there may be one that can.
        if private_data.is_empty() && self.next_candidate(&mut inner) {
            self.report(&mut inner);
        } else {
            self.reject_with(&mut inner, private_data);
        }
        Ok(())
    }
}
