// SPDX-License-Identifier: GPL-2.0

//! The limits of a device: sizes of objects, and numbers of objects.

use kernel::{
    prelude::*,
    sync::{
        atomic::{ordering, Atomic},
        Arc,
    },
};
use rdma::iw::ConnParam;

/// Maximum WRs in a queue of a queue pair. The maximum of each kind of queue is a power of two, as
/// the size of a queue is.
pub(crate) const MAX_QP_WR: u32 = 32 * 1024;
/// Maximum WRs in a shared receive queue.
pub(crate) const MAX_SRQ_WR: u32 = 512 * 1024;
/// Maximum CQEs in a completion queue.
pub(crate) const MAX_CQE: u32 = 4 * 1024 * 1024;
/// Maximum RDMA Reads in flight on a connection, each way.
pub(crate) const MAX_READS: u32 = 128;
/// Maximum blocks of memory that a kernel user maps to a region.
pub(crate) const MAX_MR_BLOCKS: u32 = 512;
/// Maximum objects of each kind on a device.
pub(crate) const MAX_QP: u32 = 100 * 1024;
pub(crate) const MAX_CQ: u32 = 100 * 1024;
pub(crate) const MAX_SRQ: u32 = 100 * 1024;
pub(crate) const MAX_MR: u32 = 1000 * 1024;
/// Each region of a dma-buf takes address space of the kernel for the whole dma-buf (`vmap`), with
/// page tables that no cgroup is charged for, and no limit of locked memory counts it.
pub(crate) const MAX_DMABUF_MR: u32 = 4 * 1024;
/// A window pins no memory, so only this limit and the memory cgroup bound the kernel's own memory.
pub(crate) const MAX_MW: u32 = 128 * 1024;
pub(crate) const MAX_PD: u32 = 100 * 1024;
const MAX_UCONTEXT: u32 = 100 * 1024;

/// Checks that the depths are within the limits of the device. Any context.
pub(crate) fn check_depths(param: &ConnParam<'_>) -> Result {
    if param.ird > MAX_READS || param.ord > MAX_READS {
        return Err(EINVAL);
    }
    Ok(())
}

/// The limits of a device.
pub(crate) struct Limits {
    pub(crate) qp: ObjectLimit,
    pub(crate) cq: ObjectLimit,
    pub(crate) srq: ObjectLimit,
    pub(crate) mr: ObjectLimit,
    /// Regions of dma-bufs, which do not count against `mr`.
    pub(crate) dmabuf_mr: ObjectLimit,
    pub(crate) mw: ObjectLimit,
    pub(crate) pd: ObjectLimit,
    pub(crate) ucontext: ObjectLimit,
}

impl Limits {
    /// Creates the limits, with no objects. Process context; may sleep. Fails with `ENOMEM` without
    /// memory.
    pub(crate) fn new() -> Result<Self> {
        Ok(Self {
            qp: ObjectLimit::new(MAX_QP)?,
            cq: ObjectLimit::new(MAX_CQ)?,
            srq: ObjectLimit::new(MAX_SRQ)?,
            mr: ObjectLimit::new(MAX_MR)?,
            dmabuf_mr: ObjectLimit::new(MAX_DMABUF_MR)?,
            mw: ObjectLimit::new(MAX_MW)?,
            pd: ObjectLimit::new(MAX_PD)?,
            ucontext: ObjectLimit::new(MAX_UCONTEXT)?,
        })
    }
}

/// A limit, and the number of objects that count against it.
#[derive(Clone)]
pub(crate) struct ObjectLimit(Arc<Count>);

struct Count {
    used: Atomic<u32>,
    max: u32,
}

/// One object counted against a limit until this is dropped.
pub(crate) struct ObjectCharge(Arc<Count>);

impl ObjectLimit {
    /// Creates a limit of `max` objects. Process context; may sleep. Fails with `ENOMEM` without
    /// memory.
    pub(crate) fn new(max: u32) -> Result<Self> {
        let count = Count {
            used: Atomic::new(0),
            max,
        };
        Ok(Self(Arc::new(count, GFP_KERNEL)?))
    }

    /// Counts one object. Any context. Fails with `ENOMEM` if the limit is reached.
    pub(crate) fn charge(&self) -> Result<ObjectCharge> {
        let mut used = self.0.used.load(ordering::Relaxed);

        while used < self.0.max {
            match self
                .0
                .used
                .cmpxchg(used, used.wrapping_add(1), ordering::Relaxed)
            {
                Ok(_) => return Ok(ObjectCharge(self.0.clone())),
                Err(now) => used = now,
            }
        }
        Err(ENOMEM)
    }
}

impl Drop for ObjectCharge {
    fn drop(&mut self) {
        self.0.used.fetch_sub(1, ordering::Relaxed);
    }
}
