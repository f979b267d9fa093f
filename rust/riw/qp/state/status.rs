// SPDX-License-Identifier: GPL-2.0

//! The types of the state. Only [`state`](super) can change their fields, but for those that other
//! concerns of the queue pair keep here: see [`Status`].

use crate::{
    link::Transport,
    qp::{
        push::PushHandle,
        sweep::SweepPlace,
        traits::{QpConnection, Role},
    },
};
use iwarp::{qp::State, startup::Parameters, Terminate};
use kernel::sync::Arc;
use rdma::qp::QpState;

/// The state, and the data that changes with it.
pub(in crate::qp) struct Status {
    pub(super) state: State,
    /// The queue pair is being destroyed.
    pub(super) destroyed: bool,
    pub(super) connection: Option<Arc<dyn QpConnection>>,
    /// The Terminate that is due to the peer.
    pub(super) terminate: Option<Terminate>,
    pub(super) attributes: QpAttributes,
    pub(in crate::qp) flush: FlushState,
    /// The place in the sweep of the device.
    pub(in crate::qp) sweep: SweepPlace,
    /// The handle of the timer for messages that wait.
    pub(in crate::qp) push: PushHandle,
}

/// Attributes that the verbs report.
pub(super) struct QpAttributes {
    /// The state that they report in IDLE: INIT, in which receives may be posted, or RTR if the
    /// consumer has moved there. An RNIC has no RESET.
    pub(super) unconnected: QpState,
    /// The access flags that the consumer has set. riw reports them, but does not enforce them:
    /// librdmacm sets none for an iWARP queue pair. The access flags of each region limit the peer.
    pub(super) access: u32,
    /// The startup of the connection, or of the last one; `None` before the first one and after a
    /// reset.
    pub(super) startup: Option<QpStartup>,
}

/// The result of a connection's startup.
#[derive(Clone, Copy)]
pub(in crate::qp) struct QpStartup {
    pub(in crate::qp) transport: Transport,
    pub(in crate::qp) parameters: Parameters,
    pub(in crate::qp) role: Role,
}

impl Status {
    /// Creates the state of a new queue pair with this place in the sweep of its device. Any
    /// context.
    pub(in crate::qp) fn new(sweep: SweepPlace) -> Self {
        Self {
            state: State::Idle,
            destroyed: false,
            connection: None,
            terminate: None,
            attributes: QpAttributes {
                unconnected: QpState::Init,
                access: 0,
                startup: None,
            },
            flush: FlushState::default(),
            sweep,
            push: None,
        }
    }

    /// Whether WRs are flushed. Any context.
    pub(in crate::qp) fn is_in_error(&self) -> bool {
        matches!(self.state, State::Terminate | State::Error)
    }

    /// Whether the queue pair is being destroyed. Any context.
    pub(in crate::qp) fn is_destroyed(&self) -> bool {
        self.destroyed
    }
}

/// The state and the connection, at one moment.
pub(in crate::qp) struct Snapshot {
    pub(in crate::qp) state: State,
    pub(in crate::qp) connection: Option<Arc<dyn QpConnection>>,
}

/// The flush state of a queue pair in ERROR.
#[derive(Default)]
pub(in crate::qp) struct FlushState {
    /// `LAST_WQE_REACHED` has been reported.
    pub(in crate::qp) last_wqe_reported: bool,
    /// The interval between flushes in milliseconds; 0 after a flush that found WRs.
    pub(in crate::qp) interval_ms: u32,
}
