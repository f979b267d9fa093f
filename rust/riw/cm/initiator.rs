// SPDX-License-Identifier: GPL-2.0

//! The startup as initiator, by the lower layer: MPA's frames over TCP, session control over SCTP.

use super::{
    frame::new_reader,
    opening::{MpaStartup, SctpStartup, Startup},
    reason::EndReason,
    Endpoint,
};
use crate::link::{PeerSupport, Transport};
use iwarp::{
    negotiation::{Agreed, Words},
    sctp::{Form, SessionAction},
    startup::{Initiator, Kind, Outcome, Parameters, Policy, StartupError},
};
use kernel::{prelude::*, sync::Arc};
use rdma::iw::{ConnParam, Offer};

/// The number of addresses that a peer may have: a wildcard listener has all those of its host.
const PEER_ADDRS_MAX: u32 = 32;

/// The answer of the peer.
pub(super) enum Answer {
    /// It accepts.
    Established(Parameters),
    /// Its consumer rejects.
    Rejected,
    /// It accepts, but this side cannot follow, and has to send it a Terminate.
    Withdraw {
        error: iwarp::Error,
        crc: bool,
        markers: bool,
        reason: EndReason,
    },
    /// Nothing that means a connection.
    Failed(EndReason),
}

impl Startup {
    /// Prepares a startup. May sleep. `EINVAL` if the private data does not fit.
    pub(super) fn new(
        transport: Transport,
        policy: &Policy,
        param: &ConnParam<'_>,
    ) -> Result<Self> {
        Ok(match transport {
            Transport::Tcp => Self::Mpa(MpaStartup::new(policy, param)?),
            Transport::Sctp => Self::Sctp(SctpStartup::new(policy, param)?),
        })
    }

    /// Sends the request of this side. May sleep.
    pub(super) fn send_request(&self, endpoint: &Endpoint) -> Result<(), EndReason> {
        match self {
            Self::Mpa(mpa) => mpa.send_request(endpoint),
            Self::Sctp(sctp) => sctp.send_initiate(endpoint),
        }
    }

    /// Receives the answer, or a part of it. May sleep. Returns `None` if it is not complete, or why it
    /// never will be.
    pub(super) fn receive(
        &mut self,
        endpoint: &Arc<Endpoint>,
    ) -> Result<Option<Answer>, EndReason> {
        match self {
            Self::Mpa(mpa) => mpa.receive(endpoint),
            Self::Sctp(sctp) => sctp.receive(endpoint),
        }
    }

    /// Chooses the next attempt after a failure, on a new connection. Returns false if nothing is left.
    pub(super) fn next_attempt(&mut self, reason: EndReason) -> bool {
        match self {
            Self::Mpa(mpa) => mpa.next_attempt(reason),
            Self::Sctp(_) => false,
        }
    }

    /// Returns the private data of the answer.
    pub(super) fn private_data(&self) -> &[u8] {
        match self {
            Self::Mpa(mpa) => mpa.reader.private_data(),
            Self::Sctp(sctp) => &sctp.reply,
        }
    }

    /// Returns depths and private data of the answer as consumers expect them from an iWARP device:
    /// the depths as the peer means them.
    pub(super) fn offer(&self, parameters: Option<&Parameters>) -> Offer<'_> {
        let (ird, ord) = parameters.map_or((0, 0), |p| (p.ird, p.ord));
        let (peer_ird, peer_ord) = match self {
            Self::Mpa(mpa) => {
                let depths = mpa.reader.frame().and_then(|reply| reply.depths);

                (
                    depths.and_then(|d| d.negotiated_ird()),
                    depths.and_then(|d| d.negotiated_ord()),
                )
            }
            Self::Sctp(sctp) => sctp.depths,
        };

        Offer {
            ird: peer_ord.unwrap_or(ird),
            ord: peer_ird.unwrap_or(ord),
            private_data: self.private_data(),
        }
    }
}

/// Returns an initiator for these parameters. `EINVAL` if the private data does not fit.
fn initiator(policy: &Policy, param: &ConnParam<'_>) -> Result<Initiator> {
    let initiator = Initiator::new(policy, param.ird, param.ord).map_err(|_| EINVAL)?;

    initiator.request(param.private_data).map_err(|_| EINVAL)?;
    Ok(initiator)
}

/// Copies private data. May sleep.
pub(super) fn copy_of(private: &[u8]) -> Result<KVec<u8>> {
    let mut copy = KVec::new();

    copy.extend_from_slice(private, GFP_KERNEL_ACCOUNT)?;
    Ok(copy)
}

impl MpaStartup {
    fn new(policy: &Policy, param: &ConnParam<'_>) -> Result<Self> {
        let enhanced = policy.revision > 1;
        // Revision 1 lacks the peer-to-peer model. A responder has to wait for the initiator's
        // first message there, so a consumer that expects the first message from it would hang.
        let fallback = if enhanced && !policy.peer_to_peer {
            let policy = Policy {
                revision: 1,
                ..*policy
            };
            Some(initiator(&policy, param)?)
        } else {
            None
        };

        Ok(Self {
            initiator: initiator(policy, param)?,
            repeat: enhanced,
            fallback,
            private: copy_of(param.private_data)?,
            reader: new_reader(Kind::Reply)?,
        })
    }

    fn send_request(&self, endpoint: &Endpoint) -> Result<(), EndReason> {
        let request = self
            .initiator
            .request(&self.private)
            .map_err(|_| EndReason::Local(EINVAL))?;

        endpoint
            .send_frame(request.parts())
            .map_err(EndReason::link)
    }

    fn receive(&mut self, endpoint: &Endpoint) -> Result<Option<Answer>, EndReason> {
        if !endpoint.receive_frame(&mut self.reader)? {
            return Ok(None);
        }
        let initiator = &self.initiator;

        Ok(Some(match initiator.reply(&self.reader) {
            Ok(Outcome::Established(parameters)) => Answer::Established(parameters),
            Ok(Outcome::Rejected) => Answer::Rejected,
            Err(error) => match (error.term(), self.reader.frame()) {
                (Some(terminate), Some(reply)) => Answer::Withdraw {
                    error: terminate,
                    crc: initiator.crc(&reply),
                    markers: reply.markers,
                    reason: EndReason::Startup(error),
                },
                _ => Answer::Failed(EndReason::Startup(error)),
            },
        }))
    }

    /// Chooses the Request that follows a failed attempt. Returns false if there is none.
    ///
    /// A peer that knows only revision 1 closes without a Reply (RFC 6581, section 10). But a peer
    /// also closes if it lacks memory, or room for half-open connections. So the same Request is
    /// repeated once before revision 1 is tried.
    fn next_attempt(&mut self, reason: EndReason) -> bool {
        let closed = reason.to_error() == ECONNRESET && self.reader.is_empty();
        let next = if closed && core::mem::replace(&mut self.repeat, false) {
            true
        } else if !closed && reason != EndReason::Startup(StartupError::Revision) {
            false
        } else if let Some(initiator) = self.fallback.take() {
            self.initiator = initiator;
            self.repeat = false;
            true
        } else {
            false
        };

        if next {
            self.reader.clear();
        }
        next
    }
}

impl SctpStartup {
    fn new(policy: &Policy, param: &ConnParam<'_>) -> Result<Self> {
        Ok(Self {
            form: match policy.revision {
                1 => Form::Plain,
                _ => Form::Enhanced {
                    ird_max: policy.ird_max,
                },
            },
            ird: param.ird,
            ord: param.ord,
            private: copy_of(param.private_data)?,
            reply: KVec::new(),
            depths: (None, None),
        })
    }

    /// Sends an Initiate, if the peer supports DDP. May sleep.
    fn send_initiate(&self, endpoint: &Endpoint) -> Result<(), EndReason> {
        check_support(endpoint, PEER_ADDRS_MAX)?;
        self.initiate(endpoint).map_err(EndReason::link)
    }

    fn initiate(&self, endpoint: &Endpoint) -> Result {
        let depths = (self.ird, self.ord);

        endpoint
            .link
            .initiate(self.form, depths, &self.private, endpoint.reorder())
            .map_err(|e| if e == EAGAIN { ENOBUFS } else { e })
    }

    fn receive(&mut self, endpoint: &Arc<Endpoint>) -> Result<Option<Answer>, EndReason> {
        match endpoint.next_action(|action| self.take(action))? {
            None => Ok(None),
            Some(Next::Answer(answer)) => Ok(Some(answer)),
            Some(Next::RetryPlain) => {
                // The responder may know RFC 5043 only. Nothing of the old session is in flight.
                self.form = Form::Plain;
                self.initiate(endpoint).map_err(EndReason::link)?;
                Ok(None)
            }
            Some(Next::Local(e)) => Err(EndReason::Local(e)),
        }
    }

    /// Converts the action that the session takes for a chunk. May sleep.
    fn take(&mut self, action: SessionAction<'_>) -> Next {
        let answer = match action {
            SessionAction::Established { agreed, private } => {
                self.reply = match copy_of(private) {
                    Ok(reply) => reply,
                    Err(e) => return Next::Local(e),
                };
                self.depths = (agreed.peer_ird, agreed.peer_ord);
                Answer::Established(parameters(&agreed))
            }
            SessionAction::Rejected { words, private } => {
                self.reply = match copy_of(private) {
                    Ok(reply) => reply,
                    Err(e) => return Next::Local(e),
                };
                self.depths = words.map_or((None, None), |Words { depths, .. }| {
                    (depths.negotiated_ird(), depths.negotiated_ord())
                });
                Answer::Rejected
            }
            SessionAction::Refused { retry_plain: true } => return Next::RetryPlain,
            SessionAction::Refused { retry_plain: false } => {
                Answer::Failed(EndReason::Closed(ECONNRESET))
            }
            SessionAction::Fail(error) => Answer::Withdraw {
                error,
                crc: false,
                markers: false,
                reason: EndReason::Session(error),
            },
            SessionAction::Abort(error) => Answer::Failed(EndReason::Session(error)),
            // None of them is an initiator's without a connection.
            _ => Answer::Failed(EndReason::Local(EIO)),
        };

        Next::Answer(answer)
    }
}

/// The next step after a chunk that an initiator has received.
enum Next {
    Answer(Answer),
    RetryPlain,
    Local(Error),
}

/// Checks that the peer of an established association supports DDP, and has at most `addrs` addresses. May
/// sleep.
pub(super) fn check_support(endpoint: &Endpoint, addrs: u32) -> Result<(), EndReason> {
    match endpoint.link.peer_support(addrs).map_err(EndReason::link)? {
        PeerSupport::Ddp => Ok(()),
        PeerSupport::NotDdp => Err(EndReason::Adaptation),
        PeerSupport::TooManyAddrs => Err(EndReason::TooManyAddrs),
    }
}

/// Returns the parameters of a stream over SCTP.
pub(super) fn parameters(agreed: &Agreed) -> Parameters {
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
