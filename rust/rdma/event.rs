// SPDX-License-Identifier: GPL-2.0

//! Asynchronous events.

use crate::{device::Device, Driver};
use kernel::ffi::c_void;
use riw_bindings as bindings;

/// What can happen to an object without being asked for (`enum ib_event_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A completion queue has overflowed.
    CqError,
    /// A queue pair went to ERROR for a reason that no completion tells.
    QpFatal,
    /// A work request of the peer was wrong in itself.
    QpRequestError,
    /// A work request of the peer asked for what it may not.
    QpAccessError,
    /// A queue pair in ERROR has taken the last request that it will from its shared receive queue.
    LastWqeReached,
    /// A shared receive queue has fewer requests than its limit.
    SrqLimit,
    /// The address of a port has changed.
    GidChange,
}

impl Event {
    fn code(self) -> bindings::ib_event_type {
        match self {
            Event::CqError => bindings::ib_event_type_IB_EVENT_CQ_ERR,
            Event::QpFatal => bindings::ib_event_type_IB_EVENT_QP_FATAL,
            Event::QpRequestError => bindings::ib_event_type_IB_EVENT_QP_REQ_ERR,
            Event::QpAccessError => bindings::ib_event_type_IB_EVENT_QP_ACCESS_ERR,
            Event::LastWqeReached => bindings::ib_event_type_IB_EVENT_QP_LAST_WQE_REACHED,
            Event::SrqLimit => bindings::ib_event_type_IB_EVENT_SRQ_LIMIT_REACHED,
            Event::GidChange => bindings::ib_event_type_IB_EVENT_GID_CHANGE,
        }
    }
}

/// The event handler of an object.
type Handler = Option<unsafe extern "C" fn(*mut bindings::ib_event, *mut c_void)>;

/// Calls an object's event handler. Any context.
///
/// # Safety
///
/// `handler` and `context` must be those of the object that `element` names, which must be alive,
/// as must be its `device`.
pub(crate) unsafe fn raise(
    handler: Handler,
    context: *mut c_void,
    device: *mut bindings::ib_device,
    event: Event,
    element: bindings::ib_event__bindgen_ty_1,
) {
    let mut event = bindings::ib_event {
        device,
        element,
        event: event.code(),
    };

    if let Some(handler) = handler {
        // SAFETY: By the caller's promise.
        unsafe { handler(&mut event, context) };
    }
}

impl<T: Driver> Device<T> {
    /// Reports an event of the device's port to everybody who listens. Any context.
    pub fn port_event(&self, event: Event) {
        let event = bindings::ib_event {
            device: self.as_raw(),
            element: bindings::ib_event__bindgen_ty_1 { port_num: 1 },
            event: event.code(),
        };

        // SAFETY: The device is registered as long as `self` can be used; the event is copied.
        unsafe { bindings::ib_dispatch_event(&event) };
    }

    /// Reports that the port can carry traffic, or cannot any more, to everybody who listens, if
    /// the state of its netdev says other than what was reported last. Process context.
    ///
    /// ib_core does so by itself, except for bonds and teams and their ports.
    pub fn port_changed(&self, netdev: &net::NetDevice) {
        // SAFETY: As above; the netdev is alive.
        unsafe { bindings::ib_dispatch_port_state_event(self.as_raw(), netdev.as_raw()) };
    }
}
