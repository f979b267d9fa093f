// SPDX-License-Identifier: GPL-2.0

//! The part of the kernel crate that riw's lock-free code uses, with [loom](https://docs.rs/loom)'s atomics.
//!
//! An ordering can be weakened: see [`sites`].

pub mod race;
pub mod sites;
pub mod sync;

/// Errors have no number here.
#[derive(Debug)]
pub struct Error;

pub type Result<T = ()> = core::result::Result<T, Error>;

impl From<core::num::TryFromIntError> for Error {
    fn from(_: core::num::TryFromIntError) -> Self {
        Self
    }
}

pub mod prelude {
    pub use crate::{Error, Result};

    pub const EINVAL: Error = Error;

    /// Flags of an allocation.
    pub struct Flags;

    pub const GFP_KERNEL_ACCOUNT: Flags = Flags;
}
