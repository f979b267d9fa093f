// SPDX-License-Identifier: GPL-2.0

//! The functions of a link for the session of its association.

use super::{
    super::{transport::AnyInlet, Connection, Link, LinkEnd, LinkEvents, Reorder},
    inlet::{Fetched, Inlet},
    Association, PeerSupport,
};
use iwarp::{
    negotiation::Agreed,
    sctp::{Form, Session, SessionAction, SessionEvent},
    startup::RtrTypes,
    Local,
};
use kernel::{prelude::*, sync::Arc};
use net::sctp::{Look, Phase};

/// Maximum chunks that are handled, and messages that are received, in a row before other work
/// items run.
const BATCH: usize = 256;

/// Returns the inlet of a link. `ENOTCONN` if its connection is no association.
fn own(inlet: &mut Option<AnyInlet>) -> Result<&mut Inlet> {
    match inlet {
        Some(AnyInlet::Sctp(inlet)) => Ok(inlet),
        _ => Err(ENOTCONN),
    }
}

/// All functions need process context and may sleep. Without an association they fail with
/// `ENOTCONN`.
impl Link {
    fn with_association<R>(&self, f: impl FnOnce(&mut Association) -> Result<R>) -> Result<R> {
        self.with(|connection| match connection {
            Connection::Sctp(association) => f(association),
            _ => Err(ENOTCONN),
        })
    }

    /// Returns the support of the peer of an established association, which may have `addrs`
    /// addresses.
    pub(in crate::link) fn peer_support(&self, addrs: u32) -> Result<PeerSupport> {
        self.with_association(|association| association.peer_support(addrs))
    }

    /// Begins a session as initiator, with a new Initiate, and sets the options that depend on the
    /// association. `reorder` applies to the chunks that the session holds. `EINVAL` if the private
    /// data does not fit; otherwise fails as
    /// [`Carrier::send`](super::super::transport::Carrier::send) does.
    pub(in crate::link) fn initiate(
        &self,
        form: Form,
        depths: (u32, u32),
        private: &[u8],
        reorder: Reorder,
    ) -> Result {
        let (ird, ord) = depths;
        let (session, chunk) = Session::initiate(form, ird, ord, private).map_err(|_| EINVAL)?;
        let mut inlet = self.inlet.lock();
        let inlet = own(&mut inlet)?;

        inlet.begin(session);
        inlet.hold(reorder);
        self.with_association(|association| {
            association.tune()?;
            // Each session counts from 0.
            association.next_ssn = 0;
            association.send_control(&chunk)
        })
    }

    /// Begins a session as responder. `rtr` has the RTR messages that this side allows.
    pub(in crate::link) fn listen_session(&self, rtr: RtrTypes) -> Result {
        let mut inlet = self.inlet.lock();

        own(&mut inlet)?.listen(rtr);
        Ok(())
    }

    /// Receives the next chunk in order, and calls `f` with the action that the session takes for
    /// it. Returns `None` if none has arrived; `EAGAIN` if many have that are ahead of it, and
    /// there may be more: call again later. Otherwise fails with the error that ended the
    /// association.
    pub(in crate::link) fn next_action<R>(
        &self,
        f: impl FnOnce(SessionAction<'_>) -> R,
    ) -> Result<Option<R>> {
        let mut inlet = self.inlet.lock();
        let inlet = own(&mut inlet)?;

        match inlet.fetch(
            &mut { BATCH },
            |f| self.with_association(|association| f(&association.socket)),
            |_| {},
        ) {
            Fetched::Chunk => Ok(inlet.handle(|action, _| (true, f(action)))),
            Fetched::Nothing => Ok(None),
            Fetched::Spent => Err(EAGAIN),
            Fetched::ShutDown => Err(ECONNRESET),
            Fetched::Closed(e) => Err(e),
        }
    }

    /// Sends the chunk that `event`, an answer to an Initiate, calls for. If it accepts, sets the
    /// options that depend on the association, and returns the result of the negotiation. `reorder`
    /// applies to the chunks that the session holds from then on. `EINVAL` if the private data does
    /// not fit, or if no Initiate waits; otherwise fails as
    /// [`Carrier::send`](super::super::transport::Carrier::send) does.
    pub(in crate::link) fn answer(
        &self,
        event: SessionEvent<'_>,
        reorder: Reorder,
    ) -> Result<Option<Agreed>> {
        let mut inlet = self.inlet.lock();
        let inlet = own(&mut inlet)?;
        let before = inlet.session;
        let (chunk, agreed) = match inlet.session.handle(event).map_err(|_| EINVAL)? {
            SessionAction::Accept { chunk, agreed } => (chunk, Some(agreed)),
            SessionAction::Send(chunk) => (chunk, None),
            _ => return Err(EINVAL),
        };

        if agreed.is_some() {
            inlet.hold(reorder);
        }
        self.with_association(|association| {
            if agreed.is_some() {
                association.tune()?;
                association.open_window();
            }
            association.send_control(&chunk)
        })
        .inspect_err(|_| inlet.session = before)?;
        if agreed.is_some() {
            inlet.set_accepted();
        }
        Ok(agreed)
    }

    /// Sends a session control chunk that the session has handed out.
    pub(in crate::link) fn send_control(&self, chunk: &iwarp::sctp::Encoded<'_>) -> Result {
        self.with_association(|association| association.send_control(chunk))
    }

    /// Ends a receive whose chunk is not taken: an association that is lost is no reason to wait.
    /// One that the peer has shut down is none to drop what has arrived.
    fn blocked<T: LinkEvents>(&self, owner: &Arc<T>) {
        match self.with_association(|association| Ok(association.socket.look())) {
            Err(e) => self.lost(owner, e),
            Ok(Look {
                phase: Phase::Gone,
                error: Some(e),
                ..
            }) => self.lost(owner, e),
            Ok(_) => {}
        }
    }

    /// Reports that there is no association any more, for `reason`.
    fn lost<T: LinkEvents>(&self, owner: &Arc<T>, reason: Error) {
        match reason {
            // Whoever has taken the connection away ends the stream.
            e if e == ENOTCONN => {}
            e if e == ENOMEM => owner.ended(LinkEnd::Failed(Local::Memory.into())),
            e => owner.ended(LinkEnd::Closed(e)),
        }
    }
}

impl Inlet {
    /// Lets `owner` receive the chunks of the inlet of `link`, in order. The owner may use the link
    /// only to send: it is not taken meanwhile, so what the owner does concerns this connection.
    /// Process context, may sleep.
    pub(in crate::link) fn receive<T: LinkEvents>(&mut self, link: &Link, owner: &Arc<T>) {
        let mut budget = BATCH;

        for _ in 0..BATCH {
            match self.fetch(
                &mut budget,
                |f| link.with_association(|association| f(&association.socket)),
                |early| owner.receive(early),
            ) {
                Fetched::Chunk => {}
                Fetched::Nothing => return,
                Fetched::Spent => break,
                Fetched::ShutDown => return owner.ended(LinkEnd::ShutDown),
                Fetched::Closed(e) => return link.lost(owner, e),
            }
            let handled = self.handle(|action, mut chunk| {
                let end = match action {
                    SessionAction::Deliver => {
                        owner.receive(&mut chunk);
                        return (chunk.is_taken, chunk.is_taken.then_some(None));
                    }
                    SessionAction::Discard => None,
                    SessionAction::PeerClosed => Some(LinkEnd::PeerClosed),
                    SessionAction::Fail(error) => Some(LinkEnd::Failed(error)),
                    // Such a session is not open.
                    _ => Some(LinkEnd::Closed(ECONNRESET)),
                };

                (true, Some(end))
            });

            match handled.flatten() {
                None => return link.blocked(owner),
                Some(None) => {}
                Some(Some(end)) => {
                    if let LinkEnd::Closed(_) = end {
                        self.set_broken();
                    }
                    owner.ended(end);
                    match end {
                        // The association may have ended, too.
                        LinkEnd::PeerClosed => break,
                        _ => return,
                    }
                }
            }
        }
        // Other work items run before the rest is received.
        owner.changed();
    }
}
