// SPDX-License-Identifier: GPL-2.0

//! Receive queues: of one queue pair, or shared by several (SRQ).

use crate::{
    abi,
    limits::{self, ObjectCharge},
    queue::{posted::PostedWrs, ring::Ring, wr::RecvWr},
    Riw,
};
use kernel::prelude::*;
use kernel_ext::sync::{new_bh_spinlock, BhSpinLock};
use rdma::{pd::Pd, srq::SrqAttr, Udata};

#[cfg(CONFIG_KUNIT = "y")]
#[path = "../kunit/receive.rs"]
mod kunit;

/// The verbs object of a shared receive queue.
pub(crate) type SrqObject = rdma::srq::Srq<Riw>;

/// Receive WRs as they are posted.
pub(crate) type RecvWrs = PostedWrs<RecvWr, { abi::RQE_WORDS }>;

/// Posted receive WRs.
#[pin_data]
pub(crate) struct RecvQueue {
    wrs: RecvWrs,
    #[pin]
    consumer: BhSpinLock<Consumer>,
    max_sge: u32,
    _charge: Option<ObjectCharge>,
}

struct Consumer {
    /// Counts WRs taken: the number of the next one.
    get: u32,
    /// The SRQ limit event is due when fewer WRs than this are left; 0: never.
    limit: u32,
}

/// A WR taken from a receive queue.
pub(crate) struct TakenWr {
    pub(crate) wr: RecvWr,
    /// The queue has fallen below its limit, and the event is due.
    pub(crate) limit_reached: bool,
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
            consumer <- new_bh_spinlock!(Consumer { get: 0, limit }, "riw::RecvQueue::consumer"),
            max_sge,
            _charge: charge,
        })
    }

    /// Creates a shared queue. Process context; may sleep.
    ///
    /// Fails with `EINVAL` for sizes that riw does not support, `ENOMEM` above the limit of queues or
    /// without memory.
    pub(crate) fn shared(
        pd: &Pd<Riw>,
        attr: &mut SrqAttr,
        udata: Option<Udata<'_, Riw>>,
    ) -> Result<impl PinInit<Self>> {
        if let Some(udata) = &udata {
            let () = udata.request()?;
        }
        if attr.max_wr == 0
            || attr.max_wr > limits::MAX_SRQ_WR
            || attr.max_sge > limits::MAX_SGE
            || attr.srq_limit > attr.max_wr
        {
            return Err(EINVAL);
        }
        let charge = pd.device().limits.srq.charge()?;
        let wrs = match udata {
            None => RecvWrs::list(attr.max_wr)?,
            Some(udata) => {
                let mut ring = Ring::new(attr.max_wr, 0)?;

                attr.max_wr = ring.len();
                udata.respond(&abi::SrqResponse {
                    num_rqe: ring.len(),
                    pad: 0,
                    srq_key: ring.offer(udata.ucontext())?,
                })?;
                RecvWrs::Ring(ring)
            }
        };

        Ok(Self::new(wrs, attr.max_sge, attr.srq_limit, Some(charge)))
    }

    /// Takes WRs that a kernel user posts. Any context. Fails as [`PostedWrs::post`] does, and with
    /// `EINVAL` for a WR with too many SGEs.
    pub(crate) fn post(&self, wrs: &mut rdma::wr::RecvWrs<'_>) -> Result {
        while let Some(posted) = wrs.take() {
            self.wrs.post(posted?.into())?;
        }
        Ok(())
    }

    /// Takes the oldest WR, if there is one. Process context or softirq.
    pub(crate) fn take(&self) -> Option<TakenWr> {
        let mut consumer = self.consumer.lock();
        let wr = self.wrs.peek(consumer.get)?;

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

    /// Returns the size in WRs. Any context.
    pub(crate) fn len(&self) -> u32 {
        self.wrs.len()
    }

    /// Returns the number of posted WRs. Process context or softirq.
    pub(crate) fn posted(&self) -> u32 {
        let get = self.consumer.lock().get;

        self.wrs.posted(get)
    }

    /// Sets the limit below which the event is due; 0: never. Process context or softirq. Fails with
    /// `EINVAL` if the limit exceeds the size.
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
}
