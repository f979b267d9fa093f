// SPDX-License-Identifier: GPL-2.0

//! Receive queues: of one queue pair, or shared by several.

use crate::{abi, limits::Quota, queue::ring::Ring, Riw};
use kernel::prelude::*;
use kernel_ext::sync::{new_bh_spinlock, BhSpinLock};
use rdma::{pd::Pd, srq::SrqAttr, Udata};

#[cfg(CONFIG_KUNIT = "y")]
#[path = "../kunit/receive.rs"]
mod kunit;

/// A shared receive queue as the verbs have it.
pub(crate) type SrqObject = rdma::srq::Srq<Riw>;

/// Receive requests that wait for messages.
#[pin_data]
pub(crate) struct RecvQueue {
    ring: Ring<{ abi::RQE_WORDS }>,
    #[pin]
    consumer: BhSpinLock<Consumer>,
    max_sge: u32,
    _quota: Option<Quota>,
}

struct Consumer {
    /// Counts the requests taken; the next one's place.
    get: u32,
    /// Below so many requests an event is due; 0 for never.
    limit: u32,
}

/// A request taken from a receive queue.
pub(crate) struct Taken {
    pub(crate) rqe: abi::Rqe,
    /// The queue has fallen below its limit by this: its owner is to be told.
    pub(crate) limit_reached: bool,
}

impl RecvQueue {
    /// A queue of the entries of `ring`.
    pub(crate) fn new(
        ring: Ring<{ abi::RQE_WORDS }>,
        max_sge: u32,
        limit: u32,
        quota: Option<Quota>,
    ) -> impl PinInit<Self> {
        pin_init!(Self {
            ring,
            consumer <- new_bh_spinlock!(Consumer { get: 0, limit }, "riw::RecvQueue::consumer"),
            max_sge,
            _quota: quota,
        })
    }

    /// Makes a shared queue. May sleep.
    pub(crate) fn shared(
        pd: &Pd<Riw>,
        attr: &mut SrqAttr,
        udata: Option<Udata<'_, Riw>>,
    ) -> Result<impl PinInit<Self>> {
        let udata = udata.ok_or(EOPNOTSUPP)?;

        let () = udata.request()?;
        // CAST: A 32-bit number fits.
        if attr.max_wr == 0
            || attr.max_wr > crate::limits::MAX_SRQ_WR
            || attr.max_sge as usize > abi::MAX_SGE
            || attr.srq_limit > attr.max_wr
        {
            return Err(EINVAL);
        }
        let quota = pd.device().limits.srq.take()?;
        let mut ring = Ring::new(attr.max_wr, 0)?;

        attr.max_wr = ring.len();
        udata.respond(&abi::SrqResponse {
            num_rqe: ring.len(),
            pad: 0,
            srq_key: ring.offer(udata.ucontext())?,
        })?;
        Ok(Self::new(ring, attr.max_sge, attr.srq_limit, Some(quota)))
    }

    /// Takes the oldest request, if there is one. Process context or softirq.
    pub(crate) fn take(&self) -> Option<Taken> {
        let mut consumer = self.consumer.lock();
        let rqe = self.ring.copy(consumer.get)?;

        self.ring.release(consumer.get);
        consumer.get = consumer.get.wrapping_add(1);

        // Of `limit` requests left the last would be there. The event is given once.
        let last = consumer.get.wrapping_add(consumer.limit.wrapping_sub(1));
        let limit_reached = consumer.limit != 0 && !self.ring.is_valid(last);
        if limit_reached {
            consumer.limit = 0;
        }
        Some(Taken {
            rqe: rqe.into(),
            limit_reached,
        })
    }

    /// Entries.
    pub(crate) fn len(&self) -> u32 {
        self.ring.len()
    }

    /// Sets the limit, below which an event is due; 0 for never.
    pub(crate) fn set_limit(&self, limit: u32) -> Result {
        if limit > self.ring.len() {
            return Err(EINVAL);
        }
        self.consumer.lock().limit = limit;
        Ok(())
    }

    /// Size and limit.
    pub(crate) fn attr(&self) -> SrqAttr {
        SrqAttr {
            max_wr: self.ring.len(),
            max_sge: self.max_sge,
            srq_limit: self.consumer.lock().limit,
        }
    }
}
