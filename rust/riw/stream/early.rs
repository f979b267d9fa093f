// SPDX-License-Identifier: GPL-2.0

//! Placing before delivery (RFC 5041, section 5.3): the payload of an RDMA Write that has arrived
//! before an earlier segment of the stream.

use super::{copy::place, Stream};
use crate::{link::EarlyWrite, mr::Sink};
use iwarp::{Access, Segment};

impl Stream {
    /// Places the payload of an RDMA Write whose turn has not come. Process context; `rx` is held,
    /// so that the end of the stream waits for it, as for a delivery. If it cannot be placed, the
    /// segment waits for its turn: then it is checked again, and an error is reported.
    pub(super) fn place_early(&self, early: EarlyWrite<'_>) {
        let Segment::Write { stag, to, len, .. } = early.segment else {
            return;
        };
        let Ok(target) = self.regions.find(stag, Access::REMOTE_WRITE, to, len) else {
            return;
        };
        let all = 0..early.payload.len();
        let sink = Sink::Region(&target);

        if place(&early.payload, all, &self.sq, &sink, 0).is_ok() {
            early.set_placed();
        }
    }
}
