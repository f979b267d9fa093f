// SPDX-License-Identifier: GPL-2.0

//! The verbs states of a queue pair.

use riw_bindings as bindings;

/// The verbs state of a queue pair (`enum ib_qp_state`, `include/rdma/ib_verbs.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QpState {
    /// Newly created: nothing may be posted.
    Reset,
    /// Receives may be posted.
    Init,
    /// Ready to receive.
    ReadyToReceive,
    /// Ready to send.
    ReadyToSend,
    /// The send queue drains before it is closed (SQD).
    Draining,
    /// The send queue is in error (SQE).
    SendError,
    /// All WRs are flushed.
    Error,
}

impl QpState {
    pub(super) fn from_raw(state: bindings::ib_qp_state) -> Option<Self> {
        Some(match state {
            bindings::ib_qp_state_IB_QPS_RESET => Self::Reset,
            bindings::ib_qp_state_IB_QPS_INIT => Self::Init,
            bindings::ib_qp_state_IB_QPS_RTR => Self::ReadyToReceive,
            bindings::ib_qp_state_IB_QPS_RTS => Self::ReadyToSend,
            bindings::ib_qp_state_IB_QPS_SQD => Self::Draining,
            bindings::ib_qp_state_IB_QPS_SQE => Self::SendError,
            bindings::ib_qp_state_IB_QPS_ERR => Self::Error,
            _ => return None,
        })
    }

    pub(super) fn into_raw(self) -> bindings::ib_qp_state {
        match self {
            Self::Reset => bindings::ib_qp_state_IB_QPS_RESET,
            Self::Init => bindings::ib_qp_state_IB_QPS_INIT,
            Self::ReadyToReceive => bindings::ib_qp_state_IB_QPS_RTR,
            Self::ReadyToSend => bindings::ib_qp_state_IB_QPS_RTS,
            Self::Draining => bindings::ib_qp_state_IB_QPS_SQD,
            Self::SendError => bindings::ib_qp_state_IB_QPS_SQE,
            Self::Error => bindings::ib_qp_state_IB_QPS_ERR,
        }
    }
}
