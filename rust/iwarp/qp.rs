// SPDX-License-Identifier: GPL-2.0

//! The states of a queue pair, and what each event does to it (RFC 5040 §6, §7; the states are
//! those that the iWARP verbs name).

/// A state of a queue pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Not connected, and nothing outstanding.
    Idle,
    /// Connected: work is processed.
    Rts,
    /// This side closes, or answers the peer's close, without anything outstanding.
    Closing,
    /// The stream ends with an error: a Terminate is being sent or was received.
    Terminate,
    /// Not connected; what is or will be posted is flushed.
    Error,
}

/// What can happen to a queue pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// MPA's startup has succeeded.
    Established,
    /// The user wants to close, and no work is outstanding.
    Close,
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
    /// This side's half of the connection is to be closed gracefully, behind what is being sent.
    pub close: bool,
    /// The connection is to be reset.
    pub reset: bool,
    /// All work is to be completed as flushed.
    pub flush: bool,
}

/// Goes to `state`, doing nothing.
const fn to(state: State) -> Transition {
    Transition {
        state,
        send_terminate: false,
        close: false,
        reset: false,
        flush: false,
    }
}

/// Where `event` takes a queue pair that is in `state`; `None` if it has no meaning there. A
/// user's request is then refused, and anything else ignored.
pub const fn next(state: State, event: Event) -> Option<Transition> {
    let closing = Transition {
        close: true,
        ..to(State::Closing)
    };
    let failed = Transition {
        send_terminate: true,
        close: true,
        flush: true,
        ..to(State::Terminate)
    };
    // The peer's Terminate is answered by a close (RFC 5040 §6.2.1).
    let terminated = Transition {
        close: true,
        flush: true,
        ..to(State::Terminate)
    };
    let aborted = Transition {
        reset: true,
        flush: true,
        ..to(State::Error)
    };
    let error = Transition {
        flush: true,
        ..to(State::Error)
    };
    Some(match (state, event) {
        (State::Idle, Event::Established) => to(State::Rts),
        (State::Idle, Event::Abort) => error,
        (State::Idle, Event::Reset) => to(State::Idle),

        (State::Rts, Event::Close | Event::PeerClosed) => closing,
        (State::Rts, Event::Abort) => aborted,
        // Nothing can come any more that would say how the outstanding work ended.
        (State::Rts, Event::PeerClosedEarly) => failed,
        (State::Rts, Event::Failed) => failed,
        (State::Rts, Event::TerminateReceived) => terminated,
        (State::Rts, Event::Lost) => error,

        // The peer may close second, or both at a time.
        (State::Closing, Event::PeerClosed) => to(State::Closing),
        (State::Closing, Event::Abort) => aborted,
        // This side's half is closed: no Terminate can be sent.
        (State::Closing, Event::Failed | Event::PeerClosedEarly) => aborted,
        (State::Closing, Event::TerminateReceived) => Transition {
            flush: true,
            ..to(State::Terminate)
        },
        (State::Closing, Event::Lost) => error,

        // The first error counts (RFC 5040 §7.1 rule 4).
        (State::Terminate, Event::Failed | Event::TerminateReceived) => to(State::Terminate),
        (State::Terminate, Event::PeerClosed | Event::PeerClosedEarly) => to(State::Terminate),
        (State::Terminate, Event::Abort) => aborted,
        (State::Terminate, Event::Lost) => error,

        (State::Error, Event::Abort) => to(State::Error),
        (State::Error, Event::Reset) => to(State::Idle),

        _ => return None,
    })
}
