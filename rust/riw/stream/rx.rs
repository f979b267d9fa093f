// SPDX-License-Identifier: GPL-2.0

//! The state of the receiving side.

use crate::{
    counters::Counters,
    queue::{qp_receive::QpRecvQueue, receive::NextTurn, wr::WrId},
    stream::{
        filling::{Filling, Written},
        framing::RxFraming,
        start::Start,
        wait::ReceiveWait,
    },
};
use core::num::NonZeroUsize;
use kernel::sync::Arc;
use net::RecvBuf;

/// Where an incomplete FPDU lies, if there is one.
pub(super) enum Incomplete {
    /// In the socket, which keeps it until it is complete.
    InSocket,
    /// In the socket, which has no room for all of it: it needs a buffer of this size. So many times there was no
    /// memory for one.
    NoRoom { size: NonZeroUsize, failures: u32 },
    /// In a buffer of its own.
    InBuffer(RecvBuf),
}

impl Incomplete {
    /// Notes that the socket has room for the FPDU that it has, or the size of the buffer that the FPDU needs.
    /// Returns whether the buffer is to be requested now. `look`: a worker looks. After a failure only a timer sets
    /// the pace, not the peer, until another size is needed.
    pub(super) fn set_room(&mut self, needed: Option<NonZeroUsize>, look: bool) -> bool {
        *self = match (core::mem::replace(self, Self::InSocket), needed) {
            (buffer @ Self::InBuffer(_), _) => buffer,
            (Self::InSocket | Self::NoRoom { .. }, None) => Self::InSocket,
            (Self::InSocket, Some(size)) => Self::NoRoom { size, failures: 0 },
            (Self::NoRoom { size, failures }, Some(needed)) => Self::NoRoom {
                size: needed,
                failures: if size == needed { failures } else { 0 },
            },
        };
        match self {
            Self::NoRoom { failures, .. } => look || *failures == 0,
            Self::InSocket | Self::InBuffer(_) => false,
        }
    }

    /// Returns the size of the buffer that the FPDU needs; `None` if it needs none.
    pub(super) fn buffer_size(&self) -> Option<NonZeroUsize> {
        match self {
            Self::NoRoom { size, .. } => Some(*size),
            Self::InSocket | Self::InBuffer(_) => None,
        }
    }
}

/// The receiving side of a stream.
pub(super) struct Rx {
    /// `None` before the stream has started, and when nothing more may be placed.
    pub(super) receiver: Option<RxFraming>,
    /// The receive WR that a message is being placed into.
    pub(super) filling: Filling,
    pub(super) written: Written,
    pub(super) incomplete: Incomplete,
    /// Bytes in the socket: of an incomplete FPDU, or all from a waiting message on. Over SCTP, the bytes
    /// of a waiting chunk.
    pub(super) left: usize,
    /// The last run has spent its budget, and a worker receives the rest: complete FPDUs may be in the
    /// socket.
    pub(super) rest: bool,
    /// The wait of the message at the front, if there is no receive WR for it. It is not in `filling`
    /// then.
    pub(super) wait: Option<ReceiveWait>,
    /// The counters of the receiving side.
    pub(super) counters: Arc<Counters>,
}

impl Rx {
    /// Creates the receiving side of a stream that is not connected. Any context.
    pub(super) fn new(counters: Arc<Counters>) -> Self {
        Self {
            receiver: None,
            filling: Filling::none(),
            written: Written::default(),
            incomplete: Incomplete::InSocket,
            left: 0,
            rest: false,
            wait: None,
            counters,
        }
    }

    /// Starts the receiving side. Process context.
    pub(super) fn start(&mut self, start: &Start<'_>) {
        *self = Self {
            receiver: Some(RxFraming::new(start.transport, start.parameters)),
            ..Self::new(self.counters.clone())
        };
    }

    /// Places nothing more, and leaves the line of `rq`. The receive WR stays, to be flushed. Returns the
    /// queue pair that waits next for the same queue.
    pub(super) fn end(&mut self, rq: &QpRecvQueue) -> NextTurn {
        self.receiver = None;
        self.incomplete = Incomplete::InSocket;
        self.rest = false;
        match self.wait.take() {
            Some(_) => rq.leave(),
            None => NextTurn::default(),
        }
    }

    /// Places nothing more, and drops the receive WR, as [`Self::end`] does.
    pub(super) fn stop(&mut self, rq: &QpRecvQueue) -> NextTurn {
        self.filling.take();
        self.end(rq)
    }

    /// Whether octets of the peer may be placed.
    pub(super) fn may_place(&self) -> bool {
        self.receiver.is_some()
    }

    /// Takes the receive WR that was being filled. Returns its id.
    pub(super) fn take_filling(&mut self) -> Option<WrId> {
        self.filling.take()
    }

    /// Whether the stream is between messages.
    pub(super) fn at_boundary(&self) -> bool {
        let held = match &self.incomplete {
            Incomplete::InBuffer(buffer) => buffer.len(),
            Incomplete::InSocket | Incomplete::NoRoom { .. } => 0,
        };

        self.receiver
            .as_ref()
            .is_none_or(|receiver| receiver.at_boundary(held.saturating_add(self.left)))
    }
}
