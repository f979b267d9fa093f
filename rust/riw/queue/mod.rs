// SPDX-License-Identifier: GPL-2.0

//! The queues of the verbs: rings shared with a process, the WRs taken from them, and completions.

pub(crate) mod completion;
pub(crate) mod details;
pub(crate) mod fifo;
pub(crate) mod qp_receive;
pub(crate) mod receive;
pub(crate) mod ring;
pub(crate) mod send;
pub(crate) mod wr;
