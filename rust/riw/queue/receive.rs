// SPDX-License-Identifier: GPL-2.0

//! Receive queues: of one queue pair, or shared by several (SRQ).

use crate::{
    abi::{self, siw, Provider, WrSizes},
    driver::Riw,
    limits::{self, ObjectCharge},
    queue::{
        counted::CountedRing,
        fifo::Fifo,
        line::Line,
        posted::PostedWrs,
        ring::Ring,
        wr::{Buffers, Posted, RecvWr},
    },
};
use kernel::{
    prelude::*,
    sync::{
        atomic::{ordering, Atomic},
        barrier,
    },
};
use kernel_ext::sync::{new_bh_spinlock, BhSpinLock};
use rdma::{
    pd::Pd,
    restrack::{Details, DetailsWriter, MessageFull},
    srq::SrqAttr,
    ContextUdata,
};
use riw_abi::{
    udata::{CreateSrqResponse, RingMap},
    wr::Rqe,
};

#[cfg(CONFIG_KUNIT = "y")]
#[path = "../kunit/receive.rs"]
mod kunit;

/// The verbs object of a shared receive queue.
pub(crate) type SrqObject = rdma::srq::Srq<Riw>;

/// Receive WRs as they are posted.
pub(crate) type RecvWrs = PostedWrs<RecvWr, { siw::RQE_WORDS }>;

/// Posted receive WRs.
#[pin_data]
pub(crate) struct RecvQueue {
    wrs: RecvWrs,
    #[pin]
    consumer: BhSpinLock<Consumer>,
    /// The first queue pair in the line; 0: none waits. Changes under `consumer`, and may be read
    /// without it.
    first_waiting: Atomic<u32>,
    max_sge: u32,
    _charge: Option<ObjectCharge>,
}

struct Consumer {
    /// Counts WRs taken: the number of the next one.
    get: u32,
    /// The SRQ limit event is due when fewer WRs than this are left; 0: never.
    limit: u32,
    /// The queue pairs that wait for a WR.
    line: Line,
}

/// A WR taken from a receive queue.
pub(crate) struct TakenWr {
    /// Its buffers are where the caller wanted them.
    pub(crate) wr: RecvWr,
    /// The queue has fallen below its limit, and the event is due.
    pub(crate) limit_reached: bool,
}

/// A queue pair that waits for a WR, and whose turn it is to take one that is posted, or to look at
/// the ring for one at intervals. It does not know yet: see
/// [`Qp::pass_turn`](crate::qp::Qp::pass_turn).
#[must_use]
#[derive(Clone, Copy, Default)]
pub(crate) struct NextTurn(pub(crate) Option<u32>);

impl NextTurn {
    /// Returns this one, or `other` if it is nobody's turn here. Any context.
    pub(crate) fn or(self, other: Self) -> Self {
        Self(self.0.or(other.0))
    }
}

impl RecvQueue {
    /// Creates a queue of `wrs`.
    pub(crate) fn new(
        wrs: RecvWrs,
        max_sge: u32,
        limit: u32,
        charge: Option<ObjectCharge>,
    ) -> impl PinInit<Self> {
        pin_init!(Self {
            wrs,
            consumer <- new_bh_spinlock!(
                Consumer { get: 0, limit, line: Line::new() },
                "riw::RecvQueue::consumer"
            ),
            first_waiting: Atomic::new(0),
            max_sge,
            _charge: charge,
        })
    }

    /// Creates a shared queue. Process context; may sleep.
    ///
    /// Fails with `EINVAL` for sizes that riw does not support, `ENOMEM` above the limit of queues
    /// or without memory.
    pub(crate) fn shared(
        pd: &Pd<Riw>,
        attr: &mut SrqAttr,
        udata: Option<ContextUdata<'_, Riw>>,
    ) -> Result<impl PinInit<Self>> {
        let dev = pd.device();
        let sizes = match &udata {
            None => WrSizes::SIW,
            Some(udata) => {
                abi::check_request(dev.provider, udata)?;
                WrSizes::of(dev.provider)
            }
        };

        if attr.max_wr == 0
            || attr.max_wr > limits::MAX_SRQ_WR
            || attr.max_sge > sizes.sge
            || attr.srq_limit > attr.max_wr
        {
            return Err(EINVAL);
        }
        let charge = dev.limits.srq.charge()?;
        let wrs = match udata {
            None => RecvWrs::list(attr.max_wr)?,
            Some(udata) => Self::shared_ring(dev.provider, attr, &udata)?,
        };

        Ok(Self::new(wrs, attr.max_sge, attr.srq_limit, Some(charge)))
    }

    /// Creates the ring of a process's shared queue, and responds to the process. Process context;
    /// may sleep.
    fn shared_ring(
        provider: Provider,
        attr: &mut SrqAttr,
        udata: &ContextUdata<'_, Riw>,
    ) -> Result<RecvWrs> {
        match provider {
            Provider::Siw => {
                let mut ring = Ring::new(attr.max_wr, 0)?;

                attr.max_wr = ring.len();
                udata.respond(&siw::SrqResponse {
                    num_rqe: ring.len(),
                    pad: 0,
                    srq_key: ring.offer(udata.ucontext())?,
                })?;
                Ok(RecvWrs::Ring(ring))
            }
            Provider::Own => {
                let (wrs, ring) = counted_ring(attr.max_wr, &mut attr.max_sge, udata)?;

                attr.max_wr = ring.entries;
                udata.respond(&CreateSrqResponse { comp_mask: 0, ring })?;
                Ok(wrs)
            }
        }
    }

    /// Takes WRs that a kernel user posts. Calls `note` for each before it is posted: to trace it.
    /// Any context. Fails as [`PostedWrs::post`] does, and with `EINVAL` for a WR with too many
    /// SGEs.
    pub(crate) fn post(&self, wrs: &mut rdma::wr::RecvWrs<'_>, note: impl Fn(&Posted)) -> Result {
        while let Some(posted) = wrs.take() {
            let posted = posted?;

            note(&posted);
            self.wrs.post(posted)?;
        }
        Ok(())
    }

    /// Adds a queue pair that uses the queue. Process context; may sleep. Fails with `ENOMEM`
    /// without memory.
    pub(crate) fn add_user(&self) -> Result {
        loop {
            let added = self.consumer.lock().line.add_user();
            let Err(users) = added else {
                return Ok(());
            };
            let room = Fifo::new(users)?;
            let unused = self.consumer.lock().line.grow(room);
            drop(unused);
        }
    }

    /// Removes a queue pair that uses the queue, and does not wait for a WR. Process context or
    /// softirq.
    pub(crate) fn remove_user(&self) {
        self.consumer.lock().line.remove_user();
    }

    /// Takes the oldest WR for queue pair `number`, if one is posted and no other queue pair waits
    /// for it. Otherwise the queue pair waits in line, until a later call returns a WR or until
    /// [`Self::leave`]. `waits`: it does so already. Stores the buffers of the WR in `buffers`.
    /// Process context or softirq.
    pub(crate) fn take_in_turn(
        &self,
        number: u32,
        waits: bool,
        buffers: &mut Buffers,
    ) -> (Option<TakenWr>, NextTurn) {
        let mut consumer = self.consumer.lock();
        let first = consumer.line.first();
        let mut taken = None;

        if first.is_none_or(|first| first == number) {
            taken = self.take_oldest(&mut consumer, buffers);
        }
        match (&taken, waits) {
            (Some(_), true) => consumer.line.serve(),
            (None, false) => consumer.line.join(number),
            // Nothing has changed in the line.
            _ if first.is_none() => return (taken, NextTurn(None)),
            _ => {}
        }
        self.publish_first(&mut consumer);
        if taken.is_none() && first.is_none_or(|first| first == number) {
            // A WR that was posted before the poster could see that one waits, or that it must ring
            // the doorbell (selftests/litmus/receive_line.litmus).
            taken = self.take_oldest(&mut consumer, buffers);
            if taken.is_some() {
                consumer.line.serve();
                self.publish_first(&mut consumer);
            }
        }
        let next = self.next_turn(&mut consumer, number, first);
        (taken, next)
    }

    /// Removes queue pair `number` from the line. Process context or softirq.
    pub(crate) fn leave(&self, number: u32) -> NextTurn {
        let mut consumer = self.consumer.lock();
        let first = consumer.line.first();

        consumer.line.leave(number);
        self.publish_first(&mut consumer);
        self.next_turn(&mut consumer, number, first)
    }

    /// Publishes the number of the queue pair that is first in line, and has a process ring the
    /// doorbell for it. The full barrier pairs with the one of [`Self::first_waiting`]: after it,
    /// either this sees a WR, or its poster sees the number
    /// (`selftests/litmus/receive_line.litmus`).
    fn publish_first(&self, consumer: &mut Consumer) {
        let first = consumer.line.first().unwrap_or(0);

        self.first_waiting.store(first, ordering::Relaxed);
        barrier::smp_mb(ordering::Full);
        if first != 0 {
            // The doorbell rings for the next WR. The callers look for one that is posted already.
            let _ = self.wrs.wake_at(consumer.get);
        }
    }

    /// Returns the queue pair that is first in line, if it is not `number`, and a WR is posted or
    /// the queue pair must begin to look at the ring, as another one, `before`, has been first
    /// until now.
    fn next_turn(&self, consumer: &mut Consumer, number: u32, before: Option<u32>) -> NextTurn {
        let next = consumer.line.first();
        let begins = self.is_ring() && next != before;

        NextTurn(next.filter(|first| {
            *first != number && (begins || self.wrs.is_posted(consumer.get, consumer.get))
        }))
    }

    /// Whether queue pair `number` is the first in line. Any context. After it has become so, its
    /// turn is passed to it.
    pub(crate) fn is_first_in_line(&self, number: u32) -> bool {
        self.first_waiting.load(ordering::Relaxed) == number
    }

    /// Returns the queue pair that waits for the WRs that the caller has posted. Any context.
    pub(crate) fn first_waiting(&self) -> Option<u32> {
        // Post before the check: see `publish_first` (selftests/litmus/receive_line.litmus).
        barrier::smp_mb(ordering::Full);
        match self.first_waiting.load(ordering::Relaxed) {
            0 => None,
            number => Some(number),
        }
    }

    /// Whether WRs are posted without a call of the driver. Any context.
    pub(crate) fn is_ring(&self) -> bool {
        matches!(self.wrs, RecvWrs::Ring(_))
    }

    /// Takes the oldest WR, if there is one, whoever waits for it, and stores its buffers in
    /// `buffers`. Process context or softirq.
    pub(crate) fn take(&self, buffers: &mut Buffers) -> Option<TakenWr> {
        self.take_oldest(&mut self.consumer.lock(), buffers)
    }

    fn take_oldest(&self, consumer: &mut Consumer, buffers: &mut Buffers) -> Option<TakenWr> {
        let wr = self.wrs.peek(consumer.get, buffers)?;

        self.wrs.release(consumer.get);
        consumer.get = consumer.get.wrapping_add(1);

        // With `limit` WRs left, the last of them is valid. The event is due once.
        let last = consumer.get.wrapping_add(consumer.limit.wrapping_sub(1));
        let limit_reached = consumer.limit != 0 && !self.wrs.is_posted(last, consumer.get);
        if limit_reached {
            consumer.limit = 0;
        }
        Some(TakenWr { wr, limit_reached })
    }

    /// Requests a doorbell for the next WR. Process context or softirq. Returns whether one is
    /// posted already; the poster rings otherwise. `None` if there is no doorbell for receives: the
    /// caller must poll the queue.
    pub(crate) fn wake_for_next(&self) -> Option<bool> {
        let consumer = self.consumer.lock();

        self.wrs.wake_at(consumer.get)
    }

    /// Returns the size in WRs. Any context.
    pub(crate) fn len(&self) -> u32 {
        self.wrs.len()
    }

    /// Whether a WR is posted. Process context or softirq.
    pub(crate) fn is_posted(&self) -> bool {
        let get = self.consumer.lock().get;

        self.wrs.is_posted(get, get)
    }

    /// Returns the number of posted WRs. Process context or softirq.
    pub(crate) fn posted(&self) -> u32 {
        let get = self.consumer.lock().get;

        self.wrs.posted(get)
    }

    /// Sets the limit below which the event is due; 0: never. Process context or softirq. Fails
    /// with `EINVAL` if the limit exceeds the size.
    pub(crate) fn set_limit(&self, limit: u32) -> Result {
        if limit > self.wrs.len() {
            return Err(EINVAL);
        }
        self.consumer.lock().limit = limit;
        Ok(())
    }

    /// Returns size and limit. Process context or softirq.
    pub(crate) fn attr(&self) -> SrqAttr {
        SrqAttr {
            max_wr: self.wrs.len(),
            max_sge: self.max_sge,
            srq_limit: self.consumer.lock().limit,
        }
    }

    /// Returns the details of a shared queue. Process context.
    pub(crate) fn details(&self) -> SrqDetails {
        SrqDetails {
            posted: self.posted(),
            attr: self.attr(),
        }
    }
}

/// How full a shared receive queue is, for an administrator to see.
pub(crate) struct SrqDetails {
    /// Posted WRs that no queue pair has taken.
    posted: u32,
    attr: SrqAttr,
}

impl Details for SrqDetails {
    fn write(&self, to: &mut DetailsWriter<'_>) -> Result<(), MessageFull> {
        to.u32(c"posted", self.posted)?;
        to.u32(c"size", self.attr.max_wr)?;
        to.u32(c"limit", self.attr.srq_limit)
    }
}

/// Creates the receive ring of a process with riw's own ABI, for at least `max_wr` WRs of `max_sge`
/// SGEs, and offers it for mmap(). Sets `max_sge` to the number of SGEs that an entry has room for.
/// Process context; may sleep. Fails as [`CountedRing::new`] and [`CountedRing::offer`] do.
pub(crate) fn counted_ring(
    max_wr: u32,
    max_sge: &mut u32,
    udata: &ContextUdata<'_, Riw>,
) -> Result<(RecvWrs, RingMap)> {
    // CAST: A 32-bit number fits.
    let stride = Rqe::stride(*max_sge as usize);
    let mut ring = CountedRing::for_receives(max_wr, stride)?;
    let map = ring.offer(udata.ucontext())?;

    // CAST: A small number.
    *max_sge = Rqe::max_sge(stride) as u32;
    Ok((RecvWrs::Counted(ring), map))
}
