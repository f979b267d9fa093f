// SPDX-License-Identifier: GPL-2.0

//! The queues of the verbs: their rings, shared with a process, and what is taken from them.

pub(crate) mod completion;
pub(crate) mod fifo;
pub(crate) mod receive;
pub(crate) mod ring;
pub(crate) mod send;
