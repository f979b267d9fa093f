// SPDX-License-Identifier: GPL-2.0

//! The type that stands for the driver in ib_core's generic objects. `verbs.rs` implements it.

/// The driver, as ib_core sees it.
pub(crate) struct Riw;

// Where riw keeps the duties:
//
// - Registered memory: `KernelRegion` has its list accessed only under the lock that ends a
//   registration, and only for the queue pair that registered it. `Stream::flush` and
//   `Stream::reset` end what the queue pair has registered, when nothing is sent or placed any more
//   (`Regions::revoke`). WRs that invalidate do so before each kind of completion:
//   `Stream::give_up_sink`, `Stream::refuse_wr`, `SendQueue::flush`.
rdma::unsafe_keeps_duties!(Riw);
