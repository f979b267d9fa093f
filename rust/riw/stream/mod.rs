// SPDX-License-Identifier: GPL-2.0

//! The engine: moves messages between the queues of a queue pair and its stream.

pub(crate) mod crc;
pub(crate) mod flush;
mod gather;
mod octets;
mod place;
pub(crate) mod reads;
pub(crate) mod receive;
pub(crate) mod runner;
pub(crate) mod transmit;
