// SPDX-License-Identifier: GPL-2.0

//! modify_qp.

use super::Qp;
use iwarp::qp::{Event, State};
use kernel::{prelude::*, sync::Arc};
use rdma::qp::{QpAttr, QpState};

impl Qp {
    /// Changes attributes. Process context; may sleep. Fails with `EINVAL` for a state that the
    /// present one does not lead to.
    pub(crate) fn modify(self: &Arc<Self>, attr: &QpAttr<'_>) -> Result {
        if let Some(state) = attr.state()? {
            self.change_state(state)?;
        }
        if let Some(access) = attr.access() {
            self.set_access(access);
        }
        Ok(())
    }

    fn change_state(self: &Arc<Self>, state: QpState) -> Result {
        match state {
            QpState::Init | QpState::ReadyToReceive => self.set_unconnected(state),
            // Only connection management leads there.
            QpState::ReadyToSend => match self.snapshot().state {
                State::Rts => Ok(()),
                _ => Err(EINVAL),
            },
            QpState::Draining => match self.event(Event::Close) {
                None if self.snapshot().state == State::Idle => Err(EINVAL),
                // A second disconnect finds the first.
                _ => Ok(()),
            },
            QpState::Error => self.event(Event::Abort).ok_or(EINVAL),
            QpState::Reset => self.reset(),
            QpState::SendError => Err(EINVAL),
        }
    }

    /// Returns to IDLE with empty queues.
    fn reset(self: &Arc<Self>) -> Result {
        // No transmit run is at work meanwhile, and the next one sees the new state.
        let mut tx = self.stream.tx.lock();

        self.reset_state()?;
        self.pass_turn(self.stream.reset(&mut tx));
        Ok(())
    }
}
