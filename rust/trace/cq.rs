// SPDX-License-Identifier: GPL-2.0

//! Events of completion queues.

use crate::tracepoint;
use rdma::{cq::Cq, Driver};

/// Traces that the consumer arms a queue by the verb; `solicited`: only for a solicited completion.
#[inline]
pub fn cq_arm<T: Driver>(cq: &Cq<T>, solicited: bool) {
    if tracepoint::cq_arm_enabled() {
        // SAFETY: `cq` is borrowed, so its `struct ib_cq` and its device are alive.
        unsafe { tracepoint::cq_arm(cq.base(), solicited) }
    }
}

/// Traces that the consumer of a queue is about to be notified of a completion.
#[inline]
pub fn cq_notify<T: Driver>(cq: &Cq<T>) {
    if tracepoint::cq_notify_enabled() {
        // SAFETY: `cq` is borrowed, so its `struct ib_cq` and its device are alive.
        unsafe { tracepoint::cq_notify(cq.base()) }
    }
}

/// Traces that a completion of queue pair `qpn` is about to be added to a queue. `opcode` and
/// `status` are those of the user ABI.
#[inline]
pub fn wr_complete<T: Driver>(
    cq: &Cq<T>,
    qpn: u32,
    wr_id: u64,
    opcode: u8,
    status: u16,
    bytes: u32,
) {
    if tracepoint::wr_complete_enabled() {
        // SAFETY: `cq` is borrowed, so its `struct ib_cq` and its device are alive.
        unsafe { tracepoint::wr_complete(cq.base(), qpn, wr_id, opcode, status, bytes) }
    }
}
