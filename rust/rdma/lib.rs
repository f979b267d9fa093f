// SPDX-License-Identifier: GPL-2.0

//! Abstractions for the RDMA subsystem: the kernel side of a verbs provider.
//!
//! A driver implements [`Driver`], whose methods are the verbs, and registers devices with
//! [`Device::register`]. ib_core allocates each verbs object (protection domain, completion queue,
//! queue pair and so on) with room for the driver's data. The data is initialized in place, and
//! dropped after the last reference to the object: see [`object::Object`].
//!
//! # Duties of a driver
//!
//! Consumers in the kernel lend their memory to a driver, and ib_core calls them by pointers. A
//! driver that breaks these duties corrupts memory although it has no unsafe code: the compiler
//! cannot check them. So [`Driver`] requires the unsafe trait [`KeepsDuties`], and `// SAFETY:`
//! comments of this crate refer to the duties by name.
//!
//! - **Registered memory.** The consumer keeps the memory that it maps to a region until it learns
//!   that the registration has ended, and many consumers learn that from a completion with an
//!   error. So the driver accesses a [`page_list::PageList`] only between the WR that registers it
//!   (`IB_WR_REG_MR`) and the first of these, and no access is in progress then:
//!
//!   - it adds the completion of a WR that invalidates the registration (`IB_WR_LOCAL_INV`,
//!     `IB_WR_RDMA_READ_WITH_INV`, whatever the status), or of a receive that reports its
//!     invalidation by the peer;
//!   - it adds the first flushed completion of the queue pair to which the `IB_WR_REG_MR` was
//!     posted, or destroys that queue pair. Until then, other queue pairs of the protection domain
//!     may not access the memory either: their streams do not end with that one's;
//!   - the region is deregistered.
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
pub use ops::{Driver, KeepsDuties};
pub use udata::{Exchange, Udata};

/// The prefix of this crate's log messages.
const __LOG_PREFIX: &[u8] = b"rdma\0";
