// SPDX-License-Identifier: GPL-2.0

//! The state table of a queue pair, as a snapshot: what changes here changes what a peer and a
//! user see, and has to be meant.

use iwarp::qp::{next, Event, State};

const STATES: [State; 5] = [
    State::Idle,
    State::Rts,
    State::Closing,
    State::Terminate,
    State::Error,
];

const EVENTS: [Event; 9] = [
    Event::Established,
    Event::Close,
    Event::Abort,
    Event::PeerClosed,
    Event::PeerClosedEarly,
    Event::Failed,
    Event::TerminateReceived,
    Event::Lost,
    Event::Reset,
];

fn table() -> String {
    let mut out = String::new();
    for state in STATES {
        for event in EVENTS {
            let Some(t) = next(state, event) else {
                continue;
            };
            let mut does = String::new();
            for (set, name) in [
                (t.send_terminate, " terminate"),
                (t.close, " close"),
                (t.reset, " reset"),
                (t.flush, " flush"),
            ] {
                if set {
                    does += name;
                }
            }
            out += &format!("{state:?} {event:?} -> {:?}{does}\n", t.state);
        }
    }
    out
}

const SNAPSHOT: &str = "\
Idle Established -> Rts
Idle Abort -> Error flush
Idle Reset -> Idle
Rts Close -> Closing close
Rts Abort -> Error reset flush
Rts PeerClosed -> Closing close
Rts PeerClosedEarly -> Terminate terminate close flush
Rts Failed -> Terminate terminate close flush
Rts TerminateReceived -> Terminate close flush
Rts Lost -> Error flush
Closing Abort -> Error reset flush
Closing PeerClosed -> Closing
Closing PeerClosedEarly -> Error reset flush
Closing Failed -> Error reset flush
Closing TerminateReceived -> Terminate flush
Closing Lost -> Error flush
Terminate Abort -> Error reset flush
Terminate PeerClosed -> Terminate
Terminate PeerClosedEarly -> Terminate
Terminate Failed -> Terminate
Terminate TerminateReceived -> Terminate
Terminate Lost -> Error flush
Error Abort -> Error
Error Reset -> Idle
";

#[test]
fn the_table_is_as_it_was() {
    assert_eq!(table(), SNAPSHOT);
}

#[test]
fn a_terminate_is_sent_at_most_once() {
    // Only Rts sends one, and leaves for a state that never leads back to Rts.
    for state in STATES {
        for event in EVENTS {
            let Some(t) = next(state, event) else {
                continue;
            };
            if t.send_terminate {
                assert_eq!((state, t.state), (State::Rts, State::Terminate));
            }
        }
    }
}

#[test]
fn every_way_to_an_error_flushes() {
    for state in [State::Idle, State::Rts, State::Closing] {
        for event in EVENTS {
            if let Some(t) = next(state, event) {
                let bad = matches!(t.state, State::Terminate | State::Error);
                assert_eq!(t.flush, bad, "{state:?} {event:?}");
            }
        }
    }
}
