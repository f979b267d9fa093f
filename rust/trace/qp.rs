// SPDX-License-Identifier: GPL-2.0

//! Events of a queue pair and its stream.

use crate::tracepoint::{call, is_enabled};
use iwarp::{
    qp::{Event, State},
    TermCode,
};
use rdma::{Device, Driver};
use riw_bindings as bindings;

/// The queue pair that an event is about.
pub trait Source {
    /// The driver of its device.
    type Driver: Driver;

    /// Returns its device. Any context.
    fn device(&self) -> &Device<Self::Driver>;

    /// Returns its number. Any context.
    fn number(&self) -> u32;
}

/// Traces an event of a queue pair, and the states before and after.
#[inline]
pub fn qp_state(qp: &impl Source, from: State, to: State, event: Event) {
    if is_enabled!(qp_state) {
        // SAFETY: The device is borrowed, so it is alive.
        unsafe {
            call!(qp_state(
                qp.device().as_raw(),
                qp.number(),
                state_number(from),
                state_number(to),
                event_number(event),
            ))
        }
    }
}

/// Traces an error that ends the stream of a queue pair: its Terminate code, and the rule that was
/// broken.
#[inline]
pub fn stream_error(qp: &impl Source, code: TermCode, rule: &str) {
    if is_enabled!(stream_error) {
        let TermCode { layer, etype, code } = code;

        // SAFETY: The device and `rule` are borrowed, so they are alive.
        unsafe {
            call!(stream_error(
                qp.device().as_raw(),
                qp.number(),
                layer,
                etype,
                code,
                rule.as_ptr(),
                rule.len(),
            ))
        }
    }
}

/// Traces a Terminate that a queue pair sends.
#[inline]
pub fn terminate_tx(qp: &impl Source, code: TermCode) {
    if is_enabled!(terminate_tx) {
        let TermCode { layer, etype, code } = code;

        // SAFETY: The device is borrowed, so it is alive.
        unsafe {
            call!(terminate_tx(
                qp.device().as_raw(),
                qp.number(),
                layer,
                etype,
                code
            ))
        }
    }
}

/// Traces a Terminate that a queue pair has received.
#[inline]
pub fn terminate_rx(qp: &impl Source, code: TermCode) {
    if is_enabled!(terminate_rx) {
        let TermCode { layer, etype, code } = code;

        // SAFETY: The device is borrowed, so it is alive.
        unsafe {
            call!(terminate_rx(
                qp.device().as_raw(),
                qp.number(),
                layer,
                etype,
                code
            ))
        }
    }
}

fn state_number(state: State) -> u32 {
    match state {
        State::Idle => bindings::riw_qp_state_RIW_QP_IDLE,
        State::Rts => bindings::riw_qp_state_RIW_QP_RTS,
        State::Draining => bindings::riw_qp_state_RIW_QP_DRAINING,
        State::Closing => bindings::riw_qp_state_RIW_QP_CLOSING,
        State::Terminate => bindings::riw_qp_state_RIW_QP_TERMINATE,
        State::Error => bindings::riw_qp_state_RIW_QP_ERROR,
    }
}

fn event_number(event: Event) -> u32 {
    match event {
        Event::Established => bindings::riw_qp_event_RIW_QP_ESTABLISHED,
        Event::Close => bindings::riw_qp_event_RIW_QP_CLOSE,
        Event::Drained => bindings::riw_qp_event_RIW_QP_DRAINED,
        Event::Abort => bindings::riw_qp_event_RIW_QP_ABORT,
        Event::PeerClosed => bindings::riw_qp_event_RIW_QP_PEER_CLOSED,
        Event::PeerClosedEarly => bindings::riw_qp_event_RIW_QP_PEER_CLOSED_EARLY,
        Event::Failed => bindings::riw_qp_event_RIW_QP_FAILED,
        Event::TerminateReceived => bindings::riw_qp_event_RIW_QP_TERMINATE_RECEIVED,
        Event::Lost => bindings::riw_qp_event_RIW_QP_LOST,
        Event::Reset => bindings::riw_qp_event_RIW_QP_RESET,
    }
}
