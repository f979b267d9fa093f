// SPDX-License-Identifier: GPL-2.0

//! RDMA Reads in flight: those of this side, and those of the peer.

use crate::queue::fifo::Fifo;
use iwarp::{Outstanding, ReadRequest, Stag};
use kernel::prelude::*;

/// A read of this side.
pub(super) struct Outbound {
    /// The number of its WR in the send queue; `None` for the read that opens a connection.
    pub(super) number: Option<u32>,
    /// The MSN of the Read Request.
    pub(super) msn: u32,
    /// The sink, and how much of the data has arrived.
    pub(super) progress: Outstanding,
    /// The STag that its completion invalidates.
    pub(super) invalidate: Option<Stag>,
}

/// A read of the peer.
#[derive(Clone, Copy)]
pub(super) struct Inbound {
    pub(super) request: ReadRequest,
    /// The MSN of the Read Request, for a Terminate to quote.
    pub(super) msn: u32,
}

/// The reads in flight, in queues of the depths that the startup agreed on.
pub(super) struct Reads {
    /// At most ORD.
    pub(super) outbound: Fifo<Outbound>,
    ord: u32,
    /// At most IRD.
    pub(super) inbound: Fifo<Inbound>,
    ird: u32,
    /// The stream is closing: the peer may begin no other read.
    closing: bool,
    /// The transmitter waits for the end of a read of this side, which must wake it.
    pub(super) tx_blocked: bool,
}

impl Reads {
    /// Creates queues for a stream that is not connected. Any context.
    pub(super) const fn none() -> Self {
        Self {
            outbound: Fifo::empty(),
            ord: 0,
            inbound: Fifo::empty(),
            ird: 0,
            closing: false,
            tx_blocked: false,
        }
    }

    /// Creates queues of these depths. Process context; may sleep. Fails with `ENOMEM` without memory.
    pub(super) fn new(ord: u32, ird: u32) -> Result<Self> {
        Ok(Self {
            outbound: Fifo::new(ord.max(1))?,
            ord,
            inbound: Fifo::new(ird.max(1))?,
            ird,
            closing: false,
            tx_blocked: false,
        })
    }

    /// Returns the number of reads of this side, and of the peer. Any context.
    pub(super) fn in_flight(&self) -> (u32, u32) {
        (self.outbound.len(), self.inbound.len())
    }

    /// Returns the number in the send queue of the read that a Terminate refuses by quoting `msn`.
    /// siw quotes a wrong MSN: if no read has it, the Terminate means the oldest read. Any context.
    pub(super) fn refused(&mut self, msn: u32) -> Option<u32> {
        let quoted = (0..self.outbound.len()).find_map(|at| {
            let number = self.outbound.number(at);
            let outbound = self.outbound.get(number)?;
            (outbound.msn == msn).then_some(outbound.number)
        });

        match quoted {
            Some(number) => number,
            None => self.outbound.front().and_then(|oldest| oldest.number),
        }
    }

    /// Whether the startup left this side no reads. Any context.
    pub(super) fn ord_is_zero(&self) -> bool {
        self.ord == 0
    }

    /// Whether this side may begin no other read now. Any context.
    pub(super) fn ord_reached(&self) -> bool {
        self.outbound.len() >= self.ord
    }

    /// Whether the peer may begin another read. Any context.
    pub(super) fn peer_may_read(&self) -> bool {
        !self.closing && self.inbound.len() < self.ird
    }

    /// Refuses further reads of the peer. Those that are here still get their responses. Any context.
    pub(super) fn close(&mut self) {
        self.closing = true;
    }
}
