// SPDX-License-Identifier: GPL-2.0

//! Events of completion queues.

use crate::tracepoint::{call, is_enabled};
use rdma::{cq::Cq, Driver};

/// Traces that the consumer arms a queue by the verb; `solicited`: only for a solicited completion.
#[inline]
pub fn cq_arm<T: Driver>(cq: &Cq<T>, solicited: bool) {
    if is_enabled!(cq_arm) {
        // SAFETY: `cq` is borrowed, so its `struct ib_cq` and its device are alive.
        unsafe { call!(cq_arm(cq.raw(), solicited)) }
    }
}

/// Traces that the consumer of a queue is about to be notified of a completion.
#[inline]
pub fn cq_notify<T: Driver>(cq: &Cq<T>) {
    if is_enabled!(cq_notify) {
        // SAFETY: `cq` is borrowed, so its `struct ib_cq` and its device are alive.
        unsafe { call!(cq_notify(cq.raw())) }
    }
}

/// A completion.
pub struct Completed {
    /// The number of the queue pair.
    pub qpn: u32,
    /// The id of the WR: as a process has set it, or a hash.
    pub wr_id: u64,
    /// The opcode of the user ABI.
    pub opcode: u8,
    /// The status of the user ABI.
    pub status: u16,
    /// The length of the message.
    pub bytes: u32,
}

/// Traces that the completion that `completed` returns is about to be added to a queue.
#[inline]
pub fn wr_complete<T: Driver>(cq: &Cq<T>, completed: impl FnOnce() -> Completed) {
    if is_enabled!(wr_complete) {
        let Completed {
            qpn,
            wr_id,
            opcode,
            status,
            bytes,
        } = completed();

        // SAFETY: `cq` is borrowed, so its `struct ib_cq` and its device are alive.
        unsafe { call!(wr_complete(cq.raw(), qpn, wr_id, opcode, status, bytes)) }
    }
}
