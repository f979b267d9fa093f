// SPDX-License-Identifier: GPL-2.0

//! The queues of the verbs: WRs of processes and of kernel users, and their completions.

mod arming;
pub(crate) mod completion;
pub(crate) mod counted;
mod cq_ring;
pub(crate) mod details;
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
