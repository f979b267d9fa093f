// SPDX-License-Identifier: GPL-2.0

//! The startup as responder, by the lower layer: MPA's frames over TCP, session control over SCTP.

use super::{
    frame::new_reader,
    incoming::{AwaitedRequest, Responder, ValidRequest},
    initiator::{check_support, copy_of, parameters},
    reason::EndReason,
    Endpoint,
};
use crate::link::{LinkState, Reorder, Transport};
use iwarp::{
    sctp::{SessionAction, SessionEvent},
    startup::{self, Kind, OutFrame, Parameters, Policy},
};
use kernel::{prelude::*, sync::Arc};
use rdma::iw::ConnParam;

/// The number of addresses that a peer may have: riw connects from 8 at most.
const PEER_ADDRS_MAX: u32 = 8;

/// The outcome of a request that is complete.
pub(super) enum ReceivedRequest {
    /// It is valid.
    Request(Responder),
    /// It is not. `answered`: the peer has been sent an answer.
    Refused { answered: bool, reason: EndReason },
}

impl AwaitedRequest {
    /// Waits on the link of `endpoint`, which has its connection. May sleep.
    pub(super) fn new(endpoint: &Endpoint, policy: &Policy) -> Result<Self, EndReason> {
        match endpoint
            .link
            .with(|connection| Ok(connection.transport()))
            .map_err(EndReason::Local)?
        {
            Transport::Tcp => new_reader(Kind::Request)
                .map(Self::Mpa)
                .map_err(EndReason::Local),
            Transport::Sctp => {
                check_support(endpoint, PEER_ADDRS_MAX)?;
                endpoint
                    .link
                    .listen_session(policy.rtr)
                    .map_err(EndReason::Local)?;
                Ok(Self::Sctp)
            }
        }
    }

    /// Receives the request, or a part of it. May sleep. Returns `None` if it is not complete, or why
    /// it never will be.
    pub(super) fn receive(
        &mut self,
        endpoint: &Arc<Endpoint>,
        policy: &Policy,
    ) -> Result<Option<ReceivedRequest>, EndReason> {
        match self {
            Self::Mpa(reader) => {
                if !endpoint.receive_frame(reader)? {
                    return Ok(None);
                }
                Ok(Some(match startup::Responder::request(reader, policy) {
                    Ok(request) => {
                        ReceivedRequest::valid(ValidRequest::Mpa(request), reader.private_data())?
                    }
                    Err(refusal) => ReceivedRequest::Refused {
                        answered: refusal
                            .reply
                            .is_some_and(|reply| endpoint.send_frame(reply.parts()).is_ok()),
                        reason: EndReason::Startup(refusal.error),
                    },
                }))
            }
            Self::Sctp => endpoint
                .next_action(|action| take(endpoint, action))?
                .transpose(),
        }
    }
}

impl ReceivedRequest {
    /// Takes a valid request, and copies its private data. May sleep.
    fn valid(request: ValidRequest, private: &[u8]) -> Result<Self, EndReason> {
        let private = copy_of(private).map_err(EndReason::Local)?;

        Ok(Self::Request(Responder { request, private }))
    }
}

/// Converts the action that the session takes for the first chunk. May sleep.
fn take(endpoint: &Endpoint, action: SessionAction<'_>) -> Result<ReceivedRequest, EndReason> {
    match action {
        SessionAction::Request { request, private } => {
            ReceivedRequest::valid(ValidRequest::Sctp(request), private)
        }
        SessionAction::Refuse { chunk, error } => Ok(ReceivedRequest::Refused {
            answered: endpoint.link.send_control(&chunk).is_ok(),
            reason: EndReason::Session(error),
        }),
        SessionAction::Abort(error) => Err(EndReason::Session(error)),
        // None of them is a responder's first one.
        _ => Err(EndReason::Local(EIO)),
    }
}

/// An answer that accepts and is not sent.
pub(super) enum Prepared<'a> {
    Mpa(OutFrame<'a>, Parameters),
    Sctp {
        ird: u32,
        ord: u32,
        private: &'a [u8],
    },
}

impl Responder {
    /// Checks that the connection still waits for the answer. May sleep. If the peer has sent a chunk that
    /// is not allowed now, returns the reason, and whether this side has answered that chunk.
    pub(super) fn check(
        &self,
        endpoint: &Arc<Endpoint>,
    ) -> Result<Option<(bool, EndReason)>, EndReason> {
        if let ValidRequest::Sctp(_) = self.request {
            let next = endpoint.next_action(|action| take(endpoint, action))?;

            match next.transpose()? {
                Some(ReceivedRequest::Refused { answered, reason }) => {
                    return Ok(Some((answered, reason)));
                }
                // The session reports one request.
                Some(ReceivedRequest::Request(_)) | None => {}
            }
        }
        match endpoint.link.state() {
            LinkState::Established => Ok(None),
            _ => Err(EndReason::Closed(ECONNRESET)),
        }
    }

    /// Returns the number of Read Requests that the peer accepts at a time, if it negotiates it.
    pub(super) fn peer_ird(&self) -> Option<u32> {
        match &self.request {
            ValidRequest::Mpa(mpa) => mpa.peer_ird(),
            ValidRequest::Sctp(request) => request.peer_ird(),
        }
    }

    /// Returns the number of Read Requests that the peer wants outstanding, if it negotiates it.
    pub(super) fn peer_ord(&self) -> Option<u32> {
        match &self.request {
            ValidRequest::Mpa(mpa) => mpa.peer_ord(),
            ValidRequest::Sctp(request) => request.peer_ord(),
        }
    }

    /// Prepares the answer that accepts. `EINVAL` if the private data does not fit.
    pub(super) fn accept<'a>(&self, param: &ConnParam<'a>) -> Result<Prepared<'a>> {
        let (ird, ord, private) = (param.ird, param.ord, param.private_data);

        Ok(match &self.request {
            ValidRequest::Mpa(mpa) => {
                let (reply, parameters) = mpa.accept(ird, ord, private).map_err(|_| EINVAL)?;
                Prepared::Mpa(reply, parameters)
            }
            ValidRequest::Sctp(_) => Prepared::Sctp { ird, ord, private },
        })
    }

    /// Sends the answer of a consumer that rejects. Returns whether it is sent. May sleep.
    pub(super) fn reject(&self, endpoint: &Endpoint, private: &[u8]) -> bool {
        match &self.request {
            ValidRequest::Mpa(mpa) => mpa
                .reject(private)
                .is_ok_and(|reply| endpoint.send_frame(reply.parts()).is_ok()),
            ValidRequest::Sctp(_) => answer(endpoint, SessionEvent::Reject { private }),
        }
    }

    /// Sends the answer for a consumer that does not decide. Returns whether it is sent. May sleep.
    ///
    /// Over SCTP that is a Terminate (RFC 5043, section 6.3). But an initiator that has sent an
    /// enhanced Initiate would take it for the answer of a peer that does not know it, and try a
    /// session without read depths. So it gets a Reject.
    pub(super) fn refuse(&self, endpoint: &Endpoint) -> bool {
        match &self.request {
            ValidRequest::Sctp(request) if !request.enhanced() => {
                answer(endpoint, SessionEvent::Refuse)
            }
            _ => self.reject(endpoint, &[]),
        }
    }
}

/// Sends an answer that does not accept. Returns whether it is sent. May sleep.
fn answer(endpoint: &Endpoint, event: SessionEvent<'_>) -> bool {
    endpoint.link.answer(event, Reorder::none()).is_ok()
}

impl Prepared<'_> {
    /// Sends the answer. May sleep. Returns the result of the negotiation.
    pub(super) fn send(self, endpoint: &Endpoint) -> Result<Parameters> {
        match self {
            Self::Mpa(reply, parameters) => {
                endpoint.send_frame(reply.parts())?;
                Ok(parameters)
            }
            Self::Sctp { ird, ord, private } => {
                let event = SessionEvent::Accept { ird, ord, private };
                let agreed = endpoint
                    .link
                    .answer(event, endpoint.reorder())?
                    .ok_or(EIO)?;

                Ok(parameters(&agreed))
            }
        }
    }
}
