// SPDX-License-Identifier: GPL-2.0

//! Asynchronous events.
//!
//! C sources: `core/cache.c`, `core/device.c`

use crate::{device::Device, Driver};
use kernel::ffi::c_void;
use kernel_ext::net::NetDevice;
use riw_bindings as bindings;

/// An asynchronous event (`enum ib_event_type`, `include/rdma/ib_verbs.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AsyncEvent {
    /// A completion queue overflowed.
    CqError,
    /// A queue pair went to ERROR, and no completion gives the reason.
    QpFatal,
    /// The peer sent an invalid request.
    QpRequestError,
    /// The peer requested an access that it is not allowed.
    QpAccessError,
    /// A queue pair in ERROR has consumed its last WR from the shared receive queue.
    LastWqeReached,
    /// The number of WRs in a shared receive queue dropped below the limit.
    SrqLimit,
    /// The GID of a port changed.
    GidChange,
}

impl AsyncEvent {
    fn code(self) -> bindings::ib_event_type {
        match self {
            AsyncEvent::CqError => bindings::ib_event_type_IB_EVENT_CQ_ERR,
            AsyncEvent::QpFatal => bindings::ib_event_type_IB_EVENT_QP_FATAL,
            AsyncEvent::QpRequestError => bindings::ib_event_type_IB_EVENT_QP_REQ_ERR,
            AsyncEvent::QpAccessError => bindings::ib_event_type_IB_EVENT_QP_ACCESS_ERR,
            AsyncEvent::LastWqeReached => bindings::ib_event_type_IB_EVENT_QP_LAST_WQE_REACHED,
            AsyncEvent::SrqLimit => bindings::ib_event_type_IB_EVENT_SRQ_LIMIT_REACHED,
            AsyncEvent::GidChange => bindings::ib_event_type_IB_EVENT_GID_CHANGE,
        }
    }
}

/// The event handler of an object (`event_handler` of `struct ib_qp` and others).
type Handler = Option<unsafe extern "C" fn(*mut bindings::ib_event, *mut c_void)>;

/// Calls an object's event handler, if it has one. Any context; the caller holds no lock that the
/// handler could take.
///
/// # Safety
///
/// `handler` and `context` must belong to the object in `element`. The object and `device` must be
/// alive.
pub(crate) unsafe fn raise(
    handler: Handler,
    context: *mut c_void,
    device: *mut bindings::ib_device,
    event: AsyncEvent,
    element: bindings::ib_event__bindgen_ty_1,
) {
    let mut event = bindings::ib_event {
        device,
        element,
        event: event.code(),
    };

    if let Some(handler) = handler {
        // SAFETY: By the caller's promise the object is alive, so its handler may be called with
        // its own context. `event` names the object, and is valid during the call.
        unsafe { handler(&mut event, context) };
    }
}

impl<T: Driver> Device<T> {
    /// Dispatches an event of the device's port to all registered handlers (`ib_dispatch_event()`,
    /// `core/cache.c`). Any context.
    ///
    /// The handlers run later, from a workqueue. The event is lost if there is no memory.
    pub fn port_event(&self, event: AsyncEvent) {
        let event = bindings::ib_event {
            device: self.as_raw(),
            element: bindings::ib_event__bindgen_ty_1 { port_num: 1 },
            event: event.code(),
        };

        // SAFETY: `self` is a live device, and ib_dispatch_event() copies the event. Unregistration
        // of the device flushes that workqueue.
        unsafe { bindings::ib_dispatch_event(&event) };
    }

    /// Dispatches a port event if the state of `netdev` differs from the last one reported
    /// (`ib_dispatch_port_state_event()`, `core/device.c`). Process context.
    ///
    /// ib_core does so itself, except for bonds, teams and their ports.
    pub fn port_changed(&self, netdev: &NetDevice) {
        // SAFETY: `self` and `netdev` are references, so both structs are alive during the call,
        // and ib_core takes its own locks.
        unsafe { bindings::ib_dispatch_port_state_event(self.as_raw(), netdev.as_raw()) };
    }
}
