// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

//! The interfaces of libibverbs that this library implements and calls: declarations only.
//!
//! They are written by hand, because rdma-core installs no header of its private interface. The
//! test [`tests`] writes them down as assertions in C, which `selftests/provider` compiles against
//! the headers of rdma-core.

#![allow(
    non_camel_case_types,
    dead_code,
    missing_docs,
    reason = "names and fields are those of C"
)]

pub(crate) mod commands;
pub(crate) mod driver;
pub(crate) mod ioctl;
mod layout;
pub(crate) mod verbs;

#[cfg(test)]
mod tests;
