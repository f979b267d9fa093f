// SPDX-License-Identifier: GPL-2.0

//! A queue pair's RDMAP stream: moves messages between the queues of the queue pair and the
//! connection.
//!
//! Transmitting: [`transmit`] fills a batch, [`next`] chooses the next message, [`gather`] copies
//! its payload, [`coalesce`] lets small messages wait for more, [`handover`] has another CPU send
//! them. Receiving: [`receive`] pulls segments out of the link, [`place`] puts them into memory,
//! [`early`] before their turn, [`wait`] holds them back while no receive WR is posted. [`deliver`]
//! completes WRs in both directions, [`flush`] when the stream is over.
//!
//! The stream knows neither the state of the queue pair nor connection management. It returns its
//! results, and [`Qp`](crate::qp::Qp) acts on them.

mod coalesce;
mod copy;
mod deliver;
pub(crate) mod details;
mod early;
mod filling;
pub(crate) mod flush;
mod gather;
pub(crate) mod handover;
mod next;
mod place;
mod reads;
pub(crate) mod receive;
mod rx_state;
mod start;
mod tally;
pub(crate) mod transmit;
pub(crate) mod tx_state;
mod wait;

pub(crate) use start::{Start, StartRoom};

use crate::{
    counters::Counters,
    link::LinkRx,
    mr::Regions,
    queue::{qp_receive::QpRecvQueue, receive::NextTurn, send::SendQueue},
};
use iwarp::{Error, Local, Quote};
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        atomic::{ordering, Atomic},
        Arc, Mutex,
    },
};
use kernel_ext::{
    memcg::MemCgroup,
    sync::{new_bh_spinlock, BhSpinLock},
};
use reads::Reads;
use rx_state::Rx;
use tx_state::Tx;

/// The stream of a queue pair, with the queues that it serves.
#[pin_data]
pub(crate) struct Stream {
    /// The regions that WRs and the peer may name.
    regions: Regions,
    /// Memory that workers allocate for the stream is charged to this cgroup.
    memcg: MemCgroup,
    #[pin]
    pub(crate) sq: SendQueue,
    #[pin]
    pub(crate) rq: QpRecvQueue,
    #[pin]
    reads: BhSpinLock<Reads>,
    /// Whether the peer waits for the response to a read. Changes under `reads`, and may be read
    /// without it.
    response_due: Atomic<bool>,
    /// Whether this side may send. A responder may have to wait for the first FPDU of its peer
    /// (`Transport::lets_responder_begin`). Changes under `rx`, and may be read without it.
    may_send: Atomic<bool>,
    /// Whether the peer has sent something since the last doorbell.
    answered: Atomic<bool>,
    #[pin]
    pub(crate) tx: Mutex<Tx>,
    #[pin]
    rx: BhSpinLock<Rx>,
}

/// An error that ends the stream, and the part of the peer's message that the Terminate quotes.
pub(crate) struct StreamError {
    pub(crate) error: Error,
    pub(crate) quote: Quote,
}

impl StreamError {
    /// A failure of this side. It quotes no message of the peer.
    pub(crate) const fn local(failure: Local) -> Self {
        Self {
            error: Error::Local(failure),
            quote: Quote::NONE,
        }
    }
}

impl Stream {
    /// Creates a stream that is not connected, and counts in `counters`. Any context.
    pub(crate) fn new(
        regions: Regions,
        memcg: MemCgroup,
        counters: Arc<Counters>,
        sq: impl PinInit<SendQueue>,
        rq: impl PinInit<QpRecvQueue>,
    ) -> impl PinInit<Self> {
        pin_init!(Self {
            regions,
            memcg: memcg.clone(),
            sq <- sq,
            rq <- rq,
            reads <- new_bh_spinlock!(Reads::none(), "riw::Stream::reads"),
            response_due: Atomic::new(false),
            may_send: Atomic::new(false),
            answered: Atomic::new(false),
            tx <- new_mutex!(Tx::new(memcg.clone(), counters.clone()), "riw::Stream::tx"),
            rx <- new_bh_spinlock!(Rx::new(counters.clone()), "riw::Stream::rx"),
        })
    }

    /// Counts in `counters` from now on, and no more in those before. Process context; may sleep.
    pub(crate) fn set_counters(&self, counters: &Arc<Counters>) {
        let old = core::mem::replace(&mut self.tx.lock().counters, counters.clone());
        drop(old);
        let old = core::mem::replace(&mut self.rx.lock().counters, counters.clone());
        // This may free memory: not under the lock.
        drop(old);
    }

    /// Starts the stream, in the memory of `room`, with `link_rx` for its receiving side. The
    /// caller lets nothing transmit or receive before this returns. Process context; may sleep.
    /// Fails with `EINVAL` if the room is not for these depths.
    pub(crate) fn start(&self, start: Start<'_>, link_rx: LinkRx, room: StartRoom) -> Result {
        let may_send = start.may_send;
        let (reads, sender) = room.fill(start)?;

        self.tx.lock().start(sender);
        self.replace_reads(reads);
        {
            let mut rx = self.rx.lock();

            rx.start(link_rx);
            self.may_send.store(may_send, ordering::Relaxed);
        }
        Ok(())
    }

    /// Returns the memory cgroup that the stream's memory is charged to. Any context.
    pub(crate) fn memcg(&self) -> &MemCgroup {
        &self.memcg
    }

    /// Stops the stream: nothing more is sent or placed. Returns to the state of a new stream with
    /// empty queues, without anything that the consumer has lent or registered. On return, no
    /// transmit run or receive that began earlier is still at work. Process context; may sleep; the
    /// caller holds `tx`.
    pub(crate) fn reset(&self, tx: &mut Tx) -> NextTurn {
        tx.stop();
        let next = self.rx.lock().stop(&self.rq);
        self.regions.revoke();
        self.replace_reads(Reads::none());
        self.discard_wrs();
        next
    }

    /// Replaces the reads in flight. Process context; may sleep.
    fn replace_reads(&self, reads: Reads) {
        let old = {
            let mut current = self.reads.lock();

            self.response_due.store(false, ordering::Relaxed);
            core::mem::replace(&mut *current, reads)
        };
        // This frees memory: not under the lock.
        drop(old);
    }

    /// Whether this side may send. Any context.
    pub(crate) fn may_send(&self) -> bool {
        self.may_send.load(ordering::Relaxed)
    }

    /// Whether nothing is outstanding that the peer has yet to send: the stream is between
    /// messages, no read waits for its response, and no WR waits. Process context or softirq.
    pub(crate) fn is_quiet(&self) -> bool {
        let at_boundary = self.rx.lock().at_boundary();

        at_boundary && self.reads.lock().outbound.is_empty() && self.sq.is_quiet()
    }

    /// Refuses further reads of the peer, as the stream is closing. Process context or softirq.
    pub(crate) fn close_reads(&self) {
        self.reads.lock().close();
    }
}
