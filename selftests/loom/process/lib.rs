// SPDX-License-Identifier: GPL-2.0

//! `core` as libriw's rings see it: with [loom](https://docs.rs/loom)'s atomics.

pub use ::core::*;

pub mod sync {
    pub use ::core::sync::*;

    pub mod atomic;
}
