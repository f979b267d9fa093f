// SPDX-License-Identifier: GPL-2.0

//! How full completion queues and shared receive queues are, for an administrator to see.

use super::{completion::Cq, receive::RecvQueue};
use crate::abi;
use kernel::prelude::*;
use rdma::restrack::{Details, DetailsWriter, MessageFull};

/// The details of a completion queue.
pub(crate) struct CqDetails {
    /// Completions that the process has not polled.
    used: u32,
    overflowed: bool,
    /// The flags by which the process has armed the queue.
    armed: u32,
}

impl CqDetails {
    /// Collects the details. Process context.
    pub(crate) fn new(cq: &Cq) -> Self {
        let (used, overflowed) = cq.fill_level();

        Self {
            used,
            overflowed,
            armed: cq.armed(),
        }
    }
}

impl Details for CqDetails {
    fn write(&self, to: &mut DetailsWriter<'_>) -> Result<(), MessageFull> {
        let armed: &CStr = if self.armed & abi::NOTIFY_NEXT != 0 {
            c"next"
        } else if self.armed & abi::NOTIFY_SOLICITED != 0 {
            c"solicited"
        } else {
            c"no"
        };

        to.u32(c"used", self.used)?;
        to.u32(c"overflowed", self.overflowed.into())?;
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
