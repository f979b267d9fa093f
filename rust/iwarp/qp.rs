// SPDX-License-Identifier: GPL-2.0

//! The states of a queue pair and the effect of each event (RFC 5040 §6, §7). The iWARP verbs
//! define the states. `states.md` has a drawing.

/// A state of a queue pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Not connected; no work outstanding.
    Idle,
    /// Connected: work is processed.
    Rts,
    /// The user or the peer closes. Outstanding work is processed; then this side closes its half.
    Draining,
    /// This side has closed its half of the connection. The peer may still send.
    Closing,
    /// The stream ends with an error: this side sends a Terminate or has received one. All work is
    /// flushed, and the connection closes gracefully behind the data already sent.
    Terminate,
    /// Not connected, or about to be closed: as [`Terminate`](Self::Terminate), but without a
    /// Terminate Message.
    Error,
}

/// An event of a queue pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// MPA startup has succeeded.
    Established,
    /// The user closes.
    Close,
    /// No work is outstanding.
    Drained,
    /// The user closes at once or moves the queue pair to Error.
    Abort,
    /// The peer closed its half at a boundary; no work of this side is outstanding.
    PeerClosed,
    /// The peer closed its half inside a message or an FPDU, or with work of this side outstanding.
    PeerClosedEarly,
    /// This side found an error, local or in received data, and must report it to the peer.
    Failed,
    /// The peer sent a Terminate.
    TerminateReceived,
    /// The connection is gone: both sides closed it, it was reset or lost, or the close timed out.
    /// The verbs require Error even after a clean close.
    Lost,
    /// The user resets the queue pair for reuse.
    Reset,
}

/// The effect of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transition {
    /// The new state.
    pub state: State,
    /// Send a Terminate, and nothing after it (RFC 5040 §5.4).
    pub send_terminate: bool,
}

/// Goes to `state` without a Terminate.
const fn to(state: State) -> Transition {
    Transition {
        state,
        send_terminate: false,
    }
}

/// Returns the effect of `event` in `state`, or `None` if the event has no meaning there. The
/// caller then refuses a user's request and ignores any other event.
///
/// ```
/// use iwarp::qp::{next, Event, State};
///
/// let failed = next(State::Rts, Event::Failed);
/// assert!(failed.is_some_and(|failed| failed.send_terminate));
/// // Once this side has closed its half, it cannot send a Terminate.
/// let failed = next(State::Closing, Event::Failed);
/// assert!(failed.is_some_and(|failed| !failed.send_terminate));
/// // A connected queue pair cannot be reset.
/// assert_eq!(next(State::Rts, Event::Reset), None);
/// ```
pub const fn next(state: State, event: Event) -> Option<Transition> {
    let failed = Transition {
        state: State::Terminate,
        send_terminate: true,
    };
    Some(match (state, event) {
        (State::Idle, Event::Established) => to(State::Rts),
        (State::Idle, Event::Abort) => to(State::Error),
        (State::Idle, Event::Reset) => to(State::Idle),

        (State::Rts, Event::Close | Event::PeerClosed) => to(State::Draining),
        (State::Rts, Event::Abort) => to(State::Error),
        // The peer can no longer report how the outstanding work ended.
        (State::Rts, Event::PeerClosedEarly) => failed,
        (State::Rts, Event::Failed) => failed,
        // A received Terminate is answered with a close (RFC 5040 §6.2.1).
        (State::Rts, Event::TerminateReceived) => to(State::Terminate),
        (State::Rts, Event::Lost) => to(State::Error),

        // As long as this half is open, it can send a Terminate.
        (State::Draining, Event::Drained) => to(State::Closing),
        (State::Draining, Event::PeerClosed) => to(State::Draining),
        (State::Draining, Event::Abort) => to(State::Error),
        (State::Draining, Event::Failed | Event::PeerClosedEarly) => failed,
        (State::Draining, Event::TerminateReceived) => to(State::Terminate),
        (State::Draining, Event::Lost) => to(State::Error),

        // The peer may close second, or both sides close at once.
        (State::Closing, Event::PeerClosed) => to(State::Closing),
        (State::Closing, Event::Abort) => to(State::Error),
        // This side's half is closed: it cannot send a Terminate.
        (State::Closing, Event::Failed | Event::PeerClosedEarly) => to(State::Error),
        (State::Closing, Event::TerminateReceived) => to(State::Terminate),
        (State::Closing, Event::Lost) => to(State::Error),

        // The first error counts (RFC 5040 §7.1 rule 4).
        (State::Terminate, Event::Failed | Event::TerminateReceived) => to(State::Terminate),
        (State::Terminate, Event::PeerClosed | Event::PeerClosedEarly) => to(State::Terminate),
        (State::Terminate, Event::Abort) => to(State::Error),
        (State::Terminate, Event::Lost) => to(State::Error),

        (State::Error, Event::Abort) => to(State::Error),
        (State::Error, Event::Reset) => to(State::Idle),

        _ => return None,
    })
}
