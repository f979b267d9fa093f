// SPDX-License-Identifier: GPL-2.0

//! The queues of the verbs: WRs of processes and of kernel users, and their completions.
//!
//! - A WR in the driver's form: [`wr`]. It is decoded from a process's ring, [`siw_wr`] or
//!   [`own_wr`] by the user ABI, or comes from a kernel user ([`kernel_wr`]).
//! - Posted WRs: [`posted`], in the ring of a process ([`ring`], [`counted`], [`entry`]) or in a
//!   list ([`fifo`]).
//! - A send queue: [`send`], with the states of its WRs ([`send_state`]).
//! - A receive queue, which queue pairs may share: [`receive`], the order in which they get WRs
//!   ([`line`](mod@line)), and the part of one queue pair ([`qp_receive`]).
//! - A completion queue: [`completion`], of a process ([`user_cq`], [`cq_ring`]) or of a kernel
//!   user ([`kernel_cq`]), and when its event is due ([`arming`]).

mod arming;
pub(crate) mod completion;
pub(crate) mod counted;
mod cq_ring;
mod entry;
pub(crate) mod fifo;
mod kernel_cq;
pub(crate) mod kernel_wr;
mod line;
mod own_wr;
pub(crate) mod posted;
pub(crate) mod qp_receive;
pub(crate) mod receive;
pub(crate) mod ring;
pub(crate) mod send;
pub(crate) mod send_state;
mod siw_wr;
mod user_cq;
pub(crate) mod wr;

use crate::driver::Riw;

/// The verbs object of a queue pair, which completions name.
pub(crate) type QpObject = rdma::qp::Qp<Riw>;
