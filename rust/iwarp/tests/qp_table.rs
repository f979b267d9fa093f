// SPDX-License-Identifier: GPL-2.0

//! Snapshot of the queue pair's state table. A change here is visible to peers and users, and must
//! be intended.

use iwarp::qp::{next, Event, State};

const STATES: [State; 6] = [
    State::Idle,
    State::Rts,
    State::Draining,
    State::Closing,
    State::Terminate,
    State::Error,
];

const EVENTS: [Event; 10] = [
    Event::Established,
    Event::Close,
    Event::Drained,
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
            let does = if t.send_terminate { " terminate" } else { "" };
            out += &format!("{state:?} {event:?} -> {:?}{does}\n", t.state);
        }
    }
    out
}

/// The table as a drawing.
fn diagram() -> String {
    let mut out = String::from(
        "<!-- SPDX-License-Identifier: GPL-2.0 -->\n\
         <!-- Made from `next` of qp.rs: tests/qp_table.rs compares them. -->\n\n\
         ```mermaid\nstateDiagram-v2\n    [*] --> Idle\n",
    );

    for from in STATES {
        for to in STATES {
            let label = |event: &Event| match next(from, *event) {
                Some(t) if t.state != to => None,
                Some(t) if t.send_terminate => Some(format!("{event:?} (send Terminate)")),
                Some(_) => Some(format!("{event:?}")),
                None => None,
            };
            let labels: Vec<_> = EVENTS.iter().filter_map(label).collect();
            if !labels.is_empty() {
                out += &format!("    {from:?} --> {to:?}: {}\n", labels.join(", "));
            }
        }
    }
    out + "```\n"
}

const SNAPSHOT: &str = "\
Idle Established -> Rts
Idle Abort -> Error
Idle Reset -> Idle
Rts Close -> Draining
Rts Abort -> Error
Rts PeerClosed -> Draining
Rts PeerClosedEarly -> Terminate terminate
Rts Failed -> Terminate terminate
Rts TerminateReceived -> Terminate
Rts Lost -> Error
Draining Drained -> Closing
Draining Abort -> Error
Draining PeerClosed -> Draining
Draining PeerClosedEarly -> Terminate terminate
Draining Failed -> Terminate terminate
Draining TerminateReceived -> Terminate
Draining Lost -> Error
Closing Abort -> Error
Closing PeerClosed -> Closing
Closing PeerClosedEarly -> Error
Closing Failed -> Error
Closing TerminateReceived -> Terminate
Closing Lost -> Error
Terminate Abort -> Error
Terminate PeerClosed -> Terminate
Terminate PeerClosedEarly -> Terminate
Terminate Failed -> Terminate
Terminate TerminateReceived -> Terminate
Terminate Lost -> Error
Error Abort -> Error
Error Reset -> Idle
";

#[test]
fn the_table_is_as_it_was() {
    assert_eq!(table(), SNAPSHOT);
}

#[test]
fn the_drawing_is_of_this_table() {
    assert_eq!(diagram(), include_str!("../states.md"));
}

#[test]
fn a_terminate_is_sent_at_most_once() {
    // Only a state with an open half sends one, and the next state never leads back to such a
    // state.
    let open = [State::Rts, State::Draining];

    for state in STATES {
        for event in EVENTS {
            let Some(t) = next(state, event) else {
                continue;
            };
            if t.send_terminate {
                assert!(open.contains(&state), "{state:?} {event:?}");
                assert_eq!(t.state, State::Terminate);
            }
            if state == State::Terminate {
                assert!(!open.contains(&t.state), "{state:?} {event:?}");
            }
        }
    }
}

#[test]
fn the_only_way_back_from_an_error_is_a_reset() {
    let bad = [State::Terminate, State::Error];

    for state in bad {
        for event in EVENTS {
            if let Some(t) = next(state, event) {
                let back = (state, event, t.state) == (State::Error, Event::Reset, State::Idle);
                assert!(back || bad.contains(&t.state), "{state:?} {event:?}");
            }
        }
    }
}
