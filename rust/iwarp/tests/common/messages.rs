// SPDX-License-Identifier: GPL-2.0

//! Random messages for property tests, and the messages in recorded calls.

use super::Event;
use iwarp::*;
use proptest::collection::vec;
use proptest::prelude::*;

pub fn stag() -> impl Strategy<Value = Stag> {
    any::<u32>().prop_map(Stag)
}

pub fn read_request() -> impl Strategy<Value = ReadRequest> {
    (stag(), any::<u64>(), any::<u32>(), stag(), any::<u64>()).prop_map(
        |(sink_stag, sink_to, len, src_stag, src_to)| ReadRequest {
            sink_stag,
            sink_to,
            len,
            src_stag,
            src_to,
        },
    )
}

fn atomic_request() -> impl Strategy<Value = AtomicRequest> {
    (any::<bool>(), any::<u32>(), stag(), any::<[u64; 5]>()).prop_map(
        |(add, id, stag, [to, data, mask, compare, compare_mask])| AtomicRequest {
            op: if add {
                AtomicOp::FetchAdd { add: data, mask }
            } else {
                AtomicOp::CmpSwap {
                    swap: data,
                    swap_mask: mask,
                    compare,
                    compare_mask,
                }
            },
            id,
            stag,
            to,
        },
    )
}

/// Messages that are valid in any order, with their payload.
pub fn message() -> impl Strategy<Value = (Message, Vec<u8>)> {
    let payload = || prop_oneof![vec(any::<u8>(), 0..40), vec(any::<u8>(), 0..6000)];
    let none = || Just(Vec::new());
    prop_oneof![
        (
            (any::<bool>(), proptest::option::of(stag())).prop_map(|(solicited, invalidate)| {
                Message::Send {
                    solicited,
                    invalidate,
                }
            }),
            payload()
        ),
        (
            (stag(), any::<u64>()).prop_map(|(stag, to)| Message::Write { stag, to }),
            payload()
        ),
        (
            (stag(), any::<u64>()).prop_map(|(stag, to)| Message::ReadResponse { stag, to }),
            payload()
        ),
        (read_request().prop_map(Message::ReadRequest), none()),
        (atomic_request().prop_map(Message::AtomicRequest), none()),
        (
            (any::<u32>(), any::<u64>()).prop_map(|(id, original)| Message::AtomicResponse(
                AtomicResponse { id, original }
            )),
            none()
        ),
        (
            (any::<[u8; 8]>(), any::<bool>())
                .prop_map(|(data, solicited)| Message::Immediate { data, solicited }),
            none()
        ),
    ]
}

/// A received message with its joined payload.
#[derive(Debug, PartialEq)]
pub struct Got {
    pub message: Message,
    pub payload: Vec<u8>,
}

/// Returns the message of a segment that is `at` octets from its start. Checks its number and
/// offset; `sends` is the number of Sends before.
fn message_of(segment: &Segment, at: u64, sends: &mut u32) -> Message {
    match *segment {
        Segment::Send {
            msn,
            mo,
            solicited,
            invalidate,
            last,
            ..
        } => {
            assert_eq!(u64::from(mo), at);
            assert_eq!(msn, *sends + 1);
            *sends += u32::from(last);
            Message::Send {
                solicited,
                invalidate,
            }
        }
        Segment::Write { stag, to, .. } => Message::Write {
            stag,
            to: to.wrapping_sub(at),
        },
        Segment::ReadResponse { stag, to, .. } => Message::ReadResponse {
            stag,
            to: to.wrapping_sub(at),
        },
    }
}

/// Joins segments to messages. Checks the order of numbers and offsets.
pub fn assemble(events: &[Event]) -> Vec<Got> {
    let mut all: Vec<Got> = Vec::new();
    let (mut sends, mut requests, mut responses) = (0_u32, 0_u32, 0_u32);
    let mut open = false;
    for event in events {
        let message = match *event {
            Event::Segment(segment, ref data) => {
                let at = if open {
                    all.last().unwrap().payload.len() as u64
                } else {
                    0
                };
                let message = message_of(&segment, at, &mut sends);
                if open {
                    let got = all.last_mut().unwrap();
                    assert_eq!(got.message, message);
                    got.payload.extend_from_slice(data);
                } else {
                    let payload = data.clone();
                    all.push(Got { message, payload });
                }
                open = !segment.last();
                continue;
            }
            Event::ReadRequest(request, msn) => {
                requests += 1;
                assert_eq!(msn, requests);
                Message::ReadRequest(request)
            }
            Event::AtomicRequest(request, msn) => {
                requests += 1;
                assert_eq!(msn, requests);
                Message::AtomicRequest(request)
            }
            Event::AtomicResponse(response, msn) => {
                responses += 1;
                assert_eq!(msn, responses);
                Message::AtomicResponse(response)
            }
            Event::Immediate(data, solicited, msn) => {
                sends += 1;
                assert_eq!(msn, sends);
                Message::Immediate { data, solicited }
            }
            Event::Terminated(terminate) => Message::Terminate(terminate),
        };
        assert!(!open);
        all.push(Got {
            message,
            payload: Vec::new(),
        });
    }
    all
}
