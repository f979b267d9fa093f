// SPDX-License-Identifier: GPL-2.0

//! The states of a queue pair, and what each event does to it (RFC 5040 §6, §7; the states are
//! those that the iWARP verbs name). `states.md` has a drawing.

/// A state of a queue pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Not connected, and nothing outstanding.
    Idle,
    /// Connected: work is processed.
    Rts,
    /// The consumer or the peer wants to close. Outstanding work is processed; then this side closes
    /// its half.
    Draining,
    /// This side has closed its half. The peer may still send.
    Closing,
    /// The stream ends with an error: a Terminate is being sent or was received. All work is
    /// completed as flushed, and the connection closed gracefully behind what has been sent.
    Terminate,
    /// Not connected, or not for long: as [`Terminate`](Self::Terminate), but nothing is said.
    Error,
}

/// What can happen to a queue pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// MPA's startup has succeeded.
    Established,
    /// The user wants to close.
    Close,
    /// No work is outstanding.
    Drained,
    /// The user wants to close at once, or moves the queue pair to Error.
    Abort,
    /// The peer closed its half, at a boundary, and no work of this side is outstanding.
    PeerClosed,
    /// The peer closed its half inside a message or an FPDU, or work of this side is outstanding.
    PeerClosedEarly,
    /// An error was found, in what came in or on this side, that the peer is to be told.
    Failed,
    /// A Terminate came from the peer.
    TerminateReceived,
    /// The connection is gone: closed by both sides, reset or lost, or a time-out for its close has
    /// passed. As the verbs have it, a queue pair goes to Error also if nothing was wrong.
    Lost,
    /// The user wants to use the queue pair afresh.
    Reset,
}

/// What an event leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transition {
    /// The state from now on.
    pub state: State,
    /// A Terminate is to be sent; nothing may be sent after it (RFC 5040 §5.4).
    pub send_terminate: bool,
}

/// Goes to `state`, which says all.
const fn to(state: State) -> Transition {
    Transition {
        state,
        send_terminate: false,
    }
}

/// Where `event` takes a queue pair that is in `state`; `None` if it has no meaning there. A
/// user's request is then refused, and anything else ignored.
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
        // Nothing can come any more that would say how the outstanding work ended.
        (State::Rts, Event::PeerClosedEarly) => failed,
        (State::Rts, Event::Failed) => failed,
        // The peer's Terminate is answered by a close (RFC 5040 §6.2.1).
        (State::Rts, Event::TerminateReceived) => to(State::Terminate),
        (State::Rts, Event::Lost) => to(State::Error),

        // As long as this half is open, a Terminate can be sent.
        (State::Draining, Event::Drained) => to(State::Closing),
        (State::Draining, Event::PeerClosed) => to(State::Draining),
        (State::Draining, Event::Abort) => to(State::Error),
        (State::Draining, Event::Failed | Event::PeerClosedEarly) => failed,
        (State::Draining, Event::TerminateReceived) => to(State::Terminate),
        (State::Draining, Event::Lost) => to(State::Error),

        // The peer may close second, or both at a time.
        (State::Closing, Event::PeerClosed) => to(State::Closing),
        (State::Closing, Event::Abort) => to(State::Error),
        // This side's half is closed: no Terminate can be sent.
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
