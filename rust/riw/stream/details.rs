// SPDX-License-Identifier: GPL-2.0

//! How far a stream and its queues are, for an administrator to see.

use super::Stream;
use crate::queue::send_state::SendDepth;
use rdma::restrack::{Details, DetailsWriter, MessageFull};

/// The work of a stream. The parts are taken one after the other, so they may be of slightly
/// different moments.
pub(crate) struct StreamDetails {
    sends: SendDepth,
    /// Posted receive WRs; `None` if other queue pairs share the queue.
    receives: Option<u32>,
    /// Reads of this side that wait for their responses.
    reads_out: u32,
    /// Reads of the peer whose responses are due.
    reads_in: u32,
}

impl Stream {
    /// Returns the work of the stream. Process context. It does not wait for a transmit pass.
    pub(crate) fn details(&self) -> StreamDetails {
        let (reads_out, reads_in) = self.reads.lock().in_flight();

        StreamDetails {
            sends: self.sq.depth(),
            receives: self.rq.posted(),
            reads_out,
            reads_in,
        }
    }
}

impl Details for StreamDetails {
    fn write(&self, to: &mut DetailsWriter<'_>) -> Result<(), MessageFull> {
        to.u32(c"sq_posted", self.sends.posted)?;
        to.u32(c"sq_begun", self.sends.begun)?;
        if let Some(receives) = self.receives {
            to.u32(c"rq_posted", receives)?;
        }
        to.u32(c"reads_out", self.reads_out)?;
        to.u32(c"reads_in", self.reads_in)
    }
}
