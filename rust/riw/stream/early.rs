// SPDX-License-Identifier: GPL-2.0

//! Placing before delivery (RFC 5041, section 5.3): the payload of an RDMA Write that has arrived
//! before an earlier segment of the stream.

use super::{copy::place, Stream};
use crate::{link::RxOctets, mr::Sink};
use iwarp::{Access, Segment};

impl Stream {
    /// Places the payload of an RDMA Write whose turn has not come. Process context. Returns
    /// whether it is placed. If not, the segment waits for its turn: then it is checked again, and
    /// an error is reported.
    pub(crate) fn place_early(&self, segment: &Segment, payload: &[u8]) -> bool {
        let Segment::Write { stag, to, len, .. } = *segment else {
            return false;
        };
        // `stop` waits for it, as for a delivery.
        let rx = self.rx.lock();

        if !rx.may_place() {
            return false;
        }
        let Ok(target) = self.regions.find(stag, Access::REMOTE_WRITE, to, len) else {
            return false;
        };
        let unread = payload.into();
        let sink = Sink::Region(&target);

        place(
            &RxOctets::new(&unread),
            0..payload.len(),
            &self.sq,
            &sink,
            0,
        )
        .is_ok()
    }
}
