// SPDX-License-Identifier: GPL-2.0

//! The state of a region, for an administrator to see.

use kernel::prelude::*;
use rdma::restrack::{Details, DetailsWriter, MessageFull};

/// The details of a region, for an administrator to see.
pub(crate) struct MrDetails {
    /// The rights, as access flags: [`RIGHTS`](super::rights::RIGHTS),
    /// [`MW_BIND`](super::rights::MW_BIND).
    pub(super) access: u32,
    pub(super) pages: usize,
    /// Whether the region is registered, and not invalidated since.
    pub(super) valid: bool,
}

impl Details for MrDetails {
    fn write(&self, to: &mut DetailsWriter<'_>) -> Result<(), MessageFull> {
        to.u32_hex(c"access", self.access)?;
        // CAST: A size fits.
        to.u64(c"pages", self.pages as u64)?;
        to.u32(c"valid", self.valid.into())
    }
}
