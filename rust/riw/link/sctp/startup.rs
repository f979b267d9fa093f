// SPDX-License-Identifier: GPL-2.0

//! The startup by session control chunks (RFC 5043; RFC 6581, section 7).

use super::{
    super::{
        startup::{
            copy_of, Answer, PeerDepths, ReceivedRequest, StartupFailure, StartupFault, Terms,
            ValidRequest,
        },
        Link, LinkEvents, Reorder,
    },
    PeerSupport,
};
use crate::bounds::{INITIATOR_ADDRS_MAX, RESPONDER_ADDRS_MAX};
use iwarp::{
    negotiation::{Agreed, Request, Words},
    sctp::{Form, SessionAction, SessionEvent},
    startup::{Parameters, Policy},
};
use kernel::{prelude::*, sync::Arc};

/// The startup as initiator.
pub(crate) struct SctpStartup {
    form: Form,
    depths: (u32, u32),
    /// The private data of the Initiate.
    private: KVec<u8>,
    reorder: Reorder,
    /// The private data of the answer.
    reply: KVec<u8>,
    peer_depths: PeerDepths,
}

impl SctpStartup {
    pub(in crate::link) fn new(
        policy: &Policy,
        terms: Terms<'_>,
        reorder: Reorder,
    ) -> Result<Self> {
        Ok(Self {
            form: match policy.revision {
                1 => Form::Plain,
                _ => Form::Enhanced {
                    ird_max: policy.ird_max,
                },
            },
            depths: (terms.ird, terms.ord),
            private: copy_of(terms.private_data)?,
            reorder,
            reply: KVec::new(),
            peer_depths: (None, None),
        })
    }

    /// Sends an Initiate, if the peer supports DDP.
    pub(in crate::link) fn send_request(&self, link: &Link) -> Result<(), StartupFailure> {
        check_support(link, RESPONDER_ADDRS_MAX)?;
        self.initiate(link)
    }

    fn initiate(&self, link: &Link) -> Result<(), StartupFailure> {
        link.initiate(self.form, self.depths, &self.private, self.reorder.clone())
            .map_err(|e| StartupFailure::Link(if e == EAGAIN { ENOBUFS } else { e }))
    }

    pub(in crate::link) fn receive<T: LinkEvents>(
        &mut self,
        link: &Link,
        owner: &Arc<T>,
    ) -> Result<Option<Answer>, StartupFailure> {
        match next_action(link, owner, |action| self.take(action))?.transpose()? {
            None => Ok(None),
            Some(Next::Answer(answer)) => Ok(Some(answer)),
            Some(Next::RetryPlain) => {
                // The responder may know RFC 5043 only. Nothing of the old session is in flight.
                self.form = Form::Plain;
                self.initiate(link)?;
                Ok(None)
            }
        }
    }

    /// Converts the action that the session takes for a chunk.
    fn take(&mut self, action: SessionAction<'_>) -> Result<Next, StartupFailure> {
        Ok(Next::Answer(match action {
            SessionAction::Established { agreed, private } => {
                self.reply = copy_of(private).map_err(StartupFailure::Local)?;
                self.peer_depths = (agreed.peer_ird, agreed.peer_ord);
                Answer::Established(parameters(&agreed))
            }
            SessionAction::Rejected { words, private } => {
                self.reply = copy_of(private).map_err(StartupFailure::Local)?;
                self.peer_depths = words.map_or((None, None), |Words { depths, .. }| {
                    (depths.negotiated_ird(), depths.negotiated_ord())
                });
                Answer::Rejected
            }
            SessionAction::Refused { retry_plain: true } => return Ok(Next::RetryPlain),
            SessionAction::Refused { retry_plain: false } => {
                Answer::Failed(StartupFailure::Link(ECONNRESET))
            }
            SessionAction::Fail(error) => Answer::Withdraw {
                error,
                crc: false,
                markers: false,
                reason: StartupFault::Session(error).into(),
            },
            SessionAction::Abort(error) => Answer::Failed(StartupFault::Session(error).into()),
            // None of them is an initiator's without a connection.
            _ => Answer::Failed(StartupFailure::Local(EIO)),
        }))
    }

    pub(in crate::link) fn private_data(&self) -> &[u8] {
        &self.reply
    }

    pub(in crate::link) fn peer_depths(&self) -> PeerDepths {
        self.peer_depths
    }
}

/// The next step after a chunk that an initiator has received.
enum Next {
    Answer(Answer),
    RetryPlain,
}

/// Waits for an Initiate.
pub(crate) struct AwaitedInitiate(());

impl AwaitedInitiate {
    /// Begins a session as responder, if the peer supports DDP.
    pub(in crate::link) fn new(link: &Link, policy: &Policy) -> Result<Self, StartupFailure> {
        check_support(link, INITIATOR_ADDRS_MAX)?;
        link.listen_session(policy.rtr)
            .map(|()| Self(()))
            .map_err(StartupFailure::Local)
    }

    pub(in crate::link) fn receive<T: LinkEvents>(
        &self,
        link: &Link,
        owner: &Arc<T>,
    ) -> Result<Option<ReceivedRequest>, StartupFailure> {
        receive_request(link, owner)
    }
}

/// Receives an Initiate, or what follows it too early. Answers a chunk that is not allowed.
fn receive_request<T: LinkEvents>(
    link: &Link,
    owner: &Arc<T>,
) -> Result<Option<ReceivedRequest>, StartupFailure> {
    next_action(link, owner, |action| match action {
        SessionAction::Request { request, private } => {
            ReceivedRequest::valid(ValidRequest::Sctp(SctpResponder(request)), private)
        }
        SessionAction::Refuse { chunk, error } => Ok(ReceivedRequest::Refused {
            answered: link.send_control(&chunk).is_ok(),
            reason: StartupFault::Session(error),
        }),
        SessionAction::Abort(error) => Err(StartupFault::Session(error).into()),
        // None of them is a responder's first one.
        _ => Err(StartupFailure::Local(EIO)),
    })?
    .transpose()
}

/// A valid Initiate.
pub(crate) struct SctpResponder(Request);

impl SctpResponder {
    /// Checks that the peer has sent no chunk that is not allowed now. Otherwise returns whether
    /// this side has answered that chunk, and the fault.
    pub(in crate::link) fn check<T: LinkEvents>(
        &self,
        link: &Link,
        owner: &Arc<T>,
    ) -> Result<Option<(bool, StartupFault)>, StartupFailure> {
        Ok(match receive_request(link, owner)? {
            Some(ReceivedRequest::Refused { answered, reason }) => Some((answered, reason)),
            // The session reports one request.
            Some(ReceivedRequest::Request(_)) | None => None,
        })
    }

    pub(in crate::link) fn peer_depths(&self) -> PeerDepths {
        (self.0.peer_ird(), self.0.peer_ord())
    }

    /// Sends a Reject. Returns whether it is sent.
    pub(in crate::link) fn reject(&self, link: &Link, private: &[u8]) -> bool {
        link.answer(SessionEvent::Reject { private }, Reorder::none())
            .is_ok()
    }

    /// Sends a Terminate, for a consumer that does not decide (RFC 5043, section 6.3). Returns
    /// whether it is sent.
    ///
    /// An initiator that has sent an enhanced Initiate would take it for the answer of a peer that
    /// does not know it, and try a session without read depths. So it gets a Reject.
    pub(in crate::link) fn refuse(&self, link: &Link) -> bool {
        if self.0.enhanced() {
            return self.reject(link, &[]);
        }
        link.answer(SessionEvent::Refuse, Reorder::none()).is_ok()
    }
}

/// Sends an Accept. Returns the result of the negotiation.
pub(in crate::link) fn accept(
    link: &Link,
    terms: Terms<'_>,
    reorder: Reorder,
) -> Result<Parameters> {
    let event = SessionEvent::Accept {
        ird: terms.ird,
        ord: terms.ord,
        private: terms.private_data,
    };
    let agreed = link.answer(event, reorder)?.ok_or(EIO)?;

    Ok(parameters(&agreed))
}

/// Receives the next chunk in order, as [`Link::next_action`] does; if there may be more, `owner`
/// is told.
fn next_action<T: LinkEvents, R>(
    link: &Link,
    owner: &Arc<T>,
    f: impl FnOnce(SessionAction<'_>) -> R,
) -> Result<Option<R>, StartupFailure> {
    match link.next_action(f) {
        Err(e) if e == EAGAIN => {
            owner.changed();
            Ok(None)
        }
        other => other.map_err(StartupFailure::Link),
    }
}

/// Checks that the peer of an established association supports DDP, and has at most `addrs`
/// addresses.
fn check_support(link: &Link, addrs: u32) -> Result<(), StartupFailure> {
    match link.peer_support(addrs).map_err(StartupFailure::Link)? {
        PeerSupport::Ddp => Ok(()),
        PeerSupport::NotDdp => Err(StartupFault::Adaptation.into()),
        PeerSupport::TooManyAddrs => Err(StartupFault::TooManyAddrs.into()),
    }
}

/// Returns the parameters of a stream over SCTP.
fn parameters(agreed: &Agreed) -> Parameters {
    Parameters {
        // The parameters of MPA do not apply.
        crc: false,
        rx_markers: false,
        tx_markers: false,
        revision: 2,
        ird: agreed.ird,
        ord: agreed.ord,
        rtr: agreed.rtr,
        peer_ird: agreed.peer_ird,
        peer_ord: agreed.peer_ord,
    }
}
