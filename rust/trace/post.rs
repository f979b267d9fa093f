// SPDX-License-Identifier: GPL-2.0

//! Events of posting: WRs of kernel users, and the doorbells of processes.

use crate::{
    qp::Source,
    tracepoint::{call, is_enabled},
};
use rdma::{srq::Srq, Driver};

/// A WR that a kernel user posts.
pub struct PostedWr {
    /// The id of the WR: a hash.
    pub wr_id: u64,
    /// The opcode of the user ABI.
    pub opcode: u8,
}

/// Traces that a kernel user is about to post the WR that `posted` returns to a queue pair.
#[inline]
pub fn wr_post(qp: &impl Source, posted: impl FnOnce() -> PostedWr) {
    if is_enabled!(wr_post) {
        let PostedWr { wr_id, opcode } = posted();

        // SAFETY: The device is borrowed, so it is alive.
        unsafe { call!(wr_post(qp.device().as_raw(), qp.number(), 0, wr_id, opcode)) }
    }
}

/// Traces that a kernel user is about to post the WR that `posted` returns to a shared receive
/// queue.
#[inline]
pub fn srq_wr_post<T: Driver>(srq: &Srq<T>, posted: impl FnOnce() -> PostedWr) {
    if is_enabled!(wr_post) {
        let PostedWr { wr_id, opcode } = posted();

        // SAFETY: The device is borrowed, so it is alive.
        unsafe {
            call!(wr_post(
                srq.device().as_raw(),
                0,
                srq.number(),
                wr_id,
                opcode
            ))
        }
    }
}

/// Traces that a process rings the doorbell of a send queue.
#[inline]
pub fn doorbell(qp: &impl Source) {
    if is_enabled!(doorbell) {
        // SAFETY: The device is borrowed, so it is alive.
        unsafe { call!(doorbell(qp.device().as_raw(), qp.number())) }
    }
}

/// Traces that a process rings the doorbell of the receive queue of a queue pair.
#[inline]
pub fn recv_doorbell(qp: &impl Source) {
    if is_enabled!(recv_doorbell) {
        // SAFETY: The device is borrowed, so it is alive.
        unsafe { call!(recv_doorbell(qp.device().as_raw(), qp.number(), 0)) }
    }
}

/// Traces that a process rings the doorbell of a shared receive queue.
#[inline]
pub fn srq_doorbell<T: Driver>(srq: &Srq<T>) {
    if is_enabled!(recv_doorbell) {
        // SAFETY: The device is borrowed, so it is alive.
        unsafe { call!(recv_doorbell(srq.device().as_raw(), 0, srq.number())) }
    }
}
