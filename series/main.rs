// SPDX-License-Identifier: GPL-2.0

//! riw: a software RDMA NIC. Any network interface becomes an iWARP RNIC:
//! `rdma link add riw0 type riw netdev eth0`.

#![forbid(unsafe_code)]
#![deny(
    missing_docs,
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]
// The patch that adds the link type uses the modules, and removes this line.
#![allow(dead_code, unused_imports)]

use kernel::prelude::*;

mod declared;

module! {
    type: Module,
    name: "riw",
    authors: ["The riw developers"],
    description: "Software iWARP RDMA NIC",
    license: "GPL",
}

/// The loaded module, which has no devices yet.
struct Module;

impl kernel::Module for Module {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        Ok(Self)
    }
}
