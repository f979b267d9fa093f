// SPDX-License-Identifier: GPL-2.0

//! The engine: moves messages between the queues of a queue pair and its stream.

pub(crate) mod crc;
pub(crate) mod flush;
pub(crate) mod reads;
pub(crate) mod runner;
pub(crate) mod rx;
pub(crate) mod stream;
pub(crate) mod tx;
