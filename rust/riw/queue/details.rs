// SPDX-License-Identifier: GPL-2.0

//! How full completion queues and shared receive queues are, for an administrator to see.

use super::{
    completion::{Arm, Cq, FillLevel},
    receive::RecvQueue,
};
use kernel::prelude::*;
use rdma::restrack::{Details, DetailsWriter, MessageFull};

/// The details of a completion queue.
pub(crate) struct CqDetails(FillLevel);

impl CqDetails {
    /// Collects the details. Process context.
    pub(crate) fn new(cq: &Cq) -> Self {
        Self(cq.fill_level())
    }
}

impl Details for CqDetails {
    fn write(&self, to: &mut DetailsWriter<'_>) -> Result<(), MessageFull> {
        let armed: &CStr = match self.0.armed {
            Some(Arm::Next) => c"next",
            Some(Arm::Solicited) => c"solicited",
            None => c"no",
        };

        to.u32(c"used", self.0.used)?;
        to.u32(c"overflowed", self.0.overflowed.into())?;
        to.text(c"armed", armed)
    }
}

/// The details of a shared receive queue.
pub(crate) struct SrqDetails {
    /// Posted WRs that no queue pair has taken.
    posted: u32,
    size: u32,
    /// The limit event is due when fewer WRs are left; 0: never.
    limit: u32,
}

impl SrqDetails {
    /// Collects the details. Process context.
    pub(crate) fn new(srq: &RecvQueue) -> Self {
        Self {
            posted: srq.posted(),
            size: srq.len(),
            limit: srq.attr().srq_limit,
        }
    }
}

impl Details for SrqDetails {
    fn write(&self, to: &mut DetailsWriter<'_>) -> Result<(), MessageFull> {
        to.u32(c"posted", self.posted)?;
        to.u32(c"size", self.size)?;
        to.u32(c"limit", self.limit)
    }
}
