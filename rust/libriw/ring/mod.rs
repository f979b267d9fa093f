// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

//! This side of the rings that [`riw_abi::ring`] describes.
//!
//! Nothing here knows of libibverbs, or calls the kernel. No function panics, whatever is in the
//! memory.

#![forbid(unsafe_code)]

mod complete;
mod memory;
mod post;
mod receive;
mod send;

#[cfg(test)]
mod tests;

pub(crate) use complete::{Arming, Completions};
pub(crate) use receive::ReceiveQueue;
pub(crate) use send::{Payload, Refused, SendQueue};
