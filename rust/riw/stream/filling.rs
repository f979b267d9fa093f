// SPDX-License-Identifier: GPL-2.0

//! The state of a message that is being received, between two of its segments.

use crate::{
    mr::{Finder, Sink},
    queue::{
        send::SendQueue,
        wr::{Buffers, Sge, WrId},
    },
    stream::copy::{place, Unplaced},
};
use core::ops::Range;
use iwarp::{Access, Segment};
use net::Unread;

/// The receive WR that a message is being placed into, if there is one. Its buffers have one place
/// for all WRs.
pub(super) struct Filling {
    pub(super) buffers: Buffers,
    /// The id of the WR, and the size of its buffers in bytes.
    pub(super) wr: Option<(WrId, u32)>,
}

impl Filling {
    /// Returns no WR. Any context.
    pub(super) const fn none() -> Self {
        Self {
            buffers: Buffers::none(),
            wr: None,
        }
    }

    /// Takes the WR: the consumer has its buffers again. Returns its id.
    pub(super) fn take(&mut self) -> Option<WrId> {
        let lent = self.buffers.give_up();
        let (id, _) = self.wr.take()?;

        Some(lent.unwrap_or(id))
    }

    /// Returns the size of the buffers in bytes; 0 if there is no WR. Any context.
    pub(super) fn room(&self) -> u32 {
        self.wr.as_ref().map_or(0, |(_, room)| *room)
    }

    /// Copies octets to the buffers, `at` bytes from the start of the message. Process context or
    /// softirq. `sq` is for traces.
    pub(super) fn scatter(
        &self,
        sq: &SendQueue,
        finder: &mut Finder<'_>,
        at: u32,
        octets: &Unread<'_>,
        mut from: Range<usize>,
    ) -> Result<(), Unplaced> {
        for part in self.buffers.parts(at, from.len()) {
            let Sge { addr, len, stag } = part?;
            // CAST: A 32-bit number fits, and it is at most the length of the range.
            let middle = from.start.saturating_add(len as usize);
            let part = from.start..middle;

            match self.buffers.memory(stag, addr, len) {
                Some(memory) => place(octets, part, sq, &Sink::Memory(memory), 0)?,
                None => {
                    let target = finder.find(stag, Access::LOCAL_WRITE, addr, len)?;

                    place(octets, part, sq, &Sink::Region(&target), 0)?;
                    finder.keep(target);
                }
            }
            from.start = middle;
        }
        match from.is_empty() {
            true => Ok(()),
            false => Err(Unplaced::TooLong),
        }
    }
}

/// The length of the RDMA Write that the peer has sent last, if no other request came behind it:
/// verbs report it with the Immediate Data that follows.
#[derive(Default)]
pub(super) struct Written {
    /// In bytes. Longer Writes than a message may have count modulo 2^32.
    bytes: u32,
    /// More of the Write is to come.
    open: bool,
}

impl Written {
    /// Notes a segment that is placed. Responses do not count: they can come in between. Any
    /// context.
    pub(super) fn note(&mut self, segment: &Segment) {
        match segment {
            Segment::Write { len, last, .. } => {
                let before = if self.open { self.bytes } else { 0 };

                self.bytes = before.wrapping_add(*len);
                self.open = !last;
            }
            Segment::Send { .. } => *self = Self::default(),
            Segment::ReadResponse { .. } => {}
        }
    }

    /// Returns the length, and forgets it. Any context.
    pub(super) fn take(&mut self) -> u32 {
        core::mem::take(self).bytes
    }
}
