// SPDX-License-Identifier: GPL-2.0

//! The WR that binds a memory window.

use iwarp::Stag;

/// A WR that binds a window.
#[derive(Clone, Copy)]
pub(crate) struct BindRequest {
    /// The new STag of the window.
    pub(crate) stag: Stag,
    /// The STag of the region.
    pub(crate) region: Stag,
    /// The address of the first byte, in the region.
    pub(crate) addr: u64,
    /// The length in bytes. 0: the window is not bound any more.
    pub(crate) len: u64,
    /// The access flags.
    pub(crate) access: u32,
}
