// SPDX-License-Identifier: GPL-2.0

//! The session of a DDP stream (RFC 5043 §6, RFC 6581 §7): its states, and the effect of each
//! event. `states.md` has a drawing.

use super::chunk::{Body, Chunk, Control, Encoded};
use crate::error::{Error, Sctp};
use crate::negotiation::{Agreed, Proposal, Request, RtrTypes, Words};

/// The DDP-SSN of the first chunk of each side.
pub(super) const FIRST_SSN: u16 = 0;

/// A DDP stream session, as one side sees it. It ends for good: a new session of the same stream
/// begins with a new value, and must wait until no chunk of this one can be in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Session {
    /// Initiator: the Initiate is sent, the answer has not come.
    Requested {
        /// The proposal of the Initiate.
        proposal: Proposal,
        /// The Initiate is enhanced.
        enhanced: bool,
    },
    /// Responder: waits for the Initiate.
    Listening {
        /// The RTR indications that this side allows.
        rtr: RtrTypes,
    },
    /// Responder: has received a valid Initiate, which the ULP has not answered.
    Pending(Request),
    /// Established: segments pass in both directions.
    Open,
    /// The peer has sent its Terminate Chunk; this side may still send.
    PeerClosed,
    /// This side has sent its Terminate Chunk; the peer may still send.
    Closing,
    /// This side found an error and must report it by an RDMAP Terminate, then close. Further
    /// chunks are discarded.
    Failed,
    /// Over.
    Ended,
}

/// The form of an Initiate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// RFC 5043: read depths are not negotiated.
    Plain,
    /// RFC 6581: read depths are negotiated.
    Enhanced {
        /// The largest IRD of this side: if the responder's ORD exceeds the requested IRD, IRD
        /// rises up to this.
        ird_max: u32,
    },
}

/// An event of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SessionEvent<'a> {
    /// The next chunk in the order of the DDP-SSNs, or the reason why it is none: an error of
    /// [`ssn`](super::ssn), [`Window::arrive`](super::Window::arrive) or [`Chunk::parse`].
    Received(Result<Chunk<'a>, Sctp>),
    /// The ULP accepts the pending Initiate.
    Accept {
        /// Read Requests that this side accepts at a time.
        ird: u32,
        /// Read Requests that this side keeps outstanding.
        ord: u32,
        /// The ULP's private data.
        private: &'a [u8],
    },
    /// The ULP rejects the pending Initiate.
    Reject {
        /// The ULP's private data.
        private: &'a [u8],
    },
    /// The pending Initiate cannot be passed to the ULP: too many are pending (RFC 5043 §6.4).
    Refuse,
    /// This side has sent its last segment.
    Close {
        /// The DDP-SSN of the Terminate Chunk:
        /// [`ChunkFramer::next_ssn`](super::ChunkFramer::next_ssn).
        ssn: u16,
    },
}

/// The embedder's part in an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SessionAction<'a> {
    /// Pass the segment chunk to the receiver.
    Deliver,
    /// Drop the chunk.
    Discard,
    /// Responder: pass the Initiate to the ULP, which answers by [`SessionEvent::Accept`] or
    /// [`SessionEvent::Reject`].
    Request {
        /// The request of the initiator.
        request: Request,
        /// Its private data.
        private: &'a [u8],
    },
    /// Responder: send the Accept; the session is open.
    Accept {
        /// The chunk to send.
        chunk: Encoded<'a>,
        /// The negotiated parameters.
        agreed: Agreed,
    },
    /// Initiator: the responder has accepted; the session is open.
    Established {
        /// The negotiated parameters.
        agreed: Agreed,
        /// The responder's private data.
        private: &'a [u8],
    },
    /// Initiator: the responder's ULP has rejected. The session is over.
    Rejected {
        /// The responder's control words, if it has sent some.
        words: Option<Words>,
        /// Its private data.
        private: &'a [u8],
    },
    /// Initiator: the responder has refused by a Terminate Chunk. The session is over.
    Refused {
        /// The Initiate was enhanced, and the responder may not know that form. The embedder can
        /// begin a new session at once with a plain one: no chunk is in flight.
        retry_plain: bool,
    },
    /// Send the chunk. It is the last one of this side.
    Send(Encoded<'a>),
    /// The peer has sent its last segment: as the end of a stream of octets.
    PeerClosed,
    /// The session is open, and failed: send an RDMAP Terminate for the error, then
    /// [`SessionEvent::Close`].
    Fail(Error),
    /// Responder: the session is over before it began. Send the Terminate Chunk.
    Refuse {
        /// The chunk to send.
        chunk: Encoded<'a>,
        /// The reason.
        error: Error,
    },
    /// The session is over, and no chunk may be sent that says so. If the association has no other
    /// session, abort it.
    Abort(Error),
}

/// Why this side cannot fulfil a request of the ULP. The session is unchanged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unfit {
    /// Not in this state of the session.
    State,
    /// The private data does not fit: 512 octets, 508 in an enhanced chunk.
    PrivateData,
}

impl Session {
    /// Begins a session as initiator. Returns it with the chunk to send. The initiator sends
    /// nothing else before the answer (RFC 5043 §6.6).
    ///
    /// `ird` is the number of Read Requests that this side accepts at a time, `ord` the number that
    /// it wants outstanding. Either side may send first over SCTP, so the Initiate does not request
    /// the peer-to-peer model (RFC 6581 §7).
    ///
    /// # Errors
    ///
    /// The private data does not fit.
    pub fn initiate(
        form: Form,
        ird: u32,
        ord: u32,
        private: &[u8],
    ) -> Result<(Self, Encoded<'_>), Unfit> {
        let (enhanced, ird_max) = match form {
            Form::Plain => (false, 0),
            Form::Enhanced { ird_max } => (true, ird_max),
        };
        let proposal = Proposal::new(ird, ord, ird_max, None);
        let words = enhanced.then_some(proposal.words());
        let chunk = first(Control::Initiate(Body { words, private }))?;
        Ok((Self::Requested { proposal, enhanced }, chunk))
    }

    /// Begins a session as responder, which accepts both forms of an Initiate. `rtr` has the RTR
    /// indications that this side allows an initiator that requests the peer-to-peer model.
    pub const fn listen(rtr: RtrTypes) -> Self {
        Self::Listening { rtr }
    }

    /// Handles an event.
    ///
    /// # Errors
    ///
    /// The ULP's request is not possible; the session is unchanged. A received chunk never gives an
    /// error.
    pub fn handle<'a>(&mut self, event: SessionEvent<'a>) -> Result<SessionAction<'a>, Unfit> {
        let (next, action) = match event {
            SessionEvent::Received(Ok(Chunk::Segment)) => self.segment(),
            SessionEvent::Received(Ok(Chunk::Control(control))) => self.control(control),
            SessionEvent::Received(Err(error)) => self.illegal(error.into()),
            SessionEvent::Accept { ird, ord, private } => {
                let request = self.pending()?;
                let (words, agreed) = request.accept(ird, ord);
                let chunk = first(Control::Accept(Body { words, private }))?;
                (Self::Open, SessionAction::Accept { chunk, agreed })
            }
            SessionEvent::Reject { private } => {
                let words = self.pending()?.reject();
                let chunk = first(Control::Reject(Body { words, private }))?;
                (Self::Ended, SessionAction::Send(chunk))
            }
            SessionEvent::Refuse => {
                self.pending()?;
                let chunk = Encoded::terminate(FIRST_SSN);
                (Self::Ended, SessionAction::Send(chunk))
            }
            SessionEvent::Close { ssn } => {
                let next = match self {
                    Self::Open => Self::Closing,
                    Self::PeerClosed | Self::Failed => Self::Ended,
                    _ => return Err(Unfit::State),
                };
                (next, SessionAction::Send(Encoded::terminate(ssn)))
            }
        };
        *self = next;
        Ok(action)
    }

    /// Returns the Initiate that the ULP has not answered.
    fn pending(&self) -> Result<&Request, Unfit> {
        match self {
            Self::Pending(request) => Ok(request),
            _ => Err(Unfit::State),
        }
    }

    /// Handles a segment chunk.
    fn segment<'a>(&self) -> (Self, SessionAction<'a>) {
        match self {
            Self::Open | Self::Closing => (*self, SessionAction::Deliver),
            _ => self.illegal(Sctp::Sequence.into()),
        }
    }

    /// Handles a session control chunk.
    fn control<'a>(&self, control: Control<'a>) -> (Self, SessionAction<'a>) {
        match (*self, control) {
            (Self::Listening { rtr }, Control::Initiate(body)) => {
                let request = Request::new(body.words, rtr);
                let private = body.private;
                (
                    Self::Pending(request),
                    SessionAction::Request { request, private },
                )
            }
            (Self::Requested { proposal, enhanced }, Control::Accept(body))
                if enhanced == body.words.is_some() =>
            {
                match proposal.conclude(body.words) {
                    Ok(agreed) => {
                        let private = body.private;
                        (Self::Open, SessionAction::Established { agreed, private })
                    }
                    // The responder considers the session open.
                    Err(why) => (Self::Failed, SessionAction::Fail(why.error().into())),
                }
            }
            (Self::Requested { enhanced, .. }, Control::Reject(body))
                if enhanced || body.words.is_none() =>
            {
                let Body { words, private } = body;
                (Self::Ended, SessionAction::Rejected { words, private })
            }
            (Self::Requested { enhanced, .. }, Control::Terminate) => {
                let retry_plain = enhanced;
                (Self::Ended, SessionAction::Refused { retry_plain })
            }
            (Self::Open, Control::Terminate) => (Self::PeerClosed, SessionAction::PeerClosed),
            (Self::Closing, Control::Terminate) => (Self::Ended, SessionAction::PeerClosed),
            // A Terminate Chunk is never answered by another: two responders would not stop.
            (Self::Listening { .. } | Self::Pending(_), Control::Terminate) => {
                (Self::Ended, SessionAction::Abort(Sctp::Sequence.into()))
            }
            _ => self.illegal(Sctp::Sequence.into()),
        }
    }

    /// Ends the session, because the received chunks are in no legal sequence (RFC 5043 §6.1).
    fn illegal<'a>(&self, error: Error) -> (Self, SessionAction<'a>) {
        match self {
            Self::Listening { .. } | Self::Pending(_) => {
                let chunk = Encoded::terminate(FIRST_SSN);
                (Self::Ended, SessionAction::Refuse { chunk, error })
            }
            Self::Open | Self::PeerClosed => (Self::Failed, SessionAction::Fail(error)),
            // A Terminate Chunk could overtake the Initiate (RFC 5043 §6.6), or was sent already.
            Self::Requested { .. } | Self::Closing => (Self::Ended, SessionAction::Abort(error)),
            Self::Failed | Self::Ended => (*self, SessionAction::Discard),
        }
    }
}

/// Builds the first chunk of this side.
fn first(control: Control<'_>) -> Result<Encoded<'_>, Unfit> {
    control.encode(FIRST_SSN).ok_or(Unfit::PrivateData)
}
