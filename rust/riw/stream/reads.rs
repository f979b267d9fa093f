// SPDX-License-Identifier: GPL-2.0

//! RDMA Reads under way: those of this side, and those of the peer.

use crate::queue::fifo::Fifo;
use iwarp::{Outstanding, ReadRequest};
use kernel::prelude::*;

/// A read that this side has asked for.
pub(crate) struct Outbound {
    /// The number of its request in the send queue; none if it was only to open the connection.
    pub(crate) number: Option<u32>,
    /// The number of the message that asked for it.
    pub(crate) msn: u32,
    /// Where the data goes, and how much of it has come.
    pub(crate) progress: Outstanding,
}

/// A read that the peer has asked for.
#[derive(Clone, Copy)]
pub(crate) struct Inbound {
    /// What it asks for.
    pub(crate) request: ReadRequest,
    /// The number of the message that asked for it, for a Terminate to quote.
    pub(crate) msn: u32,
}

/// Both queues, of the depths that the connection's startup has settled.
pub(crate) struct Reads {
    /// At most ORD.
    pub(crate) outbound: Fifo<Outbound>,
    ord: u32,
    /// At most IRD.
    pub(crate) inbound: Fifo<Inbound>,
    ird: u32,
    /// The stream is closing: the peer may ask for no other read.
    closing: bool,
    /// Who transmits has found something that must wait for the end of a read of this side.
    pub(crate) awaited: bool,
}

impl Reads {
    /// For a queue pair that is not connected.
    pub(crate) const fn none() -> Self {
        Self {
            outbound: Fifo::empty(),
            ord: 0,
            inbound: Fifo::empty(),
            ird: 0,
            closing: false,
            awaited: false,
        }
    }

    /// With these depths. May sleep.
    pub(crate) fn new(ord: u32, ird: u32) -> Result<Self> {
        Ok(Self {
            outbound: Fifo::new(ord.max(1))?,
            ord,
            inbound: Fifo::new(ird.max(1))?,
            ird,
            closing: false,
            awaited: false,
        })
    }

    /// The send queue's number of the read that a Terminate refuses by quoting `msn`: the read with
    /// that MSN. siw quotes a wrong MSN; with one that no read has, the oldest read is meant.
    pub(crate) fn refused(&mut self, msn: u32) -> Option<u32> {
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

    /// Whether the startup has left this side no read at all.
    pub(crate) fn may_never_ask(&self) -> bool {
        self.ord == 0
    }

    /// Whether this side may ask for another read.
    pub(crate) fn may_ask(&self) -> bool {
        self.outbound.len() < self.ord
    }

    /// Whether the peer may ask for another read.
    pub(crate) fn may_be_asked(&self) -> bool {
        !self.closing && self.inbound.len() < self.ird
    }

    /// The stream begins to close: reads of the peer that are here are still answered, others are
    /// refused.
    pub(crate) fn close(&mut self) {
        self.closing = true;
    }
}
