// SPDX-License-Identifier: GPL-2.0

//! Events of connection management.

use crate::tracepoint::{call, is_enabled};
use core::net::SocketAddr;
use kernel::{bindings::__kernel_sockaddr_storage, prelude::*};
use rdma::{Device, Driver};
use riw_bindings as bindings;

/// A phase of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum CmPhase {
    /// Waits for its connection.
    New = bindings::riw_cm_phase_RIW_CM_NEW,
    /// Waits for the transport.
    Connecting = bindings::riw_cm_phase_RIW_CM_CONNECTING,
    /// Waits for the MPA Reply.
    AwaitReply = bindings::riw_cm_phase_RIW_CM_AWAIT_REPLY,
    /// Waits for the MPA Request.
    AwaitRequest = bindings::riw_cm_phase_RIW_CM_AWAIT_REQUEST,
    /// Waits until the backlog of the consumer has room.
    Queued = bindings::riw_cm_phase_RIW_CM_QUEUED,
    /// Waits for the consumer to accept or reject.
    Reported = bindings::riw_cm_phase_RIW_CM_REPORTED,
    /// Waits for the first FPDU.
    AwaitFirst = bindings::riw_cm_phase_RIW_CM_AWAIT_FIRST,
    /// Established.
    Rdma = bindings::riw_cm_phase_RIW_CM_RDMA,
    /// Ended.
    Closed = bindings::riw_cm_phase_RIW_CM_CLOSED,
}

/// A connection that enters another phase.
pub struct PhaseChange<'a, T: Driver> {
    /// The device, if it is registered.
    pub device: Option<&'a Device<T>>,
    /// The number of the endpoint, which its device does not reuse.
    pub endpoint: u64,
    /// The number of the queue pair, if there is one.
    pub qpn: Option<u32>,
    /// The phase before.
    pub from: CmPhase,
    /// The phase after.
    pub to: CmPhase,
    /// Why the connection ends, if it does so.
    pub reason: &'a str,
    /// The error that stands for the reason, if the connection was not established.
    pub error: Option<Error>,
    /// The address of this side, if it is known.
    pub local: Option<SocketAddr>,
    /// The address of the peer, if it is known.
    pub remote: Option<SocketAddr>,
}

/// Whether changes of phase are traced: [`cm_phase`] does nothing otherwise.
#[inline]
pub fn cm_phase_enabled() -> bool {
    is_enabled!(cm_phase)
}

/// Traces a change of phase.
#[cold]
pub fn cm_phase<T: Driver>(change: &PhaseChange<'_, T>) {
    if !cm_phase_enabled() {
        return;
    }
    let local = storage(change.local);
    let remote = storage(change.remote);

    // SAFETY: The device is borrowed, or null, which the event checks. `reason` has that length,
    // and the addresses are valid: all are borrowed until the call returns.
    unsafe {
        call!(cm_phase(
            change
                .device
                .map_or(core::ptr::null(), |dev| dev.as_raw().cast_const()),
            change.endpoint,
            change.qpn.unwrap_or(0),
            // CAST: The enum has the values of the C enum.
            change.from as u32,
            change.to as u32,
            change.error.map_or(0, Error::to_errno),
            change.reason.as_ptr(),
            change.reason.len(),
            &local,
            &remote,
        ))
    }
}

/// Returns an address as C stores it; zeroes if it is not known.
fn storage(addr: Option<SocketAddr>) -> __kernel_sockaddr_storage {
    addr.as_ref()
        .map_or_else(Default::default, kernel_ext::net::addr::to_storage)
}
