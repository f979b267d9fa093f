// SPDX-License-Identifier: GPL-2.0

//! The headers as they are on the wire. Every field is big-endian and unaligned; nothing here is
//! checked beyond its size.

pub mod ddp;
pub mod mpa;
pub mod rdmap;
pub mod terminate;
