// SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR Linux-OpenIB

//! riw's own ABI with user space, version 1: the interface of riw.ko and a user library (a
//! *provider* of libibverbs). A device has this ABI if the module parameter `provider` was `riw`
//! when the device was added. Otherwise it has siw's ABI, which is not in this crate.
//!
//! - [`udata`]: the driver's part of the requests and responses of uverbs.
//! - [`ring`]: rings in memory that the kernel and the process share, and when to ring the
//!   doorbell.
//! - [`wr`]: the entries of send and receive queues.
//! - [`cqe`]: the entries of completion queues.
//! - [`doorbell`]: the commands that call the kernel.
//!
//! # Conventions
//!
//! All numbers are in the byte order of the host, if their comment names no other. Lengths and
//! offsets are in octets. Reserved fields are written as zero and ignored by their reader.
//!
//! Rings consist of 64-bit words. Either side accesses a word of a ring only by an atomic 64-bit
//! load or store. Neither side trusts the other: it loads a word once, and checks and uses that
//! copy.
//!
//! # Compatibility
//!
//! A longer request whose tail is zero and a longer response are valid, as `struct ib_udata` in
//! `include/rdma/ib_verbs.h` describes. So later versions append fields to the structs of
//! [`udata`], announced by bits of [`udata::AllocContextResponse::features`] or of a `comp_mask`.
//! They must still take the lengths of this version from older libraries. [`VERSION`] changes only
//! if an old library could not work.
//!
//! No function allocates, blocks or panics. Any context.

#![cfg_attr(not(CONFIG_RUST), no_std)]
#![crate_name = "riw_abi"]
#![forbid(unsafe_code)]
#![deny(
    missing_docs,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::arithmetic_side_effects,
    clippy::as_conversions
)]

pub mod cqe;
pub mod doorbell;
pub mod ring;
pub mod udata;
pub mod wr;

/// The driver id of a device with this ABI (`ib_device_ops::driver_id`,
/// `RDMA_NLDEV_ATTR_UVERBS_DRIVER_ID`): the letters `riw`, which is also riw's vendor id. It is
/// above all of `enum rdma_driver_id`.
pub const DRIVER_ID: u32 = 0x0072_6977;

/// The version of this ABI (`ib_device_ops::uverbs_abi_ver`).
pub const VERSION: u32 = 1;

/// Maximum SGEs of a WR.
pub const MAX_SGE: usize = 16;
/// Maximum inline data of a WR, in octets.
pub const MAX_INLINE: usize = 256;

/// Splits a word into its halves, in the order in which they are in memory.
pub(crate) const fn halves(word: u64) -> (u32, u32) {
    let [a, b, c, d, e, f, g, h] = word.to_ne_bytes();

    (
        u32::from_ne_bytes([a, b, c, d]),
        u32::from_ne_bytes([e, f, g, h]),
    )
}

/// Returns the word with these halves, in the order in which they are in memory.
pub(crate) const fn join(first: u32, second: u32) -> u64 {
    let [a, b, c, d] = first.to_ne_bytes();
    let [e, f, g, h] = second.to_ne_bytes();

    u64::from_ne_bytes([a, b, c, d, e, f, g, h])
}
