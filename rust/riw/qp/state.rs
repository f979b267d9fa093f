// SPDX-License-Identifier: GPL-2.0

//! The state of a queue pair. Nothing else changes it.

mod current;
mod status;

pub(super) use current::CurrentState;
pub(super) use status::{FlushState, QpStartup, Snapshot, Status};

use super::{traits::QpConnection, Qp};
use iwarp::{
    qp::{next, Event, State},
    Terminate,
};
use kernel::{prelude::*, sync::Arc};
use rdma::qp::{QpAttr, QpState};

impl Qp {
    /// Returns the state and the connection. Process context or softirq: in softirq the socket's
    /// callback keeps the connection, so the reference never becomes the last one.
    pub(super) fn snapshot(&self) -> Snapshot {
        let status = self.status.lock();

        Snapshot {
            state: status.state,
            connection: status.connection.clone(),
        }
    }

    /// Returns the connection of the queue pair. Process context or softirq, as for
    /// [`Self::snapshot`].
    pub(crate) fn connection(&self) -> Option<Arc<dyn QpConnection>> {
        self.status.lock().connection.clone()
    }

    /// Whether data is received: the state is RTS, DRAINING or CLOSING, and the queue pair is not
    /// being destroyed. Any context.
    pub(super) fn is_stream_active(&self) -> bool {
        matches!(
            self.current.load(),
            Some(State::Rts | State::Draining | State::Closing)
        )
    }

    /// Whether posted WRs are flushed, or the queue pair is being destroyed. WRs that are posted in
    /// CLOSING are flushed when the connection has ended. Any context.
    pub(super) fn is_in_error(&self) -> bool {
        matches!(
            self.current.load(),
            Some(State::Terminate | State::Error) | None
        )
    }

    /// Applies an event to the state, and starts the work that the new state needs. Process context
    /// or softirq; the caller holds none of the queue pair's locks except `tx`. Returns `None` if
    /// the event means nothing in the present state.
    pub(super) fn event(self: &Arc<Self>, event: Event) -> Option<()> {
        self.event_noting(event, None, || ()).map(|_| ())
    }

    /// Applies an event as [`Self::event`] does. `terminate` is for the peer, if the event makes
    /// this side send one. Calls `note` if the stream was open before: neither it nor this side's
    /// half of it had ended. No lock but `tx` is held then. Neither the connection nor another
    /// transmit pass has learned of the event. Returns whether the stream was open.
    pub(super) fn event_noting(
        self: &Arc<Self>,
        event: Event,
        terminate: Option<Terminate>,
        note: impl FnOnce(),
    ) -> Option<bool> {
        let (was, now, connection, draining) = {
            let mut status = self.status.lock();
            let was = status.state;
            let transition = next(was, event)?;

            // Before the state admits events of the stream.
            trace::qp_state(&**self, was, transition.state, event);
            if transition.send_terminate && status.terminate.is_none() {
                status.terminate = terminate;
            }
            let mut draining = None;
            match transition.state {
                State::Draining if was == State::Rts => {
                    self.stream.close_reads();
                    match event {
                        // Nothing was outstanding.
                        Event::PeerClosed => self.stream.sq.end_now(),
                        _ => draining = Some(self.stream.sq.generation()),
                    }
                }
                // From the moment when the consumer learns of the state, the WRs that it posts are
                // flushed. A transmit run may be at work.
                State::Terminate | State::Error => self.stream.sq.end_now(),
                _ => {}
            }
            // Last: a transmit pass that reads the state without the lock finds the queues as they
            // are in it.
            self.enter(&mut status, transition.state);
            (was, transition.state, status.connection.clone(), draining)
        };
        let was_open = matches!(was, State::Rts | State::Draining);

        if was_open {
            note();
        }
        if let Some(generation) = draining {
            self.stream.sq.end(generation);
        }
        if was == State::Rts && now != State::Rts {
            if let Some(connection) = connection {
                connection.as_arc_borrow().ending();
            }
        }
        // The transmitter handles the new state.
        self.hasten();
        Some(was_open)
    }

    fn enter(&self, status: &mut Status, state: State) {
        status.state = state;
        self.current.store(state, status.destroyed);
    }

    /// Whether the stream ends with an error that this side or the peer has found. Process context.
    pub(crate) fn has_failed(&self) -> bool {
        self.status.lock().state == State::Terminate
    }

    /// Takes the Terminate that is due. Process context.
    pub(super) fn take_terminate(&self) -> Option<Terminate> {
        self.status.lock().terminate.take()
    }

    /// Binds the queue pair to a connection. Process context or softirq. Fails with `EINVAL` if the
    /// queue pair cannot be connected.
    pub(crate) fn attach(&self, connection: Arc<dyn QpConnection>) -> Result {
        let mut status = self.status.lock();

        if status.destroyed || status.state != State::Idle || status.connection.is_some() {
            return Err(EINVAL);
        }
        status.connection = Some(connection);
        Ok(())
    }

    /// Notes that the connection is gone. Process context.
    pub(crate) fn detach(self: &Arc<Self>) {
        // After a graceful close, too: the verbs leave a connection only through ERROR. The
        // connection is still there, so the queue pair is not reset before, and the event is not of
        // a later stream.
        self.event(Event::Lost);
        let connection = self.status.lock().connection.take();
        // Not under the lock.
        drop(connection);
    }

    /// Notes the startup of a new connection. Process context.
    pub(super) fn set_startup(&self, startup: QpStartup) {
        self.status.lock().attributes.startup = Some(startup);
    }

    /// Returns the startup of the connection, or of the last one. Process context.
    pub(super) fn startup(&self) -> Option<QpStartup> {
        self.status.lock().attributes.startup
    }

    /// Notes that the queue pair is being destroyed: the stream is not active any more, and no
    /// connection can be attached. Process context. Returns the connection.
    pub(super) fn mark_destroyed(&self) -> Option<Arc<dyn QpConnection>> {
        let mut status = self.status.lock();

        status.destroyed = true;
        self.current.store(status.state, true);
        status.connection.clone()
    }

    /// Notes the state that the verbs report while the queue pair is not connected. Process
    /// context. Fails with `EINVAL` after the end of a connection.
    pub(super) fn set_unconnected(&self, state: QpState) -> Result {
        let mut status = self.status.lock();

        match status.state {
            State::Idle => status.attributes.unconnected = state,
            State::Rts => {}
            _ => return Err(EINVAL),
        }
        Ok(())
    }

    /// Notes the access flags of the consumer. Process context.
    pub(super) fn set_access(&self, access: u32) {
        self.status.lock().attributes.access = access;
    }

    /// Returns to IDLE, without the traces of the connection. Process context; the caller holds
    /// `tx`. Fails with `EINVAL` in a state without a way back, or if there still is a connection.
    pub(super) fn reset_state(&self) -> Result {
        let mut status = self.status.lock();
        let was = status.state;
        let transition = next(was, Event::Reset).ok_or(EINVAL)?;

        if status.connection.is_some() {
            return Err(EINVAL);
        }
        self.enter(&mut status, transition.state);
        trace::qp_state(self, was, transition.state, Event::Reset);
        status.attributes.unconnected = QpState::Init;
        status.attributes.startup = None;
        status.terminate = None;
        status.flush = FlushState::default();
        Ok(())
    }

    /// Calls `f` if the queue pair is not connected and has not been. The state stays meanwhile.
    /// Process context; `f` must not sleep.
    pub(super) fn if_unconnected<R>(&self, f: impl FnOnce() -> R) -> Option<R> {
        let status = self.status.lock();

        (status.state == State::Idle).then(f)
    }

    /// Reports the attributes. Process context.
    pub(crate) fn query(&self, attr: &mut QpAttr<'_>) {
        let status = self.status.lock();

        attr.set_state(match status.state {
            State::Idle => status.attributes.unconnected,
            State::Rts => QpState::ReadyToSend,
            State::Draining | State::Closing => QpState::Draining,
            State::Terminate | State::Error => QpState::Error,
        });
        attr.set_access(status.attributes.access);
        attr.set_cap(self.cap);
        attr.set_signal_all(self.stream.sq.signals_all());
        attr.set_port();
        let (ord, ird) = (status.attributes.startup)
            .map_or((0, 0), |QpStartup { parameters, .. }| {
                (parameters.ord, parameters.ird)
            });
        attr.set_read_depths(
            ord.try_into().unwrap_or(u8::MAX),
            ird.try_into().unwrap_or(u8::MAX),
        );
    }
}
