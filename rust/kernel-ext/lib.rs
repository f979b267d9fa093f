// SPDX-License-Identifier: GPL-2.0

//! Additions to the kernel's `kernel` crate for any driver: locks for data shared with softirqs,
//! the right to do some work, owned work queues, memory cgroups, allocation scopes, rate limits,
//! per-CPU counters, idle CPUs, times, random numbers, growth of vectors, network devices and
//! namespaces, bytes that are copied, and helpers for KUnit suites.
//!
//! Nothing here depends on sockets or RDMA. All of it could move to `rust/kernel`, each file to
//! the module of its name.

#![crate_name = "kernel_ext"]
#![deny(missing_docs)]

pub mod cpu;
#[cfg(CONFIG_KUNIT = "y")]
pub mod kunit;
pub mod memalloc;
pub mod memcg;
pub mod module_param;
pub mod net;
pub mod octets;
pub mod percpu;
pub mod random;
pub mod ratelimit;
pub mod runner;
pub mod sync;
pub mod time;
pub mod vec;
pub mod workqueue;

/// The prefix of this crate's log messages.
const __LOG_PREFIX: &[u8] = b"kernel_ext\0";
