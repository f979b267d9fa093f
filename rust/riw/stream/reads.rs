// SPDX-License-Identifier: GPL-2.0

//! RDMA Reads and atomic operations in flight, of this side and of the peer.
//!
//! An atomic operation counts as a read: it has its place among the reads, in the order of the
//! requests, and takes part of ORD and IRD (RFC 7306, section 5.2). Where this file says read, it
//! means both.

use crate::queue::{
    fifo::Fifo,
    wr::{AtomicSink, WrId},
};
use iwarp::{
    AtomicRequest, AtomicResponse, Error, Outstanding, Quote, Rdmap, ReadRequest, Segment,
};
use kernel::prelude::*;
use kernel_ext::memcg::MemCgroup;

/// A read of this side.
pub(super) struct Outbound {
    /// The number of its WR in the send queue; `None` for the read that opens a connection.
    pub(super) number: Option<u32>,
    /// The MSN of the request.
    pub(super) msn: u32,
    pub(super) awaited: AwaitedResponse,
}

/// The response that a read of this side waits for.
pub(super) enum AwaitedResponse {
    /// Of an RDMA Read: the sink, and how much of the data has arrived.
    ReadResponse(Outstanding),
    AtomicResponse {
        /// The identifier of the request.
        id: u32,
        /// Where the original value goes. For a kernel user it can be memory that is lent until the
        /// WR completes.
        sink: AtomicSink,
    },
    /// None: the peer has refused the request.
    Nothing,
}

impl AwaitedResponse {
    /// Gives up the memory that is lent for an original value. Any context. Returns the id of the
    /// WR, if memory was lent.
    #[must_use]
    pub(super) fn give_up_sink(self) -> Option<WrId> {
        match self {
            Self::AtomicResponse { sink, .. } => sink.give_up(),
            Self::ReadResponse(_) | Self::Nothing => None,
        }
    }
}

/// A read of the peer, with the MSN of its request, for a Terminate to quote.
#[derive(Clone, Copy)]
pub(super) enum Inbound {
    Read { request: ReadRequest, msn: u32 },
    Atomic { request: AtomicRequest, msn: u32 },
}

impl Inbound {
    /// Returns the quote for a Terminate, after `sent` bytes of the response. Any context.
    pub(super) fn quote(&self, sent: u32) -> Quote {
        match self {
            Self::Read { request, msn } => Quote::read_request(*msn, &request.advanced(sent)),
            Self::Atomic { msn, .. } => Quote::atomic_request(*msn),
        }
    }
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

/// Memory for the queues of a stream that starts later.
pub(super) struct ReadsRoom {
    outbound: Fifo<Outbound>,
    inbound: Fifo<Inbound>,
    /// For a peer that requests a larger IRD.
    inbound_max: Fifo<Inbound>,
}

impl ReadsRoom {
    /// Allocates queues of at most these depths. `ird_max`: as of
    /// [`Stream::start_room`](super::Stream::start_room). Process context; may sleep. Fails with
    /// `ENOMEM` without memory.
    pub(super) fn new(memcg: &MemCgroup, ord: u32, ird: u32, ird_max: u32) -> Result<Self> {
        let inbound = Fifo::charged_to(memcg, ird.max(1))?;

        Ok(Self {
            outbound: Fifo::charged_to(memcg, ord.max(1))?,
            inbound_max: match ird_max > inbound.size() {
                true => Fifo::charged_to(memcg, ird_max)?,
                false => Fifo::empty(),
            },
            inbound,
        })
    }

    /// Returns the queues for these depths, and frees what they do not need. Process context. Fails
    /// with `EINVAL` if there is no room for them.
    pub(super) fn take(self, ord: u32, ird: u32) -> Result<Reads> {
        let inbound = match ird > self.inbound.size() {
            true => self.inbound_max,
            false => self.inbound,
        };

        if ord > self.outbound.size() || ird > inbound.size() {
            return Err(EINVAL);
        }
        Ok(Reads {
            outbound: self.outbound,
            ord,
            inbound,
            ird,
            closing: false,
            tx_blocked: false,
        })
    }
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

    /// Returns the number of reads of this side, and of the peer. Any context.
    pub(super) fn in_flight(&self) -> (u32, u32) {
        (self.outbound.len(), self.inbound.len())
    }

    /// Returns the number in the send queue of the read that a Terminate refuses by quoting `msn`,
    /// and the read with the response that it has waited for. siw quotes a wrong MSN: if no read
    /// has it, the Terminate means the oldest read. Any context.
    pub(super) fn refused(&mut self, msn: u32) -> Option<(u32, Outbound)> {
        let quoted = (0..self.outbound.len()).find_map(|at| {
            let number = self.outbound.number(at);
            let outbound = self.outbound.get(number)?;
            (outbound.msn == msn).then_some(number)
        });
        let outbound = match quoted {
            Some(number) => self.outbound.get(number),
            None => self.outbound.front(),
        }?;

        let number = outbound.number?;
        let refused = Outbound {
            number: outbound.number,
            msn: outbound.msn,
            awaited: core::mem::replace(&mut outbound.awaited, AwaitedResponse::Nothing),
        };

        Some((number, refused))
    }

    /// Checks a segment of a Read Response against the oldest read of this side. Any context. Fails
    /// if that waits for another response.
    pub(super) fn accept(&mut self, segment: &Segment) -> Result<(), Error> {
        let oldest = self.outbound.front().map(|oldest| &mut oldest.awaited);

        match (oldest, segment) {
            (
                Some(AwaitedResponse::ReadResponse(progress)),
                Segment::ReadResponse {
                    stag,
                    to,
                    len,
                    last,
                },
            ) => progress.accept(*stag, *to, *len, *last).map(drop),
            _ => Err(Rdmap::UnexpectedOpcode.into()),
        }
    }

    /// Checks an Atomic Response against the oldest read of this side. Any context. Returns where
    /// the original value goes. Fails if that read waits for another response.
    pub(super) fn accept_atomic(
        &mut self,
        response: &AtomicResponse,
    ) -> Result<&AtomicSink, Error> {
        match self.outbound.front().map(|oldest| &oldest.awaited) {
            Some(AwaitedResponse::AtomicResponse { id, sink }) if *id == response.id => Ok(sink),
            Some(AwaitedResponse::AtomicResponse { .. }) => Err(Rdmap::WrongResponse.into()),
            _ => Err(Rdmap::UnexpectedOpcode.into()),
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

    /// Refuses further reads of the peer. Reads that are here still get their responses. Any
    /// context.
    pub(super) fn close(&mut self) {
        self.closing = true;
    }
}
