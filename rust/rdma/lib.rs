// SPDX-License-Identifier: GPL-2.0

//! Abstractions for the RDMA subsystem: the kernel side of a verbs provider.
//!
//! A driver implements [`Driver`], whose methods are the verbs, and registers devices with
//! [`Device::register`]. ib_core allocates each verbs object (protection domain, completion queue,
//! queue pair and so on) with room for the driver's data. The data is initialized in place, and
//! dropped after the last reference to the object: see [`object::Object`].
//!
//! # Rules that the crate enforces
//!
//! Consumers in the kernel lend their memory to a driver, and ib_core calls them by pointers. A
//! driver that accesses the memory too long, or makes up a completion, would corrupt memory
//! although it has no unsafe code. So this crate keeps account of both, and the types leave a
//! driver no way to it:
//!
//! - the memory of WRs: [`wr::Posted`], and [`wr::WrId`] for their completions;
//! - the memory that WRs register: [`mr::KernelRegion`] and [`mr::Registrar`];
//! - queue pairs, which iw_cm names by number: [`Device::qp`].
//!
//! A driver that breaks a rule loses a completion, or the end of a queue waits for ever.
//!
//! Comments name the C function that an item wraps, and its file; `core/` stands for
//! `drivers/infiniband/core/`.
//!
//! C headers: `include/rdma/ib_verbs.h`, `include/rdma/iw_cm.h`, `include/rdma/ib_umem.h`.

#![crate_name = "rdma"]
#![deny(missing_docs)]

pub mod abi;
pub mod attr;
mod blocks;
pub mod cq;
pub mod device;
pub mod dmabuf;
pub mod event;
pub mod iw;
pub mod link;
pub mod mr;
pub mod mw;
pub mod object;
pub mod ops;
pub mod page_list;
pub mod pd;
pub mod pma;
pub mod port;
pub mod qp;
pub mod restrack;
pub mod shared;
pub mod srq;
pub mod stats;
pub mod table;
pub mod ucontext;
pub mod udata;
pub mod umem;
mod update;
pub mod version;
pub mod wc;
pub mod wr;

pub use device::{Device, Registered};
pub use object::Object;
pub use ops::Driver;
pub use udata::{ContextUdata, Udata};

/// The prefix of this crate's log messages.
const __LOG_PREFIX: &[u8] = b"rdma\0";
