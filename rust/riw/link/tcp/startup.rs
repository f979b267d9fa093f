// SPDX-License-Identifier: GPL-2.0

//! The startup by MPA's frames (RFC 5044, section 7.1; RFC 6581).

use super::super::{
    budget::READ_TIME,
    deadline::Deadline,
    events::LinkEvents,
    startup::{
        copy_of, Answer, PeerDepths, ReceivedRequest, StartupFailure, StartupFault, Terms,
        ValidRequest,
    },
    Link,
};
use iwarp::startup::{Initiator, Kind, Outcome, Policy, Reader, Responder, StartupError};
use kernel::{prelude::*, sync::Arc};

/// The startup as initiator.
pub(crate) struct MpaStartup {
    initiator: Initiator,
    /// The same Request may be sent once more, if the peer closes without a Reply.
    repeat: bool,
    /// For a peer that does not know revision 2 of MPA.
    fallback: Option<Initiator>,
    /// The private data of the Request.
    private: KVec<u8>,
    reader: KBox<Reader>,
}

impl MpaStartup {
    pub(in crate::link) fn new(policy: &Policy, terms: Terms<'_>) -> Result<Self> {
        let enhanced = policy.revision > 1;
        // Revision 1 lacks the peer-to-peer model. A responder has to wait for the initiator's
        // first message there, so a consumer that expects the first message from it would hang.
        let fallback = if enhanced && !policy.peer_to_peer {
            let policy = Policy {
                revision: 1,
                ..*policy
            };
            Some(initiator(&policy, terms)?)
        } else {
            None
        };

        Ok(Self {
            initiator: initiator(policy, terms)?,
            repeat: enhanced,
            fallback,
            private: copy_of(terms.private_data)?,
            reader: new_reader(Kind::Reply)?,
        })
    }

    pub(in crate::link) fn send_request(&self, link: &Link) -> Result<(), StartupFailure> {
        let request = self
            .initiator
            .request(&self.private)
            .map_err(|_| StartupFailure::Local(EINVAL))?;

        link.send_octets(request.parts())
            .map_err(StartupFailure::Link)
    }

    pub(in crate::link) fn receive<T: LinkEvents>(
        &mut self,
        link: &Link,
        owner: &Arc<T>,
    ) -> Result<Option<Answer>, StartupFailure> {
        if !receive_frame(link, owner, &mut self.reader)? {
            return Ok(None);
        }
        let initiator = &self.initiator;

        Ok(Some(match initiator.reply(&self.reader) {
            Ok(Outcome::Established(parameters)) => Answer::Established(parameters),
            Ok(Outcome::Rejected) => Answer::Rejected,
            Err(error) => {
                let reason = StartupFault::Frame(error).into();

                match (error.term(), self.reader.frame()) {
                    (Some(terminate), Some(reply)) => Answer::Withdraw {
                        error: terminate,
                        crc: initiator.crc(&reply),
                        markers: reply.markers,
                        reason,
                    },
                    _ => Answer::Failed(reason),
                }
            }
        }))
    }

    /// Chooses the Request that follows a failed attempt. Returns false if there is none.
    ///
    /// A peer that knows only revision 1 closes without a Reply (RFC 6581, section 10). But a peer
    /// also closes if it lacks memory, or room for half-open connections. So the same Request is
    /// repeated once before revision 1 is tried.
    pub(in crate::link) fn next_attempt(&mut self, failure: StartupFailure) -> bool {
        let reset = matches!(failure,
            StartupFailure::Link(e) if e == ECONNRESET || e == ECONNREFUSED);
        let closed = reset && self.reader.is_empty();
        let unknown = failure == StartupFault::Frame(StartupError::Revision).into();
        let next = if closed && core::mem::replace(&mut self.repeat, false) {
            true
        } else if !closed && !unknown {
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

    pub(in crate::link) fn private_data(&self) -> &[u8] {
        self.reader.private_data()
    }

    pub(in crate::link) fn peer_depths(&self) -> PeerDepths {
        let depths = self.reader.frame().and_then(|reply| reply.depths);

        (
            depths.and_then(|d| d.negotiated_ird()),
            depths.and_then(|d| d.negotiated_ord()),
        )
    }
}

/// Returns an initiator for these terms. `EINVAL` if the private data does not fit.
fn initiator(policy: &Policy, terms: Terms<'_>) -> Result<Initiator> {
    let initiator = Initiator::new(policy, terms.ird, terms.ord).map_err(|_| EINVAL)?;

    initiator.request(terms.private_data).map_err(|_| EINVAL)?;
    Ok(initiator)
}

/// Receives a Request, or a part of it. Answers one that is not valid.
pub(in crate::link) fn receive_request<T: LinkEvents>(
    link: &Link,
    owner: &Arc<T>,
    reader: &mut Reader,
    policy: &Policy,
) -> Result<Option<ReceivedRequest>, StartupFailure> {
    if !receive_frame(link, owner, reader)? {
        return Ok(None);
    }
    Ok(Some(match Responder::request(reader, policy) {
        Ok(request) => ReceivedRequest::valid(ValidRequest::Mpa(request), reader.private_data())?,
        Err(refusal) => ReceivedRequest::Refused {
            answered: refusal
                .reply
                .is_some_and(|reply| link.send_octets(reply.parts()).is_ok()),
            reason: StartupFault::Frame(refusal.error),
        },
    }))
}

/// Receives octets of a startup frame, and none behind it: those belong to the stream.
///
/// Returns whether the frame is complete, or why it never will be. After the peer's FIN that is
/// `ECONNRESET`. If the data comes in many parts, and that takes long, stops, and has `owner`
/// continue after other work items. An ordinary frame does not wait for those, however slow the
/// machine is: connect requests are reported in the order in which they arrive.
fn receive_frame<T: LinkEvents>(
    link: &Link,
    owner: &Arc<T>,
    reader: &mut Reader,
) -> Result<bool, StartupFailure> {
    let mut bytes = [0; 128];
    let limit = Deadline::new(READ_TIME);

    loop {
        let wanted = reader.wanted().min(bytes.len());
        let room = bytes.get_mut(..wanted).unwrap_or_default();
        let count = match link.with(|connection| connection.receive(room)) {
            Ok(0) => return Err(StartupFailure::Link(ECONNRESET)),
            Ok(count) => count,
            Err(e) if e == EAGAIN => return Ok(false),
            // Records without data.
            Err(e) if e == EINTR => 0,
            Err(e) => return Err(StartupFailure::Link(e)),
        };

        match reader.push(bytes.get(..count).unwrap_or_default()) {
            Ok(false) => {}
            Ok(true) => return Ok(true),
            Err(e) => return Err(StartupFault::Frame(e).into()),
        }
        if count < wanted && limit.left().is_none() {
            owner.changed();
            return Ok(false);
        }
    }
}

/// Returns a reader for a startup frame of this kind.
// Not inlined: a reader has 550 bytes, which a caller would keep on its stack.
#[inline(never)]
pub(in crate::link) fn new_reader(kind: Kind) -> Result<KBox<Reader>> {
    Ok(KBox::new(Reader::new(kind), GFP_KERNEL_ACCOUNT)?)
}
