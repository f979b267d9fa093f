// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

//! libibverbs provider for riw devices in the mode `provider=riw`.
//!
//! libibverbs loads this library, `libriw-rdmavN.so` with the number N of its private interface,
//! for the line `driver riw` in `/etc/libibverbs.d`.

#![deny(
    missing_docs,
    unsafe_op_in_unsafe_fn,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::arithmetic_side_effects,
    clippy::as_conversions
)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::arithmetic_side_effects,
        clippy::as_conversions
    )
)]

mod cancel;
mod ffi;
mod lock;
mod ring;
mod verbs;
